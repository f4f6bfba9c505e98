"""The indices that sort a slice, by their words' digits, from the lowest on: n steps for each digit, whatever the elements.

Each pass puts the records in the order of one digit, and leaves those of equal digits in theirs (Knuth, "The Art of Computer
Programming", volume 3, section 5.2.5). The digits of all passes are counted at once, as the words are made: for n elements of
words of 32 bits and digits of 11, four passes over memory.

    for i: count[p, digit(p, i)] += 1                for each pass p
    for d: count[p, d] = the number of lower digits
    for i: to[count[p, digit(p, i)]++] = from[i]     pass by pass; the last writes the indices
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir import INDEX, Cast, Const, Expr, Var, const, index
from weft.loop import Buffer, Load, Stmt, allocated, cell, for_, get, let, put, seq, store
from weft.ops.algorithms.sort_records import Emit, Record, Records, Words
from weft.support.dtypes import DType, i32

WIDE_DIGIT: Final = 11
"""Bits of a digit of a long slice: the counts of three such digits fit the first-level cache beside the data in use."""

NARROW_DIGIT: Final = 8
"""Bits of a digit of a short slice, where the counts are many for the elements."""

LONG: Final = 4096
"""Elements from which on a slice is long: each of the wider digit's counts is then used twice."""


def sort_indices(count: Expr, word: DType, words: Words, emit: Emit) -> Stmt:
    """Returns statements that call *emit* with each place and the index of the element that belongs there, in ascending order.

    The element at an index has the unsigned integer *words* of it, of type *word*. Equal ones stay in their order.
    """
    digits = _digits(word, count)
    totals = Buffer("digit_counts", (len(digits), 1 << digits[0][1]), i32, "local")
    arrays = [Records.of(f"sorted_{k}", count, word) for k in range(min(2, len(digits) - 1))]
    of = arrays[0] if arrays else Records.of("sorted", count, word)
    parts = [_cleared(totals), _counted(count, words, of, digits, totals), _summed(totals)]
    for n, (shift, bits) in enumerate(digits):
        source = None if n == 0 else arrays[(n - 1) % 2]
        target = None if n == len(digits) - 1 else arrays[n % 2]
        parts.append(_Pass(count, words, of, emit, source, target).run(n, shift, bits, totals))
    return allocated([totals, *[b for a in arrays for b in a.memory]], seq(*parts))


def _digits(word: DType, count: Expr) -> list[tuple[int, int]]:
    """Returns the lowest bit and the bits of each digit, the first the lowest and the longest."""
    short = isinstance(count, Const) and int(count.value) < LONG
    width = min(word.bits, NARROW_DIGIT if short or word.bits <= 2 * NARROW_DIGIT else WIDE_DIGIT)
    return [(low, min(width, word.bits - low)) for low in range(0, word.bits, width)]


def _cleared(totals: Buffer) -> Stmt:
    p, d = Var("p"), Var("d")
    return for_(p, totals.shape[0], for_(d, totals.shape[1], store(totals, (p, d), 0)))


def _counted(count: Expr, words: Words, of: Records, digits: Sequence[tuple[int, int]], totals: Buffer) -> Stmt:
    """Counts how often each value of each digit occurs."""
    i = Var("i")

    def count_all(record: Record) -> Stmt:
        found = [(index(p), of.digit(record, *digit)) for p, digit in enumerate(digits)]
        return seq(*[let("d", d, _counter(totals, p)) for p, d in found])

    return for_(i, count, of.each(of.make(words(i), i), count_all))


def _counter(totals: Buffer, p: Expr) -> Callable[[Expr], Stmt]:
    return lambda d: store(totals, (p, d), Load(totals, (p, d)) + 1)


def _summed(totals: Buffer) -> Stmt:
    """Replaces each count by the number of elements with a lower digit."""
    d = Var("d")
    passes = range(int(getattr(totals.shape[0], "value", 1)))
    sums = [cell(f"lower_{p}", i32) for p in passes]

    def step(p: int) -> Stmt:
        at = (index(p), d)
        return let(
            "c", Load(totals, at), lambda c: seq(store(totals, at, get(sums[p])), put(sums[p], get(sums[p]) + c))
        )

    body = for_(d, totals.shape[1], seq(*map(step, passes)))
    return allocated(sums, seq(*[put(s, const(0, i32)) for s in sums], body))


class _Pass:
    """A pass from *source* (None: the slice itself) to *target* (None: the statements that *emit* makes of place and index)."""

    def __init__(
        self, count: Expr, words: Words, of: Records, emit: Emit, source: Records | None, target: Records | None
    ) -> None:
        self.count, self.words, self.of, self.emit, self.source, self.target = count, words, of, emit, source, target

    def run(self, number: int, shift: int, bits: int, totals: Buffer) -> Stmt:
        """Returns the loop over the elements, which takes them to their places by one digit."""
        i = Var("i")
        record = self.of.make(self.words(i), i) if self.source is None else self.source.at(i)

        def placed(r: Record) -> Stmt:
            return let("d", self.of.digit(r, shift, bits), lambda d: self._place(r, (index(number), d), totals))

        return for_(i, self.count, self.of.each(record, placed))

    def _place(self, record: Record, at: tuple[Expr, Expr], totals: Buffer) -> Stmt:
        """Writes *record* to the next place of its digit, and counts that."""

        def write(place: Expr) -> Stmt:
            where = Cast(place, INDEX)
            if self.target is None:
                return seq(store(totals, at, place + 1), self.emit(where, self.of.index(record)))
            return seq(store(totals, at, place + 1), self.target.put(where, record))

        return let("place", Load(totals, at), write)
