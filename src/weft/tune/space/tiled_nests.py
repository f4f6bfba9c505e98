"""The loops of tiled contractions and sketches from the decisions of many points at once, without scheduling.

Tiles of the rule for contractions are sketches with no cache tiles and a fixed order, so that one description serves both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.cost import (
    CacheTile,
    Choosing,
    Decision,
    InnerOrder,
    Order,
    OuterOrder,
    ReduceOrder,
    ReduceTile,
    RegisterTile,
    Rule,
    Tile,
    elements,
    may_unroll,
    operations_of,
    remainder_versions,
    size_of,
    tiles_held,
)
from weft.ir import Expr, RangesOrZero
from weft.loop import Block, Buffer, LoopKind, Program, Store, loads
from weft.schedule import (
    Part,
    Roles,
    Schedule,
    block_of,
    carry_out,
    inline_blocks,
    parts_of,
    reduce_axes,
    roles_of,
    spatial_axes,
)
from weft.targets import Target
from weft.tune.features import KINDS, Ints, NestAccess, NestBatch

_SERIAL, _PARALLEL, _UNROLLED, _VECTORIZED = (
    KINDS.index(k) for k in (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED, LoopKind.VECTORIZED)
)
TILINGS: Final = ("tiled", "sketch")
"""The rules whose loops are described here."""


@dataclass(frozen=True, eq=False)
class Tilings:
    """The sizes and orders of n sketches of a reduction with S spatial parts and R reduced axes.

    *tile*, *held* and *outer*, *inner* are [n, S]: elements of a register tile, register tiles of a cache tile, and the parts in
    the order of their loops. *steps* and *order* are [n, R]: inner steps of the reduction, unrolled or not, and the order of its
    outer loops. *threads* [n] are the outer loops that run in parallel.
    """

    tile: Ints
    held: Ints
    outer: Ints
    inner: Ints
    steps: Ints
    unrolled: Ints
    order: Ints
    threads: Ints


class TiledBlock:
    """A reduction that is tiled: its axes taken apart, and its accesses by them; reduced axes of one step have no loop."""

    def __init__(self, block: Block, machine: Target) -> None:
        if not isinstance(block.body, Store):
            raise TypeError("a reduction of one result is tiled, no other block")
        self.block = block
        self.lanes = machine.lanes(block.writes[0].buffer.dtype.bits)
        self.parts: list[Part] = [p for a in spatial_axes(block) for p in parts_of(a, block)]
        self.sums = [size_of(a.extent) for a in reduce_axes(block)]
        self.looped = [n for n, size in enumerate(self.sums) if size > 1] or [0]
        self.reduced = [self.sums[n] for n in self.looped]
        self.spatial = [p.size for p in self.parts]
        self.roles: Roles = roles_of(block, self.parts[:-1])
        store = block.body
        read = dict.fromkeys((x.buffer, x.indices) for x in loads(store.value) if x.buffer is not store.buffer)
        written = self._access(store.buffer, store.indices, is_store=True)
        self.accesses = (written, *[self._access(b, i, is_store=False) for b, i in read])
        self.operations = operations_of(store.value, fma=True)

    def _access(self, buffer: Buffer, indices: Sequence[Expr], *, is_store: bool) -> NestAccess:
        variables = [(p.axis.var, 1 if p.inside else p.group) for p in self.parts]
        variables += [(a.var, 1) for a in reduce_axes(self.block)]
        here = RangesOrZero({})
        moves = [
            [RangesOrZero({v: (by, by)}).ends_of(i)[0] - here.ends_of(i)[0] for v, by in variables] for i in indices
        ]
        coefficients = np.asarray(moves, np.int64).reshape(len(indices), len(variables))
        shape = tuple([size_of(s) for s in buffer.shape])
        return NestAccess(buffer.name, shape, buffer.dtype.bytes, coefficients, is_store, in_registers=is_store)

    def sketch(self, domains: dict[type[Decision], list[Any]], threads: Ints) -> Tilings:
        """Returns the tilings of sketches whose decisions of each kind are those of *domains*, a list of n."""

        def table(kind: type[Decision], field: str) -> Ints:
            return np.asarray([getattr(d, field) for d in domains[kind]], np.int64)

        tile = table(RegisterTile, "sizes")
        counts = _ceil(np.asarray(self.spatial), tile)
        return Tilings(
            tile=tile,
            held=_held(counts, table(CacheTile, "sizes")),
            outer=table(OuterOrder, "axes"),
            inner=table(InnerOrder, "axes"),
            steps=table(ReduceTile, "sizes"),
            unrolled=table(ReduceTile, "unroll") * self._may_unroll(tile, table(ReduceTile, "sizes")),
            order=table(ReduceOrder, "axes"),
            threads=threads,
        )

    def _may_unroll(self, tiles: Ints, steps: Ints) -> Ints:
        """Returns whether the inner *steps* of the reduction are unrolled in each of *tiles*."""
        sums = tiles[:, :-1].prod(axis=1) * _ceil(tiles[:, -1], np.asarray(self.lanes))
        versions = [remainder_versions(self.spatial, t) for t in tiles.tolist()]
        asked = zip(steps.prod(axis=1).tolist(), sums.tolist(), versions, strict=True)
        return np.array([may_unroll(*a) for a in asked], np.int64)

    def tiles(self, tiles: Sequence[Tile], orders: Sequence[Order], threads: Ints) -> Tilings:
        """Returns the tilings that the rule for contractions makes of its decisions."""
        n, axes = len(tiles), len(self.parts)
        size = np.ones((n, axes), np.int64)
        for part, field in (
            (self.roles.row, "rows"),
            (self.roles.column, "columns"),
            (self.roles.outer_row, "outer_rows"),
        ):
            if part is not None:
                size[:, part] = [getattr(t, field) for t in tiles]
        size[:, -1] = [t.width for t in tiles]
        by_panels, by_rows = np.asarray(self._panels_outside()), np.arange(axes)
        near = np.asarray([o.by_rows for o in orders])[:, None]
        ones = np.ones((n, len(self.reduced)), np.int64)
        return Tilings(
            tile=size,
            held=np.ones_like(size),
            outer=np.where(near, by_rows, by_panels),
            inner=np.broadcast_to(by_rows, size.shape),
            steps=ones,
            unrolled=np.zeros(n, np.int64),
            order=np.broadcast_to(np.arange(len(self.reduced)), ones.shape),
            threads=threads,
        )

    def _panels_outside(self) -> list[int]:
        """Returns the order of loops in which a panel of B stays in cache: those over panels outside of those over rows."""
        order = list(range(len(self.parts)))
        row, column = self.roles.row, self.roles.column
        panel = order.pop()
        order.insert(row if row is not None else len(order), panel)
        if column is not None and row is not None and column > row:
            order.remove(column)
            order.insert(order.index(row), column)
        return order

    def nests(self, t: Tilings) -> NestBatch:
        """Returns the nests of tilings."""
        n, count = len(t.tile), len(self.parts)
        extents = np.asarray(self.spatial)
        tiles = _ceil(extents, t.tile)
        reduced = np.broadcast_to(np.asarray(self.reduced), t.steps.shape)
        places = np.broadcast_to(np.arange(count), t.tile.shape)
        sums = np.broadcast_to(count + np.asarray(self.looped), t.steps.shape)
        outer_kind = np.where(np.arange(count)[None, :] < t.threads[:, None], _PARALLEL, _SERIAL)
        inner_kind = np.where(t.unrolled[:, None] > 0, _UNROLLED, _SERIAL) + np.zeros_like(t.steps)
        tile_kind = np.broadcast_to([*[_UNROLLED] * (count - 1), _VECTORIZED], t.tile.shape)
        levels = [
            (t.outer, _at(_ceil(tiles, t.held), t.outer), _at(t.tile * t.held, t.outer), outer_kind),
            (t.inner, _at(t.held, t.inner), _at(t.tile, t.inner), np.full_like(t.held, _SERIAL)),
            (
                _at(sums, t.order),
                _at(_ceil(reduced, t.steps), t.order),
                _at(t.steps, t.order),
                np.full_like(sums, _SERIAL),
            ),
            (sums, t.steps, np.ones_like(t.steps), inner_kind),
            (places, t.tile, np.ones_like(t.tile), tile_kind),
        ]
        axis, extent, step, kind = (np.concatenate([x[i] for x in levels], axis=1) for i in range(4))
        return NestBatch(
            accesses=self.accesses,
            is_reduction=(*[False] * count, *[True] * len(self.sums)),
            operations=self.operations,
            axis=axis,
            extent=extent,
            step=step,
            kind=kind,
            decisions=np.zeros((n, 0), np.float32),
            decision_names=(),
            axis_sizes=(*self.spatial, *self.sums),
        )


def find_tiled_block(program: Program, machine: Target) -> TiledBlock | None:
    """Returns the block of *program* whose tile is decided on, of several the one with the most work; None if there is none."""
    planner = Choosing(machine)
    carry_out(program, planner)
    names = {q.subject for q in planner.questions if isinstance(q.chosen.decision, Rule)}
    s = Schedule(program)
    inline_blocks(s, Choosing(machine))
    blocks = [b for ref in s.blocks() if (b := block_of(s, ref)).name in names and isinstance(b.body, Store)]
    return TiledBlock(max(blocks, key=lambda b: elements(b.axes)), machine) if blocks else None


def _held(counts: Ints, wanted: Ints) -> Ints:
    """Returns `tiles_held` of each pair."""
    pairs, where = np.unique(np.stack([counts, wanted], axis=-1).reshape(-1, 2), axis=0, return_inverse=True)
    held = np.array([tiles_held(int(c), int(w)) for c, w in pairs], np.int64)
    return held[where].reshape(counts.shape)


def _ceil(a: Ints, b: Ints) -> Ints:
    return -(-a // b)


def _at(table: Ints, order: Ints) -> Ints:
    """Returns the columns of each row of *table* in the order that *order* gives for that row."""
    return np.take_along_axis(np.broadcast_to(table, order.shape), order, axis=1)
