"""`tensorize`: a block becomes one instruction of the target.

for i in range(0, 16):
    for k in range(0, 4):                                               C[ramp(16*t, 1, 16)] = dot(
        C[16*t + i] += i32(A[4*s + k]) * i32(B[t, s, i, k])     ->          C[ramp(16*t, 1, 16)], A[4*s : 4*s + 4], B[t, s, :, :])
"""

from __future__ import annotations

from difflib import get_close_matches

from weft.loop import Block, For, Function, Stmt, TensorInstruction, with_note
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, refuse
from weft.schedule.cursors.tree import block_path, bounds_on, replace, the_block
from weft.schedule.legality.instruction_matching import Mismatch, match, nest_of
from weft.schedule.rewriting.nest_to_block import enclose
from weft.schedule.rewriting.place_instruction import instruction
from weft.targets.instructions import INTRINSICS, TensorIntrinsic


@primitive
def tensorize(fn: Function, target: BlockRef | LoopRef, intrinsic: str) -> tuple[Change, BlockRef]:
    """Computes a block that `blockize` has made, or the body of a loop, by the tensor instruction *intrinsic* of a target.

    Legal if the block's loops and assignment are those of the instruction's semantics, up to names, order of loops, order of the
    operands of commutative operators, and the place of operands in their buffers. Sums are reassociated. Returns the block.
    """
    wanted = INTRINSICS.get(intrinsic)
    if wanted is None:
        near = get_close_matches(intrinsic, INTRINSICS, n=6, cutoff=0)
        refuse(f"there is no tensor instruction {intrinsic!r}", hint=f"there are {', '.join(near)}, and others")
    name = None
    if isinstance(target, LoopRef):
        fn, outer = enclose(fn, target)
        inner = _nest(outer)[1]
        name = inner.name if isinstance(inner, Block) else None
        target = BlockRef(outer.name)
    path = block_path(fn, target)
    block = the_block(path)
    new = _tensorized(fn, block, wanted, name or block.name)
    return Change(fn.with_body(replace(path, new))), BlockRef(new.name)


def _tensorized(fn: Function, block: Block, wanted: TensorIntrinsic, name: str) -> Block:
    loops, inner = _nest(block)
    if not isinstance(inner, Block):
        refuse(
            f"{block.name} is not loops around one block",
            block,
            "blockize the loops, or tensorize the outermost of them",
        )
    bounds = bounds_on((), fn)
    for a in block.axes:
        bounds = bounds.bind(a.var, 0, a.extent - 1)
    inside = bounds
    for f in loops:
        inside = inside.bind(f.var, f.begin, f.begin + f.extent - 1)
    given = nest_of(loops, inner, inside)
    if given is None:
        refuse(f"{inner.name} is not a single assignment", inner, "tensorize loops around one assignment")
    try:
        found = match(wanted, given, inside)
    except Mismatch as e:
        refuse(f"{inner.name} is not what {wanted.name} computes: {e}", inner, f"it computes\n{wanted.semantics.body}")
    body = instruction(wanted.implementation, wanted.semantics, found, bounds)
    b, notes = block, with_note(block.notes, TensorInstruction(wanted.name))
    return Block(name, b.axes, b.bindings, b.predicate, b.reads, b.writes, b.init, body, notes)


def _nest(block: Block) -> tuple[list[For], Stmt]:
    """Returns the loops that are the body of *block*, and the body of the innermost."""
    loops: list[For] = []
    body = block.body
    while isinstance(body, For):
        loops.append(body)
        body = body.body
    return loops, body
