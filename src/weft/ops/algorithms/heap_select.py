"""The first few elements of a slice in order, without sorting the rest: a heap of the best so far, the worst of them on top.

Nearly all elements of a long slice are compared with the top, and no more; one that comes before it takes its place and sinks
(Knuth, "The Art of Computer Programming", volume 3, sections 5.2.3 and 6.1.2). That takes n + k log(k) log(n / k) steps for
elements in random order, n log(k) at worst.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import ONE, ZERO, Expr, Var, index, maximum, select
from weft.loop import If, Stmt, While, allocated, cell, for_, get, let, put, seq
from weft.ops.algorithms.sort_records import Emit, Record, Records, Words
from weft.support.dtypes import DType


def select_first(
    count: Expr,
    k: Expr,
    word: DType,
    words: Words,
    emit: Emit,
    *,
    most: int,
    ordered: bool = True,
) -> Stmt:
    """Returns statements that call *emit* with each place below *k* and the index of the element that belongs there.

    *words* are as `sort_indices` takes them; the order is the same. There are *k* elements or more of the *count*, and *k* is
    *most* or less: a thread's own memory has a known size. If they need not be *ordered*, the last of them is in the first
    place, and the others are anywhere.
    """
    heap = Records.of("heap", index(max(most, 1)), word)
    rest, start = Var("rest"), Var("start")
    filled = for_(start, k, heap.put(start, heap.make(words(start), start)))
    compared = for_(rest, count - k, _offered(heap, k, words, rest), begin=k)
    finish = seq(_sorted(heap, k), _emitted(heap, k, emit)) if ordered else _emitted(heap, k, emit)
    return allocated(heap.memory, seq(filled, heapified(heap, k), compared, finish))


def select_among(
    visit: Callable[[Callable[[Expr], Stmt]], Stmt],
    k: Expr,
    bound: Expr,
    words: Words,
    emit: Emit,
) -> Stmt:
    """Returns the statements of `select_first` over the elements alone at whose indices *visit* runs its argument.

    They come in any order; *k* of them or more have a word that is no greater than *bound*.
    """
    heap = Records.of("heap", maximum(k, ONE), bound.dtype)
    start = Var("start")
    limit = let("bound", bound, lambda w: for_(start, k, heap.put(start, heap.last_of(w))))
    compared = visit(lambda i: _offered(heap, k, words, i))
    return allocated(heap.memory, seq(limit, compared, _sorted(heap, k), _emitted(heap, k, emit)))


def heapified(heap: Records, size: Expr) -> Stmt:
    """Puts the first *size* records in the order of a heap, the last of them on top."""

    def made(root: Expr) -> Stmt:
        return heap.each(heap.at(root), lambda r: sunk(heap, root, size, r))

    j = Var("j")
    return for_(j, size // 2, let("root", size // 2 - 1 - j, made))


def _offered(heap: Records, k: Expr, words: Words, i: Expr) -> Stmt:
    """Compares the element at *i* with the worst of the heap, and puts it in that one's place if it comes before."""
    record = heap.make(words(i), i)
    return heap.each(record, lambda r: If(heap.is_before(r, heap.at(ZERO)), sunk(heap, ZERO, k, r), None))


def _sorted(heap: Records, k: Expr) -> Stmt:
    """Sorts the heap."""

    def taken(last: Expr) -> Stmt:
        """Puts the worst record that is left behind the others, and the one from there on top."""
        return heap.each(heap.at(last), lambda r: seq(heap.move(last, ZERO), sunk(heap, ZERO, last, r)))

    n = Var("n")
    return for_(n, k - 1, let("last", k - 1 - n, taken))


def _emitted(heap: Records, k: Expr, emit: Emit) -> Stmt:
    place = Var("place")
    return for_(place, k, emit(place, heap.index(heap.at(place))))


def sunk(heap: Records, root: Expr, size: Expr, record: Record) -> Stmt:
    """Puts *record* at *root* of the first *size* records: those below that come after it move up."""
    hole, child = cell("hole"), cell("child")

    def worse() -> Expr:
        """The place of the child that comes later."""
        left = get(child)
        right = select(left + 1 < size, left + 1, left)
        return select(heap.is_before(heap.at(left), heap.at(right)), right, left)

    def step(down: Expr) -> Stmt:
        moved = seq(heap.move(get(hole), down), put(hole, down), put(child, down * 2 + 1))
        return If(heap.is_before(record, heap.at(down)), moved, put(child, size))

    sink = While(get(child) < size, let("down", worse(), step))
    start = seq(put(hole, root), put(child, root * 2 + 1))
    return allocated([hole, child], seq(start, sink, heap.put(get(hole), record)))
