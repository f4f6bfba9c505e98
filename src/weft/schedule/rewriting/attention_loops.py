"""Attention as a loop over blocks of keys, with what is known of each row's softmax so far: the scores are never all in memory.

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

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce

import numpy as np

from weft.cost import MOST_FETCHES, VECTOR_WORDS, AttentionTile, row_stride
from weft.ir import (
    ONE,
    TRUE,
    ZERO,
    Const,
    Expr,
    Var,
    all_of,
    apply,
    ceil_div,
    const,
    index,
    maximum,
    select,
    simplify,
    substitute,
)
from weft.loop import Alloc, Buffer, For, If, Load, LoopKind, Stmt, Thread, for_, loads, seq, store
from weft.schedule.legality.attention_form import Attention
from weft.support.dtypes import f32

LOWEST = const(float(np.finfo(np.float32).min), f32)
HIDDEN = const(float("-inf"), f32)


class StreamedAttention:
    """Builds the loops of the attention *found* for a *tile*; its depth and columns are constants."""

    def __init__(self, found: Attention, tile: AttentionTile) -> None:
        self.found = found
        self.tile = tile
        self.depth, self.columns = (_size(found.extents[v]) for v in (found.depth, found.column))
        self.own = tile.columns_of(self.columns)
        self.side = max(n for n in (VECTOR_WORDS, 2, 1) if self.own % n == 0)
        y, x = tile.y, tile.x
        rows, width = tile.height, tile.width
        self.query = _shared("query", rows, self.depth, row_stride(self.depth))
        self.keys = _shared("keys", width, self.depth, row_stride(self.depth))
        self.values = _shared("values", width, x * self.own, x * self.own)
        self.weights = _shared("weights", rows, width, tile.weight_stride)
        self.partial = _shared("partial", rows, x, x)
        self.scores = Buffer("scores", (y, x, tile.rows, tile.keys), f32, "register")
        self.largest, self.scale, self.total = (
            Buffer(n, (y, x, tile.rows), f32, "register") for n in ("largest", "scale", "total")
        )
        self.sums = Buffer("sums", (y, x, tile.rows, self.own), f32, "register")
        self.batch, self.block, self.step = Var("batch"), Var("block"), Var("step")

    def loops(self) -> Stmt:
        """Returns the loops over blocks, and all that is in them."""
        a, t = self.found, self.tile
        steps = for_(self.step, ceil_div(a.extents[a.key], index(t.width)), seq(*self._step()))
        body: Stmt = seq(self._fetch_query(), self._start(), steps, *self._finish())
        shared = (self.query, self.keys, self.values, self.weights, self.partial)
        for b in (*shared, self.scores, self.largest, self.scale, self.total, self.sums):
            body = Alloc(b, body)
        body = _bound(self.block, ceil_div(a.extents[a.row], index(t.height)), body, "blockIdx.x")
        return _bound(self.batch, self._places[1], body, "blockIdx.y")

    @cached_property
    def _places(self) -> tuple[Mapping[Var, Expr], Expr]:
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
        return substitute(e, {**self._places[0], **own})

    def _row(self, r: Expr) -> Expr:
        return self.block * index(self.tile.height) + r

    def _key(self, k: Expr) -> Expr:
        return self.step * index(self.tile.width) + k

    def _has(self, v: Var, i: Expr, step: int) -> Expr:
        """Returns the condition under which there is an element *i* along *v*, which is taken so many at once."""
        extent = self.found.extents[v]
        return TRUE if isinstance(extent, Const) and _size(extent) % step == 0 else i < extent

    def _fetch_query(self) -> Stmt:
        a = self.found

        def value(r: Expr, d: Expr) -> Expr:
            at = self._row(r)
            return _where(self._has(a.row, at, self.tile.height), self._at(a.query, row=at, depth=d))

        return self._fetch(self.query, value, along=_moves_last(a.query, a.row))

    def _start(self) -> Stmt:
        t = self.tile

        def body(y: Expr, x: Expr) -> Stmt:
            def of_row(r: Expr) -> Stmt:
                zero = _each(self.own, lambda c: store(self.sums, (y, x, r, c), 0.0))
                first = store(self.largest, (y, x, r), LOWEST)
                return seq(first, store(self.total, (y, x, r), 0.0), zero)

            return _each(t.rows, of_row)

        return self._threads(body)

    def _step(self) -> Sequence[Stmt]:
        a, t = self.found, self.tile

        def key(k: Expr, d: Expr) -> Expr:
            at = self._key(k)
            return _where(self._has(a.key, at, t.width), self._at(a.keys, key=at, depth=d))

        def value(k: Expr, c: Expr) -> Expr:
            at = self._key(k)
            inside = all_of([self._has(a.key, at, t.width), self._has(a.column, c, t.x)])
            return _where(inside, self._at(a.values, key=at, column=c))

        return (
            self._fetch(self.keys, key, along=_moves_last(a.keys, a.key)),
            self._fetch(self.values, value, along=_moves_last(a.values, a.key)),
            self._threads(self._scored),
            self._threads(self._exponentials),
            self._threads(self._weighted),
        )

    def _scored(self, y: Expr, x: Expr) -> Stmt:
        """Computes the scores of a thread, and the largest of each of its rows."""
        a, t = self.found, self.tile

        def product(d: Expr) -> Stmt:
            def add(r: Expr, k: Expr) -> Stmt:
                own = (y, x, r, k)
                term = Load(self.query, (self._thread_row(y, r), d)) * Load(self.keys, (self._thread_key(x, k), d))
                return store(self.scores, own, Load(self.scores, own) + term)

            return _each(t.rows, lambda r: _each(t.keys, lambda k: add(r, k)))

        def score(r: Expr) -> Stmt:
            row, place = self._row(self._thread_row(y, r)), (self._thread_row(y, r), x)

            def one(k: Expr) -> Stmt:
                key, own = self._key(self._thread_key(x, k)), (y, x, r, k)
                made = substitute(self._at(a.score, row=row, key=key), {a.product: Load(self.scores, own)})
                inside = all_of([self._has(a.row, row, t.height), self._has(a.key, key, t.width)])
                return store(self.scores, own, made if inside is TRUE else select(inside, made, HIDDEN))

            own: list[Expr] = [Load(self.scores, (y, x, r, index(k))) for k in range(t.keys)]
            return seq(_each(t.keys, one), store(self.partial, place, reduce(maximum, own)))

        start = _each(t.rows, lambda r: _each(t.keys, lambda k: store(self.scores, (y, x, r, k), 0.0)))
        return seq(start, _in_parts(self.depth, VECTOR_WORDS, product), _each(t.rows, score))

    def _exponentials(self, y: Expr, x: Expr) -> Stmt:
        """Computes what scores weigh by the largest of each row so far, by which what was summed before is scaled anew."""
        t = self.tile

        def of_row(r: Expr) -> Stmt:
            row, own = self._thread_row(y, r), (y, x, r)
            largest, scale, total = (Load(b, own) for b in (self.largest, self.scale, self.total))

            def one(k: Expr) -> Stmt:
                score = Load(self.scores, (y, x, r, k))
                return seq(
                    store(self.scores, (y, x, r, k), apply("exp", score - largest)),
                    store(self.weights, (row, self._thread_key(x, k)), score),
                    store(self.total, own, total + score),
                )

            return seq(
                store(self.scale, own, largest),
                _in_parts(
                    t.x,
                    VECTOR_WORDS,
                    lambda i: store(self.largest, own, maximum(largest, Load(self.partial, (row, i)))),
                ),
                store(self.scale, own, apply("exp", scale - largest)),
                store(self.total, own, total * scale),
                _each(self.own, lambda c: store(self.sums, (*own, c), Load(self.sums, (*own, c)) * scale)),
                _each(t.keys, one),
            )

        return _each(t.rows, of_row)

    def _weighted(self, y: Expr, x: Expr) -> Stmt:
        """Adds up the values of the keys, each times its weight."""
        t = self.tile

        def product(k: Expr) -> Stmt:
            def add(r: Expr, c: Expr) -> Stmt:
                own = (y, x, r, c)
                term = Load(self.weights, (self._thread_row(y, r), k)) * Load(self.values, (k, self._column(x, c)))
                return store(self.sums, own, Load(self.sums, own) + term)

            return _each(t.rows, lambda r: _each(self.own, lambda c: add(r, c)))

        return _in_parts(t.width, VECTOR_WORDS, product)

    def _finish(self) -> Sequence[Stmt]:
        """Adds up the parts of each row's sum, and stores the results."""
        a, t = self.found, self.tile

        def part(y: Expr, x: Expr) -> Stmt:
            return _each(
                t.rows,
                lambda r: store(self.partial, (self._thread_row(y, r), x), Load(self.total, (y, x, r))),
            )

        def result(y: Expr, x: Expr) -> Stmt:
            def of_row(r: Expr) -> Stmt:
                own, row = (y, x, r), self._thread_row(y, r)
                at = self._row(row)

                def add(i: Expr) -> Stmt:
                    return store(self.total, own, Load(self.total, own) + Load(self.partial, (row, i)))

                def one(c: Expr) -> Stmt:
                    column = self._column(x, c)
                    values: dict[Var, Expr] = {a.weighted: Load(self.sums, (*own, c)), a.total: Load(self.total, own)}
                    made = substitute(self._at(a.result, row=at, column=column), values)
                    where = [self._at(i, row=at, column=column) for i in a.indices]
                    return _if(self._has(a.column, column, t.x), store(a.target, where, made))

                sums = seq(store(self.total, own, 0.0), _in_parts(t.x, VECTOR_WORDS, add), _each(self.own, one))
                return _if(self._has(a.row, at, t.height), sums)

            return _each(t.rows, of_row)

        return self._threads(part), self._threads(result)

    def _thread_row(self, y: Expr, r: Expr) -> Expr:
        return r * index(self.tile.y) + y

    def _thread_key(self, x: Expr, k: Expr) -> Expr:
        return k * index(self.tile.x) + x

    def _column(self, x: Expr, c: Expr) -> Expr:
        """Returns a thread's column number *c*: it has a few side by side, then its neighbour."""
        side = index(self.side)
        return (c // side * index(self.tile.x) + x) * side + c % side

    def _threads(self, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
        y, x = Var("y"), Var("x")
        inner = _bound(x, index(self.tile.x), body(y, x), "threadIdx.x")
        return _bound(y, index(self.tile.y), inner, "threadIdx.y")

    def _fetch(self, to: Buffer, value: Callable[[Expr, Expr], Expr], *, along: bool) -> Stmt:
        """Shares the elements of a part among threads, neighbours to neighbours: those of a row, or of a column where *along*.

        A thread fetches vectors where rows of words are whole ones.
        """
        high, wide = map(_size, to.shape)
        inner = high if along else wide
        example = value(Var("r"), Var("c"))
        is_word = all(x.buffer.dtype.bits == f32.bits for x in loads(example))
        side = VECTOR_WORDS if is_word and not along and wide % VECTOR_WORDS == 0 else 1
        threads, whole = self.tile.y * self.tile.x, high * wide // side

        def body(y: Expr, x: Expr) -> Stmt:
            def one(n: Expr) -> Stmt:
                place = (n * index(self.tile.y) + y) * index(self.tile.x) + x
                outer, last = place // index(inner // side), place % index(inner // side)
                lane = Var("lane")
                at = (last, outer) if along else (outer, last * index(side) + lane if side > 1 else last)
                fetched: Stmt = store(to, at, value(*at))
                if side > 1:
                    fetched = for_(lane, side, fetched, LoopKind.VECTORIZED)
                return fetched if whole % threads == 0 else _if(place < index(whole), fetched)

            return _in_parts(-(-whole // threads), MOST_FETCHES, one)

        return self._threads(body)


def _size(e: Expr) -> int:
    assert isinstance(e, Const)  # the rule takes no other
    return int(e.value)


def _shared(name: str, rows: int, columns: int, stride: int) -> Buffer:
    return Buffer(name, (rows, columns), f32, "shared", (stride, 1))


def _bound(v: Var, extent: Expr, body: Stmt, axis: str) -> Stmt:
    return For(v, ZERO, extent, LoopKind.BOUND, body, (Thread(axis),))


def _if(cond: Expr, body: Stmt) -> Stmt:
    return body if cond is TRUE else If(cond, body, None)


def _where(cond: Expr, value: Expr) -> Expr:
    return value if cond is TRUE else select(cond, value, 0.0)


def _each(count: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """Returns *body* for each of so many numbers, written out: they number registers."""
    if count == 1:
        return body(ZERO)
    v = Var("i")
    return for_(v, count, body(v), LoopKind.UNROLLED)


def _in_parts(count: int, most: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """Returns a loop over *count* numbers, of which *most* at a time are written out, or as many as divide them."""
    side = max(n for n in range(1, most + 1) if count % n == 0)
    v = Var("k")
    return for_(v, count // side, _each(side, lambda i: body(v * index(side) + i)))


def _moves_last(e: Expr, v: Var) -> bool:
    """Tells whether *v*, not the other index, moves along neighbours in the memory that *e* reads."""
    return any(x.indices and x.indices[-1] is v for x in loads(e))
