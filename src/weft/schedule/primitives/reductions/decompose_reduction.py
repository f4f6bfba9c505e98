"""`decompose_reduction`: the initialisation of a reduction becomes a block of its own.

for i in range(0, 8):                   for i in range(0, 8):
    for k in range(0, 4):                   C[i] = 0
        if k == 0: C[i] = 0    ->           for k in range(0, 4):
        C[i] = C[i] + A[i, k]                   C[i] = C[i] + A[i, k]
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import TRUE, Expr, Var, detect_iter_map, substitute
from weft.loop import Axis, AxisKind, Block, For, Function, Stmt, TensorInstruction, find_note, loads, make_block, seq
from weft.schedule.cursors.loop_nest import fresh_block_name
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import uses
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import Path, alloc_of, block_path, bounds_on, loops_on, replace, the_block
from weft.schedule.legality.bijection import is_injective, mixed_loops, starts_first
from weft.schedule.legality.flow_dependence import check_structured, covers_read, is_before, is_disjoint, uses_under
from weft.schedule.legality.placement import reduce_loops, written_buffers
from weft.schedule.legality.trust import is_trusted
from weft.schedule.rewriting.reduction_results import over_results


@primitive
def decompose_reduction(fn: Function, block: BlockRef, loop: LoopRef) -> tuple[Change, BlockRef]:
    """Moves the initialisation of *block* to just before *loop*; returns its block.

    Legal for a loop at or outside the outermost loop that the reduction runs over, if no iteration initialises a result again.
    """
    path = block_path(fn, block)
    update = the_block(path)
    loops = loops_on(path)
    depth = next((n for n, f in enumerate(loops) if f.var is loop.var), None)
    if update.init is None:
        refuse(
            f"{update.name} has no initialisation",
            update,
            "only a reduction that starts itself can be decomposed, once",
        )
    if depth is None:
        refuse(f"the loop {called(loop.var)} is not around {update.name}", update, "choose a loop around the reduction")
    reduced = reduce_loops(path)
    outside = [f for f in loops[:depth] if f in reduced]
    if outside:
        refuse(
            f"the reduction runs over {called(outside[0].var)} too, which is outside",
            outside[0],
            "choose that loop, or one further out",
        )
    _check_places(fn, update, loops[depth:])
    _check(fn, path, update, update.init, loops[depth])
    name = fresh_block_name(fn, f"{update.name}_init")
    init = _init_nest(path, update.init, name, loops[depth:])
    rest = _without_init(update)
    start = path.index(loops[depth])
    new = seq(init, replace(path[start:], rest))
    return Change(fn.with_body(replace(path[: start + 1], new))), BlockRef(name)


def _without_init(b: Block) -> Block:
    """Returns the block *b* as an update of the initialised result, which it now reads."""
    if find_note(b.notes, TensorInstruction) is not None:
        reads = tuple(dict.fromkeys([*b.writes, *b.reads]))
        return Block(b.name, b.axes, b.bindings, b.predicate, reads, b.writes, None, b.body, b.notes)
    return make_block(b.name, b.axes, b.bindings, b.body, None, b.predicate, b.notes)


def _check(fn: Function, path: Path, update: Block, init: Stmt, loop: For) -> None:
    """Refuses a loop in which the initialisation is not the first access of each result, once."""
    check_structured(loop)
    if mixed := mixed_loops(path):
        refuse(
            f"{called(mixed[0].var)} runs over the reduction and its results together",
            mixed[0],
            "fuse loops of the reduction only",
        )
    if not starts_first(path):
        refuse(
            f"{update.name} does not start in the first iteration of its loops",
            update,
            "each reduced axis must begin at 0 with its loops",
        )
    if not is_trusted() and not is_injective(fn, path, loop):
        refuse(
            f"{called(loop.var)} computes some results of {update.name} more than once",
            loop,
            "choose a loop inside the one that repeats them",
        )
    written = set(written_buffers(update))
    _check_others(fn, path, update, loop)
    if any(x.buffer not in written for x in loads(init)):
        refuse(
            f"the initialisation of {update.name} reads other results",
            update,
            "only a start from values that stay as they are can be moved",
        )
    if any(alloc_of(loop, b) is not None for b in written):
        refuse(
            f"each iteration of {called(loop.var)} has its own results of {update.name}",
            loop,
            "choose a loop inside it",
        )


def _check_others(fn: Function, path: Path, update: Block, loop: For) -> None:
    """Refuses blocks in *loop* that use the results before they are initialised there.

    Uses of other elements do not matter, nor an iteration's uses of a result after the update.
    """
    start = path.index(loop)
    found, around = uses_under(path[: start + 1]), {f.var for f in loops_on(path[: start + 1])}
    for own in [w for b in written_buffers(update) for w in found[b].writes if w.block is update]:
        uses = found[own.region.buffer]
        for other in (*uses.writes, *uses.reads):
            if other.block is update or is_disjoint(fn, own, other, around):
                continue
            if not (is_before(own.path, other.path) and covers_read(fn, own, other)):
                refuse(
                    f"{other.block.name} uses the results of {update.name} in the loop, too",
                    other.block,
                    "choose a loop inside the one that both are in",
                )


def _check_places(fn: Function, update: Block, moving: Sequence[For]) -> None:
    """Refuses results that share an element in turn while the loops *moving* run: only the last one would be initialised."""
    axes = {
        a.var: a.extent
        for a, b in zip(update.axes, update.bindings, strict=True)
        if a.kind is AxisKind.SPATIAL and any(uses(b, f.var) for f in moving)
    }
    for region in update.writes:
        indices = [r.begin for r in region.ranges]
        if axes.keys() <= set(indices):
            continue
        found = detect_iter_map(indices, axes, TRUE, region.buffer.shape, bounds_on((), fn))
        if found is None or not found.injective:
            refuse(
                f"results of {update.name} take turns in one place of {region.buffer.name}",
                update,
                "choose a loop inside the one along which they take turns",
            )


def _init_nest(path: Path, init: Stmt, name: str, loops: Sequence[For]) -> Stmt:
    """Builds the loops around the initialisation."""

    def build(variables: dict[Var, Var], axes: list[Axis], bindings: list[Expr], guard: Expr) -> Stmt:
        return make_block(name, axes, bindings, substitute(init, variables), None, guard)

    return over_results(path, loops, "_init", build)
