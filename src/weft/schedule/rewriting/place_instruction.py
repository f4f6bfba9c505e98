"""Putting the implementation of a tensor instruction in the place of a block, with the block's buffers as its operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import mul

from weft.ir import ONE, Bounds, Expr, Node, broadcast, map_nodes, post_order, substitute
from weft.loop import (
    Address,
    Block,
    Buffer,
    Function,
    Load,
    Stmt,
    Store,
    TensorInstruction,
    View,
    find_note,
    rename_fresh,
    statements,
)
from weft.schedule.cursors.state import refuse
from weft.schedule.cursors.tree import blocks_in
from weft.schedule.legality.instruction_matching import Match


def instruction(implementation: Function, semantics: Function, found: Match, bounds: Bounds) -> Stmt:
    """Returns the body of *implementation* on the operands and scalars *found* for the parameters of *semantics*."""
    same = dict(zip(implementation.params, semantics.params, strict=True))
    operands = {p: found.operands[q] for p, q in same.items() if isinstance(p, Buffer) and isinstance(q, Buffer)}
    scalars = {p: found.scalars[q] for p, q in same.items() if not isinstance(p, Buffer) and not isinstance(q, Buffer)}
    body = substitute(rename_fresh(implementation.body), scalars)
    views = {s.buffer: s for s in statements(body) if isinstance(s, View)}

    def place(b: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        while b in views:
            view = views[b]
            b, indices = view.source, _digits(view.source, indices[0] + view.offset)
        return (operands[b].buffer, operands[b].at(indices, bounds)) if b in operands else (b, indices)

    def change(n: Node) -> Node | None:
        match n:
            case Load(b, indices) | Address(b, indices):
                return type(n)(*place(b, indices))
            case Store(b, indices, value, mask):
                return Store(*place(b, indices), value, mask)
            case View(_, _, _, inner):
                return inner
        return None

    return map_nodes(body, change)


def _digits(source: Buffer, position: Expr) -> tuple[Expr, ...]:
    """Returns the indices of an element of *source*, which is dense, counted in its order from the first."""
    made: list[Expr] = []
    sizes: Sequence[Expr] = source.shape
    for d, size in enumerate(sizes):
        below = reduce(mul, sizes[d + 1 :], ONE)
        digit = position if below is ONE else position // broadcast(below, position.dtype.lanes)
        made.append(digit if d == 0 else digit % broadcast(size, position.dtype.lanes))
    return tuple(made)


def check_instructions(fn: Function, before: Function) -> None:
    """Refuses a step that breaks the assumptions of an instruction of the function *before*.

    These are the box that it writes, and the memory and the strides of the operands whose addresses it takes.
    """
    known = {b.name: b for b in _instructions(before)}
    for block in _instructions(fn):
        old = known.get(block.name)
        if old is not None and old is not block and _relies_on(old) != _relies_on(block):
            refuse(
                f"{block.name} is an instruction, which relies on its operands as they are", old, "tensorize afterwards"
            )


def _instructions(fn: Function) -> tuple[Block, ...]:
    return _instructions_in(fn.body)


@lru_cache(maxsize=8)
def _instructions_in(root: Stmt) -> tuple[Block, ...]:
    """Returns the instructions of a function; cached, since each step's result is the next step's input."""
    return tuple([b for b in blocks_in(root) if find_note(b.notes, TensorInstruction) is not None])


def _relies_on(block: Block) -> tuple[object, ...]:
    boxes = tuple([tuple([x.extent for x in r.ranges]) for r in block.writes])
    taken = [n.buffer for n in post_order(block.body) if isinstance(n, Address)]
    return boxes, tuple([(b.scope, b.row_major_strides()) for b in taken])
