"""The first few elements of a slice in order, without sorting the rest: a heap of the best so far, the worst of them on top.

Nearly all elements of a long slice are compared with the top, and no more; one that comes before it takes its place and sinks
(Knuth, "The Art of Computer Programming", volume 3, sections 5.2.3 and 6.1.2). That takes n + k log(k) log(n / k) steps for
elements in random order, n log(k) at worst.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import ONE, ZERO, Expr, Var, maximum, select
from weft.loop import If, Stmt, While, allocated, cell, for_, got, let, put, seq
from weft.ops.algorithms.sort_records import Record, Records
from weft.support.dtypes import DType


def select_first(
    count: Expr, k: Expr, word: DType, words: Callable[[Expr], Expr], emit: Callable[[Expr, Expr], Stmt]
) -> Stmt:
    """Returns statements that call *emit* with each place below *k* and the index of the element that belongs there.

    *words* are as `sort_indices` takes them; the order is the same. There are *k* elements or more of the *count*.
    """
    heap = Records.of("heap", maximum(k, ONE), word)

    def filled(i: Expr) -> Stmt:
        return heap.put(i, heap.make(words(i), i))

    def compared(i: Expr) -> Stmt:
        return heap.each(
            heap.make(words(i), i), lambda r: If(heap.is_before(r, heap.at(ZERO)), _sunk(heap, ZERO, k, r), None)
        )

    def taken(last: Expr) -> Stmt:
        """Puts the worst record that is left behind the others, and the one from there on top."""
        return heap.each(heap.at(last), lambda r: seq(heap.move(last, ZERO), _sunk(heap, ZERO, last, r)))

    j, m, n, p = (Var(name) for name in "jmnp")
    half = k // 2
    heapify = for_(
        j, half, let("root", half - 1 - j, lambda root: heap.each(heap.at(root), lambda r: _sunk(heap, root, k, r)))
    )
    rest = for_(m, count - k, compared(m), begin=k)
    order = for_(n, k - 1, let("last", k - 1 - n, taken))
    result = for_(p, k, emit(p, heap.index(heap.at(p))))
    start = Var("s")
    return allocated(heap.memory, seq(for_(start, k, filled(start)), heapify, rest, order, result))


def _sunk(heap: Records, root: Expr, size: Expr, record: Record) -> Stmt:
    """Puts *record* at *root* of the first *size* records: those below that come after it move up."""
    hole, child = cell("hole"), cell("child")

    def worse() -> Expr:
        """The place of the child that comes later."""
        left = got(child)
        right = select(left + 1 < size, left + 1, left)
        return select(heap.is_before(heap.at(left), heap.at(right)), right, left)

    def step(down: Expr) -> Stmt:
        moved = seq(heap.move(got(hole), down), put(hole, down), put(child, down * 2 + 1))
        return If(heap.is_before(record, heap.at(down)), moved, put(child, size))

    sink = While(got(child) < size, let("down", worse(), step))
    start = seq(put(hole, root), put(child, root * 2 + 1))
    return allocated([hole, child], seq(start, sink, heap.put(got(hole), record)))
