"""The loops of an attention whose products are made by groups of four warps, with keys and values fetched ahead.

    for each block of rows:
        q = rows of Q                                   # registers of each warp
        for each block of keys:                         # k and v of the next one are on their way
            s = f(q k')                                 # registers of each thread
            ...                                         # the softmax, in the threads of each warp alone
            acc += p v                                  # p, too, in registers of the warp

A warp has 16 rows, and a thread rows y and y + 8 of them. Queries and weights are left factors, which instructions take from the
registers of a warp as they leave their sums (the memory scope `fragment`); keys and values lie in swizzled memory, rows of terms
and rows of columns (Shah et al., "FlashAttention-3", 2024, section 3).
"""

from __future__ import annotations

from collections.abc import Callable

from weft.cost import AttentionTile, size_of
from weft.ir import ONE, ZERO, Bounds, Expr, Var, index, known_divisor, simplify, substitute
from weft.loop import Address, Buffer, Call, Load, LoopKind, Stmt, for_, loads, seq, store
from weft.schedule.legality.attention_form import Attention
from weft.schedule.rewriting.attention_fragments import FragmentLoops
from weft.schedule.rewriting.attention_loops import Threads
from weft.schedule.rewriting.loops_of_threads import each, vector_store
from weft.support.dtypes import f32
from weft.targets.instructions import (
    COPY_BYTES,
    FRAGMENT,
    GROUP_COLUMNS,
    REGISTER_GROUP_INSTRUCTIONS,
    SWIZZLED_BYTES,
    WARPS_OF_GROUP,
)


def has_groups(found: Attention, tile: AttentionTile) -> bool:
    """Tells whether a tile has whole groups of warps, sums of whole instructions, and factors that are copied in pieces."""
    depth, columns = (size_of(found.extents[v]) for v in (found.depth, found.column))
    row = SWIZZLED_BYTES // found.keys.dtype.bytes
    is_whole = tile.warps % WARPS_OF_GROUP == 0 and depth % row == 0
    return (
        is_whole
        and {columns, tile.width} <= set(GROUP_COLUMNS)
        and _has_pieces(found.keys, found.depth)
        and _has_pieces(found.values, found.column)
        and isinstance(found.query, Load)
    )


def _has_pieces(e: Expr, v: Var) -> bool:
    """Tells whether *e* is an element of memory, of which those along *v* lie side by side in whole pieces of a copy."""
    if not isinstance(e, Load):
        return False
    lanes = max(COPY_BYTES) // e.dtype.bytes
    piece, lane = Var("piece"), Var("lane")
    at: Expr = ZERO
    for i, stride in zip(e.indices, e.buffer.row_major_strides(), strict=True):
        at = at + i * stride
    bounds = Bounds().bind(lane, ZERO, index(lanes - 1))
    first = simplify(substitute(at, {v: piece * index(lanes)}))
    step = simplify(substitute(at, {v: piece * index(lanes) + lane}) - first - lane, bounds)
    return step is ZERO and known_divisor(first) % lanes == 0


class GroupLoops(FragmentLoops):
    """Builds the loops of an attention that `narrow_attention` made, for a tile of groups of warps."""

    def make_shared(self) -> None:
        """Makes matrices of rows of swizzled memory, and those of a warp."""
        tile, row = self.tile, SWIZZLED_BYTES // self.element.bytes
        self.side_by_side = index(row)
        self.query = self._of_warps("query", self.depth)
        self.weights = self._of_warps("weights", tile.width)
        self.keys = Buffer("keys", (self.depth // row, tile.width, row), self.element, "swizzled")
        self.values = Buffer("values", (self.columns // row, tile.width, row), self.element, "swizzled")
        self.partial = Buffer("partial", (tile.height, tile.x), f32, "shared")

    def _of_warps(self, name: str, columns: int) -> Buffer:
        return Buffer(name, (self.tile.warps, FRAGMENT.rows, columns), self.element, "fragment")

    def row(self, t: Threads, r: Expr) -> Expr:
        """Returns which row of its block is a thread's row number *r*."""
        return t[0] * index(FRAGMENT.rows) + self._row_of_warp(t, r)

    def _row_of_warp(self, t: Threads, r: Expr) -> Expr:
        return r * index(FRAGMENT.groups) + t[1]

    def fetch_query(self) -> Stmt:
        """Fetches a thread's parts of its rows, in pairs of neighbours."""

        def pair(t: Threads, r: Expr, n: Expr) -> Stmt:
            lane = Var("lane")
            d = self.key(t, n * index(FRAGMENT.pairs)) + lane
            return vector_store(
                self.query, self._place(self.query, t, r, d), self.query_part(self.row(t, r), d), lane, 2
            )

        count = self.depth // FRAGMENT.columns
        return self.threads_of(lambda t: each(self.tile.rows, lambda r: each(count, lambda n: pair(t, r, n))))

    def _place(self, buffer: Buffer, t: Threads, r: Expr, c: Expr) -> tuple[Expr, ...]:
        return (t[0], self._row_of_warp(t, r), c)

    def weigh(self, t: Threads, r: Expr, k: Expr, weight: Expr) -> Stmt:
        """Keeps the weight of a thread's key number *k* in a row."""
        return store(self.weights, self._place(self.weights, t, r, self.key(t, k)), weight)

    def fetch_keys(self) -> Stmt:
        """Begins the copies of the keys of a step."""
        return self._copy(self.keys, self.depth, self.key_part)

    def fetch_values(self) -> Stmt:
        """Begins the copies of the values of the keys of a step."""
        return self._copy(self.values, self.columns, self.value)

    def _copy(self, to: Buffer, columns: int, value: Callable[[Expr, Expr], Expr]) -> Stmt:
        lanes = max(COPY_BYTES) // self.element.bytes
        pieces, threads = columns // lanes, self.tile.threads

        def body(t: Threads) -> Stmt:
            def one(n: Expr) -> Stmt:
                place, lane = n * index(threads) + self.number(t), Var("lane")
                k, c = place // index(pieces), place % index(pieces) * index(lanes)
                at = (c // self.side_by_side, k, c % self.side_by_side + lane)
                return vector_store(to, at, value(k, c + lane), lane, lanes)

            return each(self.tile.width * pieces // threads, one)

        return self.threads_of(body)

    def product(self, t: Threads) -> Stmt:
        """Adds the products of a group's rows and keys to its scores."""
        row = self.side_by_side

        def right(n: Expr, term: Expr) -> Address:
            return Address(self.keys, (term // row, self.key(t, n * index(FRAGMENT.pairs)), term % row))

        return self._by_groups(self.scores, self.query, self.depth, right, (ONE, row), t)

    def weighted(self, t: Threads) -> Stmt:
        """Adds the values of the keys, each times its weight, to a group's sums."""
        row = self.side_by_side

        def right(n: Expr, term: Expr) -> Address:
            c = n * index(FRAGMENT.columns)
            return Address(self.values, (c // row, term, c % row + t[-1] * index(FRAGMENT.pairs)))

        return self._by_groups(self.sums, self.weights, self.tile.width, right, (row, ONE), t)

    def row_results(self, t: Threads, r: Expr, at: Expr) -> Stmt:
        """Stores a thread's elements of a row, in pairs of neighbours where memory has them so."""
        a, lane = self.found, Var("lane")
        if not _has_pieces(Load(a.target, a.indices), a.column) or any(loads(a.result)):
            return super().row_results(t, r, at)

        def pair(n: Expr) -> Stmt:
            c = n * index(FRAGMENT.pairs)
            weighted = Load(self.sums, (*self.register(self.sums, t, r, c)[:-1], lane))
            made = self.result(at, self.column(t, c) + lane, weighted, Load(self.total, (*t, r)))
            return for_(lane, FRAGMENT.pairs, made, LoopKind.VECTORIZED)

        return each(self.own // FRAGMENT.pairs, pair)

    def _by_groups(
        self,
        to: Buffer,
        left: Buffer,
        terms: int,
        right: Callable[[Expr, Expr], Address],
        strides: tuple[Expr, Expr],
        t: Threads,
    ) -> Stmt:
        step, n = Var("step"), Var("n")
        term, zero = step * index(FRAGMENT.depth), ZERO
        row = index(FRAGMENT.groups) * left.shape[-1]
        a = Address(left, self._place(left, t, zero, term))
        sums = Address(to, (*t, n, zero, zero))
        call = Call(
            REGISTER_GROUP_INSTRUCTIONS[self.element],
            (sums, a, right(n, term), index(FRAGMENT.pairs), simplify(row), ONE, *strides),
        )
        columns = for_(n, to.shape[len(t)], seq(call), LoopKind.UNROLLED)
        return for_(step, terms // FRAGMENT.depth, columns, LoopKind.UNROLLED)
