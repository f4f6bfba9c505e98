"""How a language of C's family writes vectors: as values that it computes with, or only as what is loaded and stored at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.support.dtypes import DType

VECTOR_EXTENSIONS: Final = "vector_extensions"
"""The feature of a target whose C compiler has vector types: GCC, Clang, and those that follow them."""


@dataclass(frozen=True)
class VectorWords:
    """A language's words for vectors with up to `lanes` lanes that are values.

    `type_name` is the type of a vector, `made` one of its lanes, `lane` one of these. `load` and `store` are accesses of what
    lies side by side from a pointer on, of whatever alignment. `converted` changes the type of the lanes, `same_bits` takes them
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
    """A language's words for vectors that are only loaded and stored, at a multiple of their bytes.

    `shapes` are the lanes of vectors and the bits of each. `type_name` is the type of a vector, `made` one of its lanes, and
    `lane` one of these.
    """

    shapes: frozenset[tuple[int, int]]
    type_name: Callable[[DType], str]
    made: Callable[[DType, Sequence[str]], str]
    lane: Callable[[DType, str, int], str]

    def has(self, dtype: DType) -> bool:
        """Tells whether *dtype* is such a vector."""
        return (dtype.lanes, dtype.bits) in self.shapes


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
