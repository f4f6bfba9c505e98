"""The facts of a group of blocks that is computed row by row: its rows, its vectors, and the values that a thread keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from weft.cost import LONG_ENOUGH, RowGroup, bytes_of, elements, size_of
from weft.ir import ONE, Const, free_vars, linear_terms
from weft.loop import Axis, Block, Buffer, Load, Store, loads
from weft.schedule.cursors.state import BlockRef
from weft.schedule.cursors.tree import alloc_of
from weft.schedule.rules.block_facts import (
    block_of,
    ignores_or_follows,
    inputs_of,
    is_reduction,
    reads_along,
    reduce_axes,
    spatial_axes,
)
from weft.schedule.rules.row_loops import shared_rows
from weft.schedule.schedule import Schedule


@dataclass(frozen=True)
class RowsOf:
    """The blocks of a group, and how many leading axes of each are the rows."""

    blocks: tuple[Block, ...]
    depth: int

    def own_axes(self, block: Block) -> list[Axis]:
        """Returns the axes along the row: those that a block reduces, or computes elements along."""
        axes = reduce_axes(block) or spatial_axes(block)[self.depth :]
        return [a for a in axes if a.extent is not ONE]

    def is_own_element(self, block: Block, x: Load | Store) -> bool:
        """Tells whether an access is to the element at the current position of the row, the same for all blocks."""
        rows = [a for a in spatial_axes(block)[: self.depth] if a.extent is not ONE]
        single = {a.var for a in block.axes if a.extent is ONE}
        moving = [i for i in x.indices if not isinstance(i, Const) and i not in single]
        return moving == [a.var for a in (*rows, *self.own_axes(block))]

    def extents(self, block: Block) -> list[object]:
        """Returns the extents of a block's axes along the row."""
        return [a.extent for a in self.own_axes(block)]


def rows_of(s: Schedule, refs: Sequence[BlockRef]) -> RowsOf | None:
    """Returns the rows of a group; None where a reduction has several results in a row, or only one of its own axes."""
    blocks = tuple([block_of(s, r) for r in refs])
    rows = RowsOf(blocks, shared_rows(blocks))
    if any(elements(spatial_axes(b)[rows.depth :]) > 1 for b in blocks if is_reduction(b)):
        return None
    return rows if all(rows.own_axes(b) for b in blocks if is_reduction(b)) else None


def group_facts(s: Schedule, rows: RowsOf) -> RowGroup:
    """Returns the facts on which the costs of a group depend."""
    blocks = rows.blocks
    own = [rows.own_axes(b) for b in blocks]
    last = gcd(*[int(a[-1].extent.value) if isinstance(a[-1].extent, Const) else 1 for a in own if a])
    held = [*kept_results(s, rows), *read_again(rows)]
    outer = spatial_axes(blocks[-1])[: rows.depth]
    return RowGroup(
        rows=elements(outer),
        multiple=_known_multiple(outer),
        width=max(elements(a) for a in own),
        reductions=sum(map(is_reduction, blocks)),
        blocks=len(blocks),
        passes=sum(map(bool, own)),
        bits=_vector_bits(rows),
        last=last,
        is_fixed=all(isinstance(a.extent, Const) for axes in own for a in axes),
        is_held=bool(held),
        side_by_side=_lie_side_by_side(rows),
        beside=len(_same_for_all_rows(rows)),
    )


def _known_multiple(axes: Sequence[Axis]) -> int:
    """Returns a divisor of the number of rows: the number itself if it is known, or if the rows are one axis.

    Where one symbolic axis ends is a condition on its index. Several are one loop, in which it is beyond proof.
    """
    several = [a for a in axes if a.extent is not ONE]
    if len(several) == 1:
        return elements(several)
    return prod([int(a.extent.value) for a in several if isinstance(a.extent, Const)])


def _vector_bits(rows: RowsOf) -> int:
    """Returns the bits of the narrowest element that is accessed in order along the row; 0 where any is not.

    Of several results, vectors are for the widest: a thread would store it in several parts, each of half a sector.
    """
    found: list[int] = []
    for b in rows.blocks:
        own = rows.own_axes(b)
        if not own:
            continue
        touched: list[Load | Store] = [*loads(b.body), *([b.body] if isinstance(b.body, Store) else [])]
        if not isinstance(b.body, Store) or not all(ignores_or_follows(x, own[-1].var) for x in touched):
            return 0
        found += [x.buffer.dtype.bits for x in touched if x.indices and reads_along(x, own[-1].var)]
    read = {x.buffer for b in rows.blocks for x in inputs_of(b)}
    stored = {w.buffer.dtype.bits for b in rows.blocks for w in b.writes if rows.own_axes(b) and w.buffer not in read}
    return max(stored) if len(stored) > 1 else min(found, default=0)


def _lie_side_by_side(rows: RowsOf) -> bool:
    """Tells whether most inputs of reductions are contiguous along the row."""
    along = across = 0
    for b in filter(is_reduction, rows.blocks):
        summed = {a.var: a for a in reduce_axes(b)}
        for x in inputs_of(b):
            moving = set(free_vars(x.indices[-1])) if x.indices else set()
            is_along = bool(moving) and (moving <= set(summed) or any(_is_chunk(x, a) for a in summed.values()))
            along += bytes_of(x.buffer) if is_along else 0
            across += bytes_of(x.buffer) if moving and not is_along else 0
    return along >= across


def _is_chunk(x: Load, axis: Axis) -> bool:
    """Tells whether *axis* runs through consecutive elements, those between two values of the other variables of an index."""
    moving = list(free_vars(x.indices[-1]))
    found, length = linear_terms(x.indices[-1], moving), size_of(axis.extent)
    if found is None or length < LONG_ENOUGH or found[0].get(axis.var) is not ONE:
        return False
    others = [found[0].get(v) for v in moving if v is not axis.var]
    return all(isinstance(n, Const) and int(n.value) >= length for n in others)


def _same_for_all_rows(rows: RowsOf) -> set[Buffer]:
    """Returns the inputs with an element for each of a row that do not depend on the row."""
    made = {w.buffer for b in rows.blocks for w in b.writes}
    found: set[Buffer] = set()
    for b in rows.blocks:
        own, outer = {a.var for a in rows.own_axes(b)}, {a.var for a in spatial_axes(b)[: rows.depth]}
        for x in inputs_of(b):
            moving = {v for i in x.indices for v in free_vars(i)}
            found |= {x.buffer} if outer and moving & own and not moving & outer and x.buffer not in made else set()
    return found


def kept_results(s: Schedule, rows: RowsOf) -> list[Buffer]:
    """Returns the intermediate results of which each thread reads only elements that it wrote itself."""
    return [
        w.buffer
        for b in rows.blocks[:-1]
        for w in b.writes
        if not is_reduction(b)
        and rows.own_axes(b)
        and alloc_of(s.function.body, w.buffer) is not None
        and isinstance(b.body, Store)
        and rows.is_own_element(b, b.body)
        and all(_reads_own(rows, b, user, w.buffer) for user in rows.blocks)
    ]


def _reads_own(rows: RowsOf, like: Block, user: Block, buffer: Buffer) -> bool:
    """Tells whether a block reads of *buffer* only the element of its place in the row, if any, as *like* has it."""
    read = [x for x in inputs_of(user) if x.buffer is buffer]
    return not read or (rows.extents(user) == rows.extents(like) and all(rows.is_own_element(user, x) for x in read))


def twin_results(s: Schedule, refs: Sequence[BlockRef]) -> list[BlockRef]:
    """Returns the last blocks of a group, if several store what the block before them computes, each in a form of its own."""
    blocks = [block_of(s, r) for r in refs]
    read = {x.buffer for b in blocks for x in inputs_of(b)}
    count = next((n for n, b in enumerate(reversed(blocks)) if any(w.buffer in read for w in b.writes)), 0)
    if count < 2 or any(map(is_reduction, blocks[-count - 1 :])):
        return []
    made = {w.buffer for w in blocks[-count - 1].writes}
    return list(refs[-count:]) if all(made >= {x.buffer for x in inputs_of(b)} for b in blocks[-count:]) else []


def read_again(rows: RowsOf) -> dict[Buffer, list[Block]]:
    """Returns the inputs that several blocks of a group read at the current position of the row, with these blocks."""
    made = {w.buffer for b in rows.blocks for w in b.writes}
    found: dict[Buffer, list[Block]] = {}
    for b in rows.blocks:
        for buffer in dict.fromkeys(x.buffer for x in inputs_of(b) if x.buffer not in made):
            if rows.own_axes(b) and _reads_own(rows, b, b, buffer):
                found.setdefault(buffer, []).append(b)
    return {
        buffer: users
        for buffer, users in found.items()
        if len(users) > 1 and all(rows.extents(u) == rows.extents(users[0]) for u in users)
    }
