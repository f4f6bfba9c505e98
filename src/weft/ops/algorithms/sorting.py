"""Sorting along an axis, and the first elements in order, each slice by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.ir import INDEX, ZERO, Const, Expr, Var, cast, ceil_div, const, eq, index, minimum, select, simplify
from weft.loop import Alloc, Buffer, If, Load, Stmt, for_, let, seq, store
from weft.ops.algorithms.heap_select import select_among, select_first
from weft.ops.algorithms.radix_sort import sort_indices
from weft.ops.algorithms.sort_records import Emit, Words, sort_word
from weft.ops.elementwise import map_tensors
from weft.ops.nan_order import order_key
from weft.ops.registry import operator
from weft.ops.shapes import normalize_axis, simplify_size
from weft.support.dtypes import DType, i32
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, extern, min_, reduce_axis, sum_

SHORT = 96
"""Elements up to which a rank is counted: n * n comparisons in vectors, where digits would be counted for few elements.

A row of 96 float32 takes 1.4 us either way on a Sapphire Rapids (2026-11, `benchmarks/operators.py`).
"""

CHUNKS = (64, 32)
"""Elements whose best is found first, in vectors, where few of many are selected: chunks of which there are twice as many."""

UNKNOWN = 1024
"""The elements that a slice of symbolic size is taken to have."""

FEW = 8
"""A slice is selected from, and not sorted, where it has this many times the elements that are asked for, or more."""


@operator("argsort", reads_bits=True)
def argsort(x: Tensor, *, axis: int = -1, descending: bool = False) -> Tensor:
    """The indices that sort *x* along *axis*, equal elements in their order; NaN is larger than any number.

    Short slices are sorted by counting each element's rank, longer ones digit by digit.
    """
    d = normalize_axis(axis, x.rank)
    if _known(x.shape[d]) <= SHORT:
        return _ranked(x, d, descending=descending)
    return _in_slices(x, d, x.shape, (INDEX,), sort_indices, descending, "argsort")[0]


def _known(size: Expr) -> int:
    """Returns a known size, and more than any short one for another."""
    return int(size.value) if isinstance(size, Const) else SHORT + 1


def _ranked(x: Tensor, d: int, *, descending: bool) -> Tensor:
    """Counts the elements before each, and inverts that. The keys are integers in the same order: each rank is there once."""
    keys = map_tensors("order_key", order_key, x, dtype=order_key(const(0, x.dtype)).dtype)
    k = reduce_axis(x.shape[d], "k")

    def before(*i: Expr) -> object:
        own, other = keys[i], keys[(*i[:d], k, *i[d + 1 :])]
        ahead = own < other if descending else other < own
        return sum_(cast(ahead | (eq(other, own) & (k < i[d])), i32), [k])

    rank = compute(x.shape, before, "rank", dtype=i32)

    def holder(*i: Expr) -> object:
        return sum_(select(eq(rank[(*i[:d], k, *i[d + 1 :])], cast(i[d], i32)), cast(k, i32), const(0, i32)), [k])

    return map_tensors("argsort", lambda e: cast(e, INDEX), compute(x.shape, holder, "holder", dtype=i32), dtype=INDEX)


@operator("top_k", reads_bits=True)
def top_k(x: Tensor, *, k: int, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The *k* largest (or smallest) elements along *axis*, in order, and their indices; of equal ones the first comes first.

    Of a symbolic size that turns out to be less than *k*, it is all elements.
    """
    d = normalize_axis(axis, x.rank)
    size = x.shape[d]
    if k < 0 or (isinstance(size, Const) and k > int(size.value)):
        raise TypeMismatch(f"top_k: {k} elements of {size}", hint="request at most that many")
    first = index(k) if isinstance(size, Const) else simplify_size(minimum(size, k))
    shape = (*x.shape[:d], first, *x.shape[d + 1 :])
    if _known(size) <= SHORT:
        order = _ranked(x, d, descending=largest)
        value = compute(shape, lambda *i: x[(*i[:d], order[i], *i[d + 1 :])], "top_k", dtype=x.dtype)
        return value, compute(shape, lambda *i: order[i], "top_k_indices", dtype=INDEX)
    chunk = next((c for c in CHUNKS if isinstance(size, Const) and int(size.value) >= 2 * c * max(k, 1)), None)
    if chunk is not None:
        values, indices = _of_chunks(x, d, shape, k, chunk, largest=largest)
        return values, indices
    values, indices = _in_slices(x, d, shape, (x.dtype, INDEX), _first_of(k, first), largest, "top_k")
    return values, indices


def _of_chunks(x: Tensor, d: int, shape: Sequence[Expr], k: int, chunk: int, *, largest: bool) -> tuple[Tensor, ...]:
    """Finds the first elements among those of the chunks that have the best elements: as many chunks as elements.

    A chunk that is not among these has as many chunks before it, each with an element that comes before all of its own.
    """
    size, of_chunk = x.shape[d], reduce_axis(chunk, "of_chunk")
    count = simplify(ceil_div(size, index(chunk)))

    def best_word(*i: Expr) -> object:
        at = i[d] * chunk + of_chunk
        word = sort_word(x[(*i[:d], at, *i[d + 1 :])], descending=largest)
        return (
            min_(word, [of_chunk], where=at < size)
            if int(getattr(size, "value", 1)) % chunk
            else min_(word, [of_chunk])
        )

    best = compute((*x.shape[:d], count, *x.shape[d + 1 :]), best_word, "best_of_chunk")

    def of_slice(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        s = _Slice(ins[0], d, i, largest)
        chosen, place, step = Buffer("chunks", (k,), INDEX, "local"), Var("of_chosen"), Var("step")
        best_chunks = select_first(
            count,
            index(k),
            best.dtype,
            lambda c: Load(ins[1], s.at(c)),
            lambda p, c: store(chosen, (p,), c),
            most=k,
            ordered=False,
        )

        def visited(offer: Callable[[Expr], Stmt]) -> Stmt:
            def elements(begin: Expr) -> Stmt:
                return for_(step, minimum(size - begin, chunk), let("at", begin + step, offer))

            return for_(place, k, let("begin", Load(chosen, (place,)) * chunk, elements))

        worst = Load(ins[1], s.at(Load(chosen, (ZERO,))))
        return Alloc(chosen, seq(best_chunks, select_among(visited, index(k), worst, s.word, s.emitter(outs))))

    lead = [n for n in range(x.rank) if n != d]
    return extern([shape, shape], [x, best], of_slice, (x.dtype, INDEX), "top_k", along=lead)


Sorter: TypeAlias = Callable[[Expr, DType, Words, Emit], Stmt]
"""Makes the statements that sort a slice: of its length, the type of its words, the words, and the emitter for each place."""


def _first_of(k: int, count: Expr) -> Sorter:
    """Returns the sorter that finds the first elements of a slice, *k* of them at most and *count* in fact."""

    def sort(size: Expr, word: DType, words: Words, emit: Emit) -> Stmt:
        if k * FEW <= (int(size.value) if isinstance(size, Const) else UNKNOWN):
            return select_first(size, count, word, words, emit, most=k)
        return sort_indices(size, word, words, lambda place, at: If(place < count, emit(place, at), None))

    return sort


def _in_slices(
    x: Tensor, d: int, shape: Sequence[Expr], dtypes: Sequence[DType], sort: Sorter, descending: bool, name: str
) -> tuple[Tensor, ...]:
    """Sorts each slice of *x* along dimension *d*: the last of the results is the indices, one before it the elements there."""
    lead = [n for n in range(x.rank) if n != d]

    def sorted_slice(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        s = _Slice(ins[0], d, i, descending)
        return sort(x.shape[d], s.word(ZERO).dtype, s.word, s.emitter(outs))

    return extern([shape] * len(dtypes), [x], sorted_slice, dtypes, name, along=lead)


@dataclass(frozen=True)
class _Slice:
    """A slice of *source* along dimension *axis*, at *index* of the other dimensions."""

    source: Buffer
    axis: int
    index: tuple[Expr, ...]
    descending: bool

    def at(self, place: Expr) -> tuple[Expr, ...]:
        """Returns where an element of the slice is, in the source or in a result."""
        return (*self.index[: self.axis], place, *self.index[self.axis :])

    def element(self, place: Expr) -> Expr:
        """Returns an element."""
        return Load(self.source, self.at(place))

    def word(self, place: Expr) -> Expr:
        """Returns the word of an element."""
        return sort_word(self.element(place), descending=self.descending)

    def emitter(self, outs: Sequence[Buffer]) -> Emit:
        """Returns the writer of an element's index to the last of *outs*, and of the element to one before, if there is one."""

        def emit(place: Expr, origin: Expr) -> Stmt:
            values = (origin, self.element(origin))
            return seq(*[store(b, self.at(place), v) for b, v in zip(outs[::-1], values, strict=False)])

        return emit
