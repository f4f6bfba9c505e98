"""Vectors in a language of the C family: types to compute with, or only the units of loads and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.codegen.c_family.c_types import memory_type
from weft.support.dtypes import DType

VECTOR_EXTENSIONS: Final = "vector_extensions"
"""The feature of a target whose C compiler has vector types: GCC, Clang, and those that follow them."""


@dataclass(frozen=True)
class VectorWords:
    """A language's words for vectors with up to `lanes` lanes that are values.

    `type_name` is the type of a vector, `made` one of its lanes, `lane` one of these. `load` and `store` access elements that
    lie side by side from a pointer on, of whatever alignment. `converted` changes the type of the lanes, `same_bits` takes them
    as others; `shuffled` picks lanes of two. `own` is a vector of a thread's own memory, at a multiple of its bytes, which
    compilers keep in a register, where `load` and `store` would take it apart. With a `feature`, targets without it have none
    of this.
    """

    type_name: Callable[[DType], str]
    made: Callable[[str, Sequence[str]], str]
    lane: Callable[[str, int], str]
    load: Callable[[DType, str], str]
    store: Callable[[DType, str, str], str]
    converted: Callable[[str, str], str]
    same_bits: Callable[[str, str], str]
    shuffled: Callable[[str, str, str, Sequence[int]], str]
    lanes: int
    feature: str | None = None
    own: Callable[[str, str], str] | None = None


@dataclass(frozen=True)
class MemoryVectors:
    """A language's words for vectors of 4 or 2 words of 32 bits that are only loaded and stored, at a multiple of their bytes.

    `type_name` is the type of a vector, `made` one of its words, and `names` are the names of these. Shorter elements,
    integers in C, are parts of unsigned words, the first in the lowest bits, and may fill one. Longer vectors are several.
    """

    type_name: Callable[[DType], str]
    made: Callable[[str, Sequence[str]], str]
    names: str = "xyzw"

    def lanes(self, dtype: DType) -> int:
        """Returns how many elements of *dtype* are accessed at once; 0 where they are no words, nor whole parts of them."""
        is_part = dtype.bits in (8, 16) and not dtype.is_bool
        if not (is_part or dtype.bits == _WORD) or dtype.lanes * dtype.bits % _WORD:
            return 0
        words = dtype.lanes * dtype.bits // _WORD
        counts = (len(self.names), 2, 1) if is_part else (len(self.names), 2)
        return next((n * _WORD // dtype.bits for n in counts if words % n == 0), 0)

    def has(self, dtype: DType) -> bool:
        """Tells whether *dtype* is one or several such vectors."""
        return self.lanes(dtype) > 0

    def words(self, dtype: DType) -> str:
        """Returns the type of an access of a vector of *dtype*: a vector of words, or one word."""
        count = self.lanes(dtype) * dtype.bits // _WORD
        kind = dtype.element if dtype.bits == _WORD else _UNSIGNED
        return memory_type(kind) if count == 1 else self.type_name(kind.with_lanes(count))

    def taken_apart(self, vector: str, dtype: DType) -> list[str]:
        """Returns the elements of the words of *vector*."""
        count = self.lanes(dtype) * dtype.bits // _WORD
        words = [vector] if count == 1 else [f"{vector}.{name}" for name in self.names[:count]]
        if dtype.bits == _WORD:
            return words
        kind, shifts = memory_type(dtype), range(0, _WORD, dtype.bits)
        return [f"({kind})({w} >> {n})" if n else f"({kind}){w}" for w in words for n in shifts]

    def put_together(self, dtype: DType, elements: Sequence[str]) -> str:
        """Returns the vector of *elements*."""
        each = _WORD // dtype.bits
        own, wide = memory_type(_UNSIGNED_OF[dtype.bits]), memory_type(_UNSIGNED)
        parts = [elements[n : n + each] for n in range(0, len(elements), each)]
        words = [
            " | ".join(
                [f"({wide})({own}){x} << {dtype.bits * n}" if n else f"({wide})({own}){x}" for n, x in enumerate(p)]
            )
            for p in parts
        ]
        return words[0] if len(elements) == each > 1 else self.made(self.words(dtype), words if each > 1 else elements)


_WORD: Final = 32
_UNSIGNED_OF: Final = {bits: DType("uint", bits) for bits in (8, 16, 32)}
_UNSIGNED: Final = _UNSIGNED_OF[_WORD]


def _gcc_name(dtype: DType) -> str:
    return f"weft_{dtype.name}"


GCC_VECTORS: Final = VectorWords(
    type_name=_gcc_name,
    made=lambda kind, lanes: f"({kind}){{{', '.join(lanes)}}}",
    lane=lambda vector, n: f"{vector}[{n}]",
    load=lambda dtype, place: f"*(const {_gcc_name(dtype)}_u *)({place})",
    store=lambda dtype, place, value: f"*({_gcc_name(dtype)}_u *)({place}) = {value}",
    converted=lambda kind, value: f"__builtin_convertvector({value}, {kind})",
    same_bits=lambda kind, value: f"({kind}){value}",
    shuffled=lambda numbers, a, b, picks: f"WEFT_SHUFFLE({numbers}, {a}, {b}, {', '.join(map(str, picks))})",
    lanes=1 << 16,
    feature=VECTOR_EXTENSIONS,
)
"""The vector extensions of GCC and Clang, whose types are declared at the head of a file."""
