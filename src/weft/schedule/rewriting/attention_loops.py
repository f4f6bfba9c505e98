"""Attention as a loop over blocks of keys, with the largest and the sum of each row so far: the scores are never all in memory.

    for each block of rows:                                             # a block of threads
        q = rows of Q; m = lowest; l = 0; acc = 0
        for each block of keys:
            k, v = rows of K, of V
            s = f(q k')                                                 # registers of each thread
            top = max(m, the largest of each row of s)                  # by way of shared memory
            l = l * exp(m - top); acc = acc * exp(m - top); m = top
            p = exp(s - top); l += p                                    # p in shared memory
            acc += p v
        Y = acc / l

After Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), and Dao et al., "FlashAttention" (NeurIPS 2022),
algorithm 1. Each thread has *rows* by *keys* scores, and as many rows of the result; the threads of a row have each a part
of the row's sum, which are added up when all keys are done. The largest score begins as the lowest finite number: keys that a
mask hides add zero also before the first one that it does not, and a row of hidden ones is 0 / 0, as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Final, TypeAlias

import numpy as np

from weft.cost import VECTOR_WORDS, AttentionTile, row_stride, size_of
from weft.ir import (
    ONE,
    TRUE,
    ZERO,
    Const,
    Expr,
    Var,
    all_of,
    apply,
    cast,
    ceil_div,
    const,
    index,
    maximum,
    select,
    simplify,
    substitute,
)
from weft.loop import Alloc, Buffer, FetchAhead, For, Load, LoopKind, Note, Stmt, seq, store
from weft.schedule.legality.attention_form import Attention, scaled_score
from weft.schedule.rewriting.fetch_to_shared import Part, fetch_part
from weft.schedule.rewriting.loops_of_threads import bound, each, guarded, in_parts, moves_last, value_where
from weft.support.dtypes import DType, f32

THREADS: Final = ("threadIdx.z", "threadIdx.y", "threadIdx.x")

LOWEST = const(float(np.finfo(np.float32).min), f32)
LOG2_E = const(math.log2(math.e), f32)
HIDDEN = const(float("-inf"), f32)


Threads: TypeAlias = tuple[Expr, ...]
"""The numbers of a thread along the axes of its block, the outermost first; the threads of a row differ in the last."""


class AttentionLoops:
    """Builds the loops of the attention *found* for a *tile*; its depth and columns are constants."""

    element: DType = f32
    """The type of factors and of weights in shared memory."""

    def __init__(self, found: Attention, tile: AttentionTile) -> None:
        self.found = found
        self.tile = tile
        self.depth, self.columns = (size_of(found.extents[v]) for v in (found.depth, found.column))
        self.own = tile.columns_of(self.columns)
        self.side = max(n for n in (VECTOR_WORDS, 2, 1) if self.own % n == 0)
        self.extents = tuple([n for n in (tile.warps, tile.y, tile.x) if n])
        self.make_shared()
        self.scores = self.registers("scores", tile.keys)
        self.sums = self.registers("sums", self.own)
        self.largest, self.scale, self.total = (
            Buffer(n, (*self.extents, tile.rows), f32, "register") for n in ("largest", "scale", "total")
        )
        self.batch, self.block, self.step = Var("batch"), Var("block"), Var("step")
        self.score, scale = scaled_score(found)
        self.factor = None if scale is None else const(scale * math.log2(math.e), f32)

    def make_shared(self) -> None:
        """Makes the buffers in shared memory: parts of the factors, the weights, and a number of each row and thread of it."""
        tile, stride = self.tile, row_stride(self.depth)
        self.query = self.shared("query", tile.height, self.depth, stride)
        self.keys = self.shared("keys", tile.width, self.depth, stride)
        self.values = self.shared("values", tile.width, tile.x * self.own, tile.x * self.own)
        self.weights = self.shared("weights", tile.height, tile.width, tile.weight_stride)
        self.partial = Buffer("partial", (tile.height, tile.x), f32, "shared")

    def shared(self, name: str, rows: int, columns: int, stride: int) -> Buffer:
        """Returns a matrix in shared memory."""
        scope = "dynamic" if self.tile.copies else "shared"
        return Buffer(name, (rows, columns), self.element, scope, (stride, 1))

    def registers(self, name: str, count: int) -> Buffer:
        """Returns the registers of each thread for *count* numbers of each of its rows."""
        return Buffer(name, (*self.extents, self.tile.rows, count), f32, "register")

    def register(self, buffer: Buffer, t: Threads, r: Expr, k: Expr) -> tuple[Expr, ...]:
        """Returns where number *k* of a thread's row is."""
        return (*t, r, k)

    def row(self, t: Threads, r: Expr) -> Expr:
        """Returns which row of its block is a thread's row number *r*."""
        return r * index(self.tile.y) + t[-2]

    def key(self, t: Threads, k: Expr) -> Expr:
        """Returns the index, among the keys that its block takes at once, of a thread's key number *k*."""
        return k * index(self.tile.x) + t[-1]

    def column(self, t: Threads, c: Expr) -> Expr:
        """Returns which column is a thread's column number *c*: it has a few side by side, then its neighbour."""
        side = index(self.side)
        return (c // side * index(self.tile.x) + t[-1]) * side + c % side

    def product(self, t: Threads) -> Stmt:
        """Adds the products of a thread's rows and keys to its scores."""

        def term(d: Expr, r: Expr, k: Expr) -> Stmt:
            own = self.register(self.scores, t, r, k)
            product = Load(self.query, (self.row(t, r), d)) * Load(self.keys, (self.key(t, k), d))
            return store(self.scores, own, Load(self.scores, own) + product)

        def terms(d: Expr) -> Stmt:
            return each(self.tile.rows, lambda r: each(self.tile.keys, lambda k: term(d, r, k)))

        return in_parts(self.depth, VECTOR_WORDS, terms)

    def weighted(self, t: Threads) -> Stmt:
        """Adds the values of the keys, each times its weight, to a thread's sums."""

        def term(k: Expr, r: Expr, c: Expr) -> Stmt:
            own = self.register(self.sums, t, r, c)
            product = Load(self.weights, (self.row(t, r), k)) * Load(self.values, (k, self.column(t, c)))
            return store(self.sums, own, Load(self.sums, own) + product)

        def terms(k: Expr) -> Stmt:
            return each(self.tile.rows, lambda r: each(self.own, lambda c: term(k, r, c)))

        return in_parts(self.tile.width, VECTOR_WORDS, terms)

    def weigh(self, t: Threads, r: Expr, k: Expr, weight: Expr) -> Stmt:
        """Tells the other threads of a row the weight of a thread's key number *k*."""
        return store(self.weights, (self.row(t, r), self.key(t, k)), weight)

    def step_notes(self) -> tuple[Note, ...]:
        """Returns the notes of the loop over blocks of keys."""
        copies = self.tile.copies
        return tuple([FetchAhead(b, copies, copies - 1) for b in (self.keys, self.values)]) if copies > 1 else ()

    def fetch_query(self) -> Stmt:
        """Fetches the rows of a block."""
        return self.fetch(self.query, self.query_part, along=moves_last(self.found.query, self.found.row))

    def fetch_keys(self) -> Stmt:
        """Fetches the keys of a step."""
        return self.fetch(self.keys, self.key_part, along=moves_last(self.found.keys, self.found.key))

    def fetch_values(self) -> Stmt:
        """Fetches the values of the keys of a step."""
        return self.fetch(self.values, self.value, along=moves_last(self.found.values, self.found.key))

    def loops(self) -> Stmt:
        """Returns the loops over blocks, and all that is in them."""
        a, tile = self.found, self.tile
        step = seq(*self._step())
        for b in (self.keys, self.values):
            step = Alloc(b, step)
        steps = For(self.step, ZERO, self.steps(), LoopKind.SERIAL, step, self.step_notes())
        body: Stmt = seq(self.fetch_query(), self.threads_of(self._start), steps, *self._finish())
        shared = (self.query, self.weights, self.partial)
        for b in (*shared, self.scores, self.largest, self.scale, self.total, self.sums):
            body = Alloc(b, body)
        body = bound(self.block, ceil_div(a.extents[a.row], index(tile.height)), body, "blockIdx.x")
        return bound(self.batch, self.places[1], body, "blockIdx.y")

    def steps(self) -> Expr:
        """Returns the number of steps of a block along the keys."""
        return ceil_div(self.found.extents[self.found.key], index(self.tile.width))

    @cached_property
    def places(self) -> tuple[Mapping[Var, Expr], Expr]:
        """The indices of the batch, and how many batches there are."""
        places: dict[Var, Expr] = {}
        count: Expr = ONE
        for v in reversed(self.found.batch):
            places[v] = simplify(self.batch // count % self.found.extents[v])
            count = simplify(count * self.found.extents[v])
        return places, count

    def _at(self, e: Expr, **where: Expr) -> Expr:
        """Returns a formula of the attention at indices by the names of its variables."""
        own = {getattr(self.found, name): i for name, i in where.items()}
        return substitute(e, {**self.places[0], **own})

    def of_all_rows(self, r: Expr) -> Expr:
        """Returns which of all rows is row *r* of a block."""
        return self.block * index(self.tile.height) + r

    def first_key(self) -> Expr:
        """Returns the first key of a step."""
        return self.step * index(self.tile.width)

    def _of_all_keys(self, k: Expr) -> Expr:
        return self.first_key() + k

    def has(self, v: Var, i: Expr, step: int) -> Expr:
        """Returns the condition under which there is an element *i* along *v*, which is cut into tiles of *step*."""
        extent = self.found.extents[v]
        return TRUE if isinstance(extent, Const) and size_of(extent) % step == 0 else i < extent

    def query_part(self, r: Expr, d: Expr) -> Expr:
        """Returns an element of a row of a block; zero where there is none."""
        row = self.of_all_rows(r)
        return value_where(
            self.has(self.found.row, row, self.tile.height), self._at(self.found.query, row=row, depth=d)
        )

    def key_part(self, k: Expr, d: Expr) -> Expr:
        """Returns an element of a key of a step; zero where there is none."""
        key = self._of_all_keys(k)
        return value_where(self.has(self.found.key, key, self.tile.width), self._at(self.found.keys, key=key, depth=d))

    def value(self, k: Expr, c: Expr) -> Expr:
        """Returns an element of a value of a step's keys; zero where there is none."""
        a, key = self.found, self._of_all_keys(k)
        inside = all_of([self.has(a.key, key, self.tile.width), self.has(a.column, c, self.tile.x)])
        return value_where(inside, self._at(a.values, key=key, column=c))

    def _start(self, t: Threads) -> Stmt:
        def of_row(r: Expr) -> Stmt:
            first = store(self.largest, (*t, r), LOWEST)
            zeros = each(self.own, lambda c: store(self.sums, self.register(self.sums, t, r, c), 0.0))
            return seq(first, store(self.total, (*t, r), 0.0), zeros)

        return each(self.tile.rows, of_row)

    def _step(self) -> Sequence[Stmt]:
        return (
            self.fetch_keys(),
            self.fetch_values(),
            self.threads_of(self._scored),
            self.threads_of(self._exponentials),
            self.threads_of(self.weighted),
        )

    def _scored(self, t: Threads) -> Stmt:
        """Computes the scores of a thread, and the largest of each of its rows."""
        a, tile = self.found, self.tile

        def zero(r: Expr, k: Expr) -> Stmt:
            return store(self.scores, self.register(self.scores, t, r, k), 0.0)

        def score(r: Expr, k: Expr) -> Stmt:
            own = self.register(self.scores, t, r, k)
            row, key = self.of_all_rows(self.row(t, r)), self._of_all_keys(self.key(t, k))
            made = substitute(self._at(self.score, row=row, key=key), {a.product: Load(self.scores, own)})
            inside = all_of([self.has(a.row, row, tile.height), self.has(a.key, key, tile.width)])
            return store(self.scores, own, made if inside is TRUE else select(inside, made, HIDDEN))

        def largest(r: Expr) -> Stmt:
            own: list[Expr] = [Load(self.scores, self.register(self.scores, t, r, index(k))) for k in range(tile.keys)]
            most = store(self.partial, (self.row(t, r), t[-1]), reduce(maximum, own))
            return seq(each(tile.keys, lambda k: score(r, k)), most)

        start = each(tile.rows, lambda r: each(tile.keys, lambda k: zero(r, k)))
        return seq(start, self.product(t), each(tile.rows, largest))

    def _exponentials(self, t: Threads) -> Stmt:
        """Computes the weights of scores by the largest of each row so far, and scales earlier sums to it."""
        tile = self.tile

        def of_row(r: Expr) -> Stmt:
            row, own = self.row(t, r), (*t, r)
            largest, scale, total = (Load(b, own) for b in (self.largest, self.scale, self.total))

            def compared(i: Expr) -> Stmt:
                return store(self.largest, own, maximum(largest, Load(self.partial, (row, i))))

            def scaled(c: Expr) -> Stmt:
                place = self.register(self.sums, t, r, c)
                return store(self.sums, place, Load(self.sums, place) * scale)

            def weight(k: Expr) -> Stmt:
                place = self.register(self.scores, t, r, k)
                score = Load(self.scores, place)
                return seq(
                    store(self.scores, place, self.power(score, largest)),
                    self.weigh(t, r, k, cast(score, self.element)),
                    store(self.total, own, total + score),
                )

            return seq(
                store(self.scale, own, largest),
                in_parts(tile.x, VECTOR_WORDS, compared),
                store(self.scale, own, self.power(scale, largest)),
                store(self.total, own, total * scale),
                each(self.own, scaled),
                each(tile.keys, weight),
            )

        return each(tile.rows, of_row)

    def _finish(self) -> Sequence[Stmt]:
        """Adds up the parts of each row's sum, and stores the results."""

        def part(t: Threads) -> Stmt:
            return each(
                self.tile.rows, lambda r: store(self.partial, (self.row(t, r), t[-1]), Load(self.total, (*t, r)))
            )

        return self.threads_of(part), self.threads_of(self._results)

    def _results(self, t: Threads) -> Stmt:
        a, tile = self.found, self.tile

        def of_row(r: Expr) -> Stmt:
            own, row = (*t, r), self.row(t, r)
            at = self.of_all_rows(row)

            def add(i: Expr) -> Stmt:
                return store(self.total, own, Load(self.total, own) + Load(self.partial, (row, i)))

            summed = seq(store(self.total, own, 0.0), in_parts(tile.x, VECTOR_WORDS, add))
            sums = seq(summed, self.row_results(t, r, at), *self.row_result(t, r))
            return guarded(self.has(a.row, at, tile.height), sums)

        return each(tile.rows, of_row)

    def row_results(self, t: Threads, r: Expr, at: Expr) -> Stmt:
        """Stores a thread's elements of its row number *r*, which is row *at* of all."""

        def one(c: Expr) -> Stmt:
            column, weighted = self.column(t, c), Load(self.sums, self.register(self.sums, t, r, c))
            made = self.result(at, column, weighted, Load(self.total, (*t, r)))
            return guarded(self.has(self.found.column, column, self.tile.x), made)

        return each(self.own, one)

    def result(self, row: Expr, column: Expr, weighted: Expr, total: Expr) -> Stmt:
        """Stores an element of the result, given its sum of *weighted* values and the *total* of its row's weights."""
        a = self.found
        made = substitute(self._at(a.result, row=row, column=column), {a.weighted: weighted, a.total: total})
        return store(a.target, [self._at(i, row=row, column=column) for i in a.indices], made)

    def row_result(self, t: Threads, r: Expr) -> Sequence[Stmt]:
        """Stores further results of a row, such as the sum and the maximum of its scores."""
        return ()

    def number(self, t: Threads) -> Expr:
        """Returns the number of a thread in its block."""
        thread: Expr = ZERO
        for v, n in zip(t, self.extents, strict=True):
            thread = thread * index(n) + v
        return thread

    def power(self, score: Expr, largest: Expr) -> Expr:
        """Returns the exponential of a score less the largest, as a power of two, for which some machines have an instruction.

        The rounding error of exponents is less than the last place of weights that matter. Where all scores are finite, one
        multiply-add makes an exponent: the rounding error of the largest is the same for all weights of a row.
        """
        if self.factor is None:
            return apply("exp2_flushed", (score - largest) * LOG2_E)
        return apply("exp2_flushed", score * self.factor - largest * self.factor)

    def threads_of(self, body: Callable[[Threads], Stmt]) -> Stmt:
        """Returns *body* for each thread of a block."""
        t = tuple([Var(axis[-1]) for axis in THREADS[-len(self.extents) :]])
        made = body(t)
        for v, n, axis in zip(reversed(t), reversed(self.extents), reversed(THREADS), strict=False):
            made = bound(v, index(n), made, axis)
        return made

    def fetch(self, to: Buffer, value: Callable[[Expr, Expr], Expr], *, along: bool) -> Stmt:
        """Shares the elements of a part among threads, see `fetch_to_shared.fetch_part`."""
        fetched = Part(to, value, self.tile.threads, along=along)
        return self.threads_of(lambda t: fetch_part(fetched, self.number(t), self.extents, t))
