"""Skipping the products of a convolution's window with the padding around its input.

    for y in range(0, 4):                   y = 0:  for k: sums of all rows of the tile but the first      (ky = 0)
        for ky in range(0, 3):                      for k: sums of the whole tile                           (ky = 1)
            for k: sums of a tile    ->             ...
                                            for y in range(1, 3): ...

A tile of a single row needs no such copies: all its sums have the same taps, so that the loop over `ky` runs over those alone.

On small images much of a window is outside: a fifth of the products of 3 x 3 taps on 7 x 7 outputs. A register tile's sums are
unrolled, so that those for which a tap reads padding can be omitted from that tap's code, if each tap and each tile at the
border has code of its own (unrolling and peeling). No padded copy of the input is made then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod

import numpy as np

from weft.cost import (
    FALLBACK_SIZE,
    LARGEST_CONDITION_TABLE,
    Candidate,
    Planner,
    SkipPadding,
    enough_tasks,
    padding_plans,
)
from weft.ir import Binary, Const, Expr, Var, conjuncts, free_vars, post_order, substitute
from weft.loop import AxisKind, Block, Load, Store
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.access_region import at_loops
from weft.schedule.legality.placement import sole_reader, writers
from weft.schedule.legality.sum_of_products import chooses_zero
from weft.schedule.rules.block_facts import block_of, contraction_of, loops_of, spatial_axes
from weft.schedule.schedule import Schedule
from weft.targets import Target


@dataclass(frozen=True)
class Padding:
    """The block that pads the left factor of a sum of products, and the conditions on the sum's axes that hold *inside* of it.

    A *share* of all products is inside.
    """

    writer: BlockRef
    inside: tuple[Expr, ...]
    share: float


def padding_of(s: Schedule, ref: BlockRef) -> Padding | None:
    """Returns the padding of a sum of products; None if there is none, or its domain is too large to be enumerated."""
    block = block_of(s, ref)
    found, axes = contraction_of(block), spatial_axes(block)
    makers = [] if found is None else writers(s.function, found.left.buffer)
    if found is None or len(makers) != 1 or sole_reader(s.function, makers[0]) is not block:
        return None
    cond = _condition(makers[0], found.left)
    if cond is None or not all(isinstance(n, Var | Const | Binary) for n in post_order(cond)):
        return None
    sizes = {a.var: int(a.extent.value) for a in block.axes if isinstance(a.extent, Const)}
    if axes[-1].var in free_vars(cond) or not set(free_vars(cond)) <= sizes.keys():
        return None
    inside = tuple(conjuncts(cond))
    share = _share(inside, sizes)
    return None if share is None else Padding(BlockRef(makers[0].name), inside, share)


def _condition(writer: Block, read: Load) -> Expr | None:
    """Returns, in terms of the indices of *read*, the condition that *writer* copies its input; None if it is no zero padding."""
    store = writer.body
    if not isinstance(store, Store) or not chooses_zero(store.value) or not isinstance(store.value.then, Load):
        return None
    at = [i for i in store.indices if isinstance(i, Var)]
    if len(set(at)) < len(store.indices):
        return None
    return substitute(store.value.cond, dict(zip(at, read.indices, strict=True)))


def _share(conditions: Sequence[Expr], sizes: Mapping[Var, int]) -> float | None:
    """Returns the share of a box's points for which all *conditions* hold; None where the box is too large to be enumerated."""
    share, left = 1.0, list(conditions)
    while left:
        group = [left.pop(0)]
        used = set(free_vars(group[0]))
        while more := [c for c in left if not used.isdisjoint(free_vars(c))]:
            group += more
            left = [c for c in left if c not in more]
            used.update(v for c in more for v in free_vars(c))
        box = {v: n for v, n in sizes.items() if v in used}
        if prod(box.values()) > LARGEST_CONDITION_TABLE:
            return None
        share *= float(np.logical_and.reduce([_table(c, box) for c in group]).mean())
    return share


def _table(e: Expr, box: Mapping[Var, int]) -> np.ndarray:
    """Returns the values of *e* for all values of the variables that *box* has the numbers of, an axis for each."""
    grid = dict(zip(box, np.indices(tuple(box.values()), sparse=True), strict=True))

    def value(n: Expr) -> np.ndarray:
        if isinstance(n, Var):
            return grid[n]
        if isinstance(n, Binary):
            return np.asarray(type(n).numpy(value(n.a), value(n.b)))
        return np.asarray(n.value if isinstance(n, Const) else None)

    return np.broadcast_to(value(e), tuple(box.values()))


@dataclass(frozen=True)
class Skipping:
    """How to skip padding: the loops over *taps*, those *unrolled*, and the points at which to partition loops around tiles.

    There are then so many *copies* of a tile.
    """

    padding: Padding
    taps: tuple[LoopRef, ...]
    unrolled: tuple[LoopRef, ...]
    cuts: tuple[tuple[LoopRef, tuple[int, ...]], ...]
    copies: int

    @property
    def cut(self) -> list[LoopRef]:
        """The loops that are partitioned."""
        return [f for f, _ in self.cuts]

    def uncut(self, outer: Sequence[LoopRef]) -> list[LoopRef]:
        """Returns the loops *outer* down to the first that is partitioned."""
        return list(takewhile(lambda f: f not in self.cut, outer))


def skipping(s: Schedule, ref: BlockRef, outer: Sequence[LoopRef], sums: int, p: Planner) -> Skipping | None:
    """Returns how a tiled sum of products skips padding; None if it does not.

    A tile has *sums* vectors of sums; *outer* are the loops around tiles. All other loops that conditions depend on are unrolled
    or run over taps. A condition that is the same for all sums of a tile needs no code of its own: it bounds the loop over taps
    (`lower.loops.trim_loops`).
    """
    padding = padding_of(s, ref)
    if padding is None:
        return None
    block = block_of(s, ref)
    inside = [at_loops(block, c) for c in padding.inside]
    used = {v for c in inside for v in free_vars(c)}
    sizes = {f.var: s.extent(f) or 0 for f in s.loops(ref)}
    taps = tuple([f for f in loops_of(s, ref, s.loops(ref), AxisKind.REDUCE) if f.var in used])
    in_tile = sizes.keys() - {f.var for f in (*outer, *taps)}
    various = [c for c in inside if not in_tile.isdisjoint(free_vars(c))]
    unrolled = tuple([f for f in taps if any(f.var in free_vars(c) for c in various)])
    cuts = tuple([(f, points) for f in outer if f.var in used and (points := _changes(f, various, sizes))])
    copies = (
        prod([sizes[f.var] for f in unrolled]) * prod([len(points) + 1 for _, points in cuts]) * _variants(block, cuts)
    )
    found = Skipping(padding, taps, unrolled, cuts, copies)
    left = [s.extent(f) or FALLBACK_SIZE for f in found.uncut(outer)]

    def plans(m: Target) -> Iterator[Candidate[SkipPadding]]:
        return padding_plans(padding.share, sums * copies, m, is_shared_out=enough_tasks(left, m))

    return found if p.decide(ref.name, SkipPadding, plans).skip else None


def _variants(block: Block, cuts: Sequence[tuple[LoopRef, tuple[int, ...]]]) -> int:
    """Returns how many versions of a tile decide all guards of *block* that partitioning leaves."""
    decided = {f.var for f, _ in cuts}
    return 1 << sum(decided.isdisjoint(free_vars(c)) for c in conjuncts(block.predicate))


def _changes(loop: LoopRef, conditions: Sequence[Expr], sizes: Mapping[Var, int]) -> tuple[int, ...]:
    """Returns the iterations of *loop* in which any of *conditions* may differ from the iteration before."""
    changed: set[int] = set()
    for c in conditions:
        box = {v: n for v, n in sizes.items() if v in free_vars(c)}
        if loop.var in box:
            table = np.moveaxis(_table(c, box), list(box).index(loop.var), 0).reshape(box[loop.var], -1)
            changed.update((np.flatnonzero((table[1:] != table[:-1]).any(axis=1)) + 1).tolist())
    return tuple(sorted(changed))


def put_channels_inside(s: Schedule, ref: BlockRef, how: Skipping, innermost: LoopRef) -> LoopRef:
    """Puts another loop of a reduction inside those over taps if none is; returns the innermost one.

    Unrolled taps share loads, and LLVM would keep all of these for the next tap in registers that the sums need.
    """
    others = [f for f in loops_of(s, ref, s.loops(ref), AxisKind.REDUCE) if f not in how.taps and s.extent(f) != 1]
    if not others or innermost not in how.taps:
        return innermost
    s.reorder([*how.taps, others[-1]])
    return others[-1]


def skip_padding(s: Schedule, ref: BlockRef, how: Skipping) -> set[BlockRef]:
    """Skips the padding, once all else is chosen for the tiles of a sum of products; returns the blocks that this adds."""
    s.compute_inline(how.padding.writer)
    s.skip_zeros(ref)
    for tap in how.unrolled:
        s.unroll(tap)
    before = set(s.blocks())
    for loop, points in reversed(how.cuts):
        s.partition(loop, points)
    return set(s.blocks()) - before
