"""The epilogue of a tiled reduction: the element-wise work on a tile before it is stored."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, Var, free_vars
from weft.loop import Block
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.placement import sole_reader
from weft.schedule.rules.block_facts import block_of, inputs_of, is_reduction, spatial_axes, split_index
from weft.schedule.schedule import Schedule


def epilogue_block(s: Schedule, ref: BlockRef) -> tuple[BlockRef, list[LoopRef]]:
    """Returns the epilogue block of a reduction, and its loops, one for each spatial axis of the reduction.

    It is the one reader of the result, if that reads it in matching order, else a new copy (`cache_write`).
    """
    block = block_of(s, ref)
    user = sole_reader(s.function, block)
    if user is not None and not is_reduction(user):
        found = BlockRef(user.name)
        loops = _aligned(s, block, found)
        if loops is not None:
            return found, loops
    copy = s.cache_write(ref, "register")
    return copy, list(s.loops(copy))


def _aligned(s: Schedule, block: Block, user: BlockRef) -> list[LoopRef] | None:
    """Returns the user's loops in the order of the axes of *block*; None if it reads the result in another order.

    Two axes may correspond to one loop of the user, which is then split: a panel and a column in it, a phase and a position.
    """
    reader = block_of(s, user)
    written = block.writes[0].buffer
    reads = [x for x in inputs_of(reader) if x.buffer is written]
    axes = [a.var for a in spatial_axes(reader)]
    if len(reads) != 1 or len(axes) != len(reader.axes):
        return None
    parts = [(i, None) if isinstance(i, Var) else split_index(i) for i in reads[0].indices]
    sizes = dict(p for p in parts if p is not None)
    if None in parts or set(sizes) != set(axes) or not all(_is_whole(reads[0].indices, v, c) for v, c in sizes.items()):
        return None
    made: dict[Expr, LoopRef] = {}
    for v, loop in zip(axes, s.loops(user), strict=True):
        size = sizes[v]
        names, pieces = ([v], [loop]) if size is None else ([v // size, v % size], list(s.split(loop, [None, size])))
        made |= zip(names, pieces, strict=True)
    return [made[i] for i in reads[0].indices]


def _is_whole(indices: Sequence[Expr], v: Var, size: int | None) -> bool:
    """Tells whether *indices* have *v* once, as it is or, where there is a *size*, as a quotient and a remainder."""
    wanted = {v} if size is None else {v // size, v % size}
    found = [i for i in indices if v in free_vars(i)]
    return len(found) == len(wanted) and set(found) == wanted
