"""Attention whose keys are split over blocks of threads, for a few rows of queries and many keys (split-KV).

    for each split of the keys, for each block of rows:     # as in `attention_loops`, over the keys of the split
        sums, totals, largest of each row in global memory
    for each row and column:
        top = the largest of all splits
        Y = (sum of sums * exp(largest - top)) / (sum of totals * exp(largest - top))

After Dao, Haziza, Massa and Sizov, "Flash-Decoding for long-context inference" (2023): one row of queries has one block for each
head, which keeps few multiprocessors busy.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import MERGE_THREADS, MOST_FETCHES, AttentionTile, size_of
from weft.ir import ZERO, Const, Expr, Var, ceil_div, index, maximum, substitute
from weft.loop import Alloc, Buffer, Load, Stmt, seq, store
from weft.schedule.legality.attention_form import Attention
from weft.schedule.rewriting.attention_loops import LOWEST, AttentionLoops, Threads
from weft.schedule.rewriting.loops_of_threads import bound, guarded, in_parts
from weft.support.dtypes import f32


def can_split(found: Attention, tile: AttentionTile) -> bool:
    """Tells whether all sizes are constants, and threads multiply for themselves."""
    return not tile.warps and all(isinstance(e, Const) for e in found.extents.values())


class SplitLoops(AttentionLoops):
    """Builds the loops of an attention whose sizes are constants, in two kernels: each split by itself, and all together."""

    def __init__(self, found: Attention, tile: AttentionTile) -> None:
        super().__init__(found, tile)
        self.split = Var("split")
        sizes = [size_of(found.extents[v]) for v in found.batch]
        rows = (tile.splits, *sizes, size_of(found.extents[found.row]))
        self.parts = Buffer("parts", (*rows, self.columns), f32)
        self.totals, self.tops = Buffer("totals", rows, f32), Buffer("tops", rows, f32)

    def loops(self) -> Stmt:
        """Returns the loops of both kernels."""
        apart = bound(self.split, index(self.tile.splits), super().loops(), "blockIdx.z")
        made = seq(apart, self._merged())
        for b in (self.parts, self.totals, self.tops):
            made = Alloc(b, made)
        return made

    def steps(self) -> Expr:
        """Returns the number of steps of a block along the keys of its split."""
        return ceil_div(super().steps(), index(self.tile.splits))

    def first_key(self) -> Expr:
        """Returns the first key of a step."""
        return (self.split * self.steps() + self.step) * index(self.tile.width)

    def result(self, row: Expr, column: Expr, weighted: Expr, total: Expr) -> Stmt:
        """Stores an element of a split's result."""
        return store(self.parts, (self.split, *self._of_batch(), row, column), weighted)

    def row_result(self, t: Threads, r: Expr) -> Sequence[Stmt]:
        """Stores the sum of a row's weights, and the largest score that they are relative to, by one of the row's threads."""
        place = (self.split, *self._of_batch(), self.of_all_rows(self.row(t, r)))
        stores = [
            store(b, place, Load(own, (*t, r))) for b, own in ((self.totals, self.total), (self.tops, self.largest))
        ]
        return (guarded(t[-1] < index(1), seq(*stores)),)

    def _of_batch(self) -> tuple[Expr, ...]:
        return tuple([self.places[0][v] for v in self.found.batch])

    def _merged(self) -> Stmt:
        """Returns the second kernel, a thread for each element."""
        side = min(self.columns, MERGE_THREADS)
        batch, row, block, thread = Var("batch"), Var("row"), Var("block"), Var("x")
        column = block * index(side) + thread
        element = guarded(self.has(self.found.column, column, side), self._element(row, column, thread, side))
        made = bound(thread, index(side), substitute(element, {self.batch: batch}), "threadIdx.x")
        made = bound(block, index(-(-self.columns // side)), made, "blockIdx.z")
        made = bound(row, self.found.extents[self.found.row], made, "blockIdx.x")
        return bound(batch, self.places[1], made, "blockIdx.y")

    def _element(self, row: Expr, column: Expr, thread: Expr, side: int) -> Stmt:
        """Computes an element from the parts of all splits."""
        splits, place = self.tile.splits, (thread, ZERO)
        top, total, weighted = (Buffer(n, (side, 1), f32, "register") for n in ("top", "total", "weighted"))

        def part(b: Buffer, s: Expr, *last: Expr) -> Expr:
            return Load(b, (s, *self._of_batch(), row, *last))

        def compared(s: Expr) -> Stmt:
            return store(top, place, maximum(Load(top, place), part(self.tops, s)))

        def added(s: Expr) -> Stmt:
            scale = self.power(part(self.tops, s), Load(top, place))
            return seq(
                store(total, place, Load(total, place) + part(self.totals, s) * scale),
                store(weighted, place, Load(weighted, place) + part(self.parts, s, column) * scale),
            )

        made = seq(
            store(top, place, LOWEST),
            store(total, place, 0.0),
            store(weighted, place, 0.0),
            in_parts(splits, MOST_FETCHES, compared),
            in_parts(splits, MOST_FETCHES, added),
            super().result(row, column, Load(weighted, place), Load(total, place)),
        )
        for b in (top, total, weighted):
            made = Alloc(b, made)
        return made
