"""Elements to be put in order: a word whose order as an unsigned integer is that of the element, and the element's index.

    1.5, 2.5, -1.0         words 0xbfc00000, 0xc0200000, 0x407fffff

A word of 32 bits or fewer and its index are packed into one integer of 64 bits, the word above, which is moved, and compared with
others, at once: of equal elements the one with the lower index is less. A longer word has its index beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.ir import INDEX, Cast, Expr, Reinterpret, cast, const, eq
from weft.loop import Buffer, Load, Stmt, let, seq, store
from weft.ops.nan_order import order_key
from weft.support.dtypes import DType, i32, u8, u16, u32, u64

INDEX_BITS: Final = 32
"""The bits of an index beside a word; a slice has fewer elements than that can count."""

Record: TypeAlias = tuple[Expr, ...]
"""The parts of a record: packed, or its word and its index."""

Words: TypeAlias = Callable[[Expr], Expr]
"""The word of the element at an index."""

Emit: TypeAlias = Callable[[Expr, Expr], Stmt]
"""The statement that takes a place in order, and the index of the element that belongs there."""

_UNSIGNED: Final = {8: u8, 16: u16, 32: u32, 64: u64}


def sort_word(e: Expr, *, descending: bool = False) -> Expr:
    """Returns an unsigned integer that is greater just where *e* is greater, or less with *descending*; NaN is the greatest."""
    key = order_key(e)
    if key.dtype.is_bool:
        key = cast(key, u8)
    word = _UNSIGNED[key.dtype.bits]
    signed = key.dtype is not word
    bits = Reinterpret(key, word) if signed else key
    flipped = (1 << (word.bits - 1) if signed else 0) ^ ((1 << word.bits) - 1 if descending else 0)
    return bits ^ const(flipped, word) if flipped else bits


@dataclass(frozen=True)
class Records:
    """An array of records of words of *word*: `memory` is one buffer of packed records, or one of words and one of indices."""

    word: DType
    memory: tuple[Buffer, ...]

    @staticmethod
    def of(name: str, size: Expr, word: DType) -> Records:
        """Returns an array of *size* records; its memory is to be allocated."""
        packed = Buffer(name, (size,), u64, "local")
        if word.bits <= u64.bits - INDEX_BITS:
            return Records(word, (packed,))
        return Records(word, (packed, Buffer(f"{name}_at", (size,), i32, "local")))

    def each(self, record: Record, body: Callable[[Record], Stmt]) -> Stmt:
        """Returns the statement that *body* makes of a record whose parts are computed once."""
        if len(record) == 1:
            return let("record", record[0], lambda r: body((r,)))
        return let("word", record[0], lambda w: let("at", record[1], lambda i: body((w, i))))

    def make(self, word: Expr, index: Expr) -> Record:
        """Returns the record of a word at an index."""
        if len(self.memory) == 1:
            return ((cast(word, u64) << INDEX_BITS) | Cast(Cast(index, u32), u64),)
        return (word, Cast(index, i32))

    def last_of(self, word: Expr) -> Record:
        """Returns a record that comes after those of all elements with the same *word*."""
        return self.make(word, const(i32.int_range[1], INDEX))

    def at(self, place: Expr) -> Record:
        """Returns the record at *place*."""
        return tuple([Load(b, (place,)) for b in self.memory])

    def put(self, place: Expr, record: Record) -> Stmt:
        """Returns the statement that writes *record* to *place*."""
        return seq(*[store(b, (place,), e) for b, e in zip(self.memory, record, strict=True)])

    def move(self, to: Expr, place: Expr) -> Stmt:
        """Returns the statement that copies the record at *place*."""
        return self.put(to, self.at(place))

    def digit(self, record: Record, shift: int, bits: int) -> Expr:
        """Returns the digit of *bits* of a record's word that begins at bit *shift*, as an index."""
        low = shift + (INDEX_BITS if len(self.memory) == 1 else 0)
        return cast((record[0] >> low) & const((1 << bits) - 1, u64), INDEX)

    def index(self, record: Record) -> Expr:
        """Returns a record's index."""
        if len(self.memory) == 1:
            return Cast(record[0] & const((1 << INDEX_BITS) - 1, u64), INDEX)
        return Cast(record[1], INDEX)

    def is_before(self, a: Record, b: Record) -> Expr:
        """Returns the condition that the record *a* comes before *b*; no two are equal."""
        if len(self.memory) == 1:
            return a[0] < b[0]
        return (a[0] < b[0]) | (eq(a[0], b[0]) & (a[1] < b[1]))
