"""The parts of factors in shared memory: their layout, and the distribution of their fetches over threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from weft.cost import BANKS, NEAR_STEPS, UNROLLED_FETCHES, WORD, SharedTile, size_of
from weft.ir import Select, Var
from weft.loop import Store
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.placement import writers
from weft.schedule.rules.block_facts import block_of, inputs_of
from weft.schedule.rules.grid.tile_axes import TileAxes, counts_terms
from weft.schedule.schedule import Schedule


def lay_out_part(s: Schedule, ref: BlockRef, copy: BlockRef, axes: TileAxes, tile: SharedTile) -> bool:
    """Lays a copy out by steps, then by rows or columns, which threads read side by side; tells whether threads write it
    transposed.

    That is so where it is fetched along the steps: rows of such a stride begin in different banks.
    """
    written = block_of(s, copy).writes[0].buffer
    read = next(x for x in inputs_of(block_of(s, ref)) if x.buffer is written).indices
    sizes = {axes.row.var: tile.high, axes.column.var: tile.wide}
    side = [(n, sizes[i]) for n, i in enumerate(read) if isinstance(i, Var) and i in sizes]
    steps = [n for n, i in enumerate(read) if counts_terms(i, axes.depth.var, tile.depth)]
    if len(side) != 1 or len(steps) != 1:  # a part of an image, whose rows are windows into longer ones
        return False
    names = [f"x{n}" for n in range(len(read))]
    (place, width) = side[0]
    x, k = names[place], names[steps[0]]
    to = [n for n in names if n not in (x, k)]
    to += [f"{x} // {width}", f"{k} // {tile.steps}", f"{k} % {tile.steps}", f"{x} % {width}"]
    s.transform_layout(copy, written.name, f"{', '.join(names)} -> {', '.join(to)}")
    is_across = steps[0] > place
    if is_across:
        turn = max(1, BANKS // min(tile.steps, NEAR_STEPS))
        s.storage_align(copy, len(to) - 2, 2 * turn, turn)
    return is_across


def fetch_together(s: Schedule, copy: BlockRef, around: int, tile: SharedTile, *, across: bool) -> None:
    """Distributes the elements of a copy over the threads of a block, neighbours to neighbours, or transposed for *across*.

    Where threads do not share them evenly, each row has threads of its own: divisions would hide which are in bounds.
    """
    loops = list(s.loops(copy))[around:]
    if across and len(loops) == 2:
        loops = _near_steps_first(s, loops, tile)
    lanes = 1 if across and tile.copies > 1 else _lanes(s, copy, loops[-1], tile)
    words = prod([s.extent(f) or 1 for f in loops]) // lanes
    sharing = _sharing(words, tile)
    if len(loops) == 1 or words % prod(sharing) == 0:
        whole = s.fuse(loops) if len(loops) > 1 else loops[0]
        *threads, lane = s.split(whole, [None, *sharing, lanes])
    else:
        outer, y = s.split(loops[-2], [None, min(tile.y, s.extent(loops[-2]) or 1)])
        _, x, lane = s.split(loops[-1], [None, min(tile.x, (s.extent(loops[-1]) or 1) // lanes), lanes])
        threads = [outer, y, x]
    _bind(s, threads)
    if lanes > 1:
        s.vectorize(lane)


def _near_steps_first(s: Schedule, loops: list[LoopRef], tile: SharedTile) -> list[LoopRef]:
    """Returns the loops over rows and steps, by few steps of all rows where threads can share those evenly.

    Divisions would hide which are in bounds.
    """
    rows, steps = [s.extent(f) or 1 for f in loops]
    part, at_once = rows * NEAR_STEPS, tile.threads * tile.lanes
    if steps % NEAR_STEPS != 0 or (part % at_once != 0 and at_once % part != 0):
        return loops
    high, low = s.split(loops[1], [None, NEAR_STEPS])
    made = [high, loops[0], low]
    s.reorder(made)
    return made


def _lanes(s: Schedule, copy: BlockRef, last: LoopRef, tile: SharedTile) -> int:
    """Returns the elements of a vector fetch: more than one where rows of words are whole vectors.

    Patches that are chosen by conditions are in no order that vectors have.
    """
    source = inputs_of(block_of(s, copy))[0].buffer
    is_chosen = any(isinstance(b.body, Store) and isinstance(b.body.value, Select) for b in writers(s.function, source))
    has_vectors = source.dtype.bits == WORD and size_of(source.shape[-1]) % tile.lanes == 0 and not is_chosen
    return tile.lanes if has_vectors and (s.extent(last) or 1) % tile.lanes == 0 else 1


def _sharing(elements: int | None, tile: SharedTile) -> tuple[int, int, int]:
    """Returns how many threads along z, y and x fetch so many elements: no more than have whole rows, which need no condition."""
    if elements is None or elements % tile.x != 0:
        return tile.layers, tile.y, tile.x
    rows = elements // tile.x
    y = min(tile.y, rows)
    return gcd(tile.layers, rows // y) if rows % y == 0 else 1, y, tile.x


def _bind(s: Schedule, loops: Sequence[LoopRef]) -> None:
    """Binds all but the first of the loops to thread axes; the fetches of a thread are in flight together."""
    outer, *threads = loops
    for loop, axis in zip(reversed(threads), ("threadIdx.x", "threadIdx.y", "threadIdx.z"), strict=False):
        if axis != "threadIdx.z" or s.extent(loop) != 1:
            s.bind(loop, axis)
    if (s.extent(outer) or UNROLLED_FETCHES) < UNROLLED_FETCHES:
        s.unroll(outer)
