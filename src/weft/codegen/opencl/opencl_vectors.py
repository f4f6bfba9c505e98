"""OpenCL C's words for vectors, which the language has of 2, 4, 8 and 16 lanes (version 1.2, section 6.1.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.c_family.vector_words import VectorWords
from weft.support.dtypes import DType

LANES: Final = 2, 4, 8, 16
_INTEGERS: Final = {8: "char", 16: "short", 32: "int", 64: "long"}
_FLOATS: Final = {32: "float", 64: "double"}
TYPES: Final = frozenset(
    [f"{sign}{name}{n}" for n in LANES for sign in ("", "u") for name in _INTEGERS.values()]
    + [f"{name}{n}" for n in LANES for name in _FLOATS.values()]
)
"""The names of the types."""


def type_name(dtype: DType) -> str:
    """Returns the name of a vector type."""
    if dtype.is_float:
        return f"{_FLOATS[dtype.bits]}{dtype.lanes}"
    return f"{'u' if dtype.kind == 'uint' else ''}{_INTEGERS[dtype.bits]}{dtype.lanes}"


def _shuffled(numbers: str, a: str, b: str, picks: Sequence[int]) -> str:
    return f"shuffle2({a}, {b}, (u{numbers})({', '.join(map(str, picks))}))"


VECTORS: Final = VectorWords(
    type_name=type_name,
    made=lambda kind, lanes: f"({kind})({lanes[0] if len(set(lanes)) == 1 else ', '.join(lanes)})",
    lane=lambda vector, n: f"{vector}.s{n:x}",
    load=lambda dtype, place: f"vload{dtype.lanes}(0, {place})",
    store=lambda dtype, place, value: f"vstore{dtype.lanes}({value}, 0, {place})",
    converted=lambda kind, value: f"convert_{kind}({value})",
    same_bits=lambda kind, value: f"as_{kind}({value})",
    shuffled=_shuffled,
    lanes=LANES[-1],
    own=lambda kind, place: f"*({kind} *)({place})",
)
"""Vectors are loaded from any multiple of their elements' bytes (6.12.7); those of own memory lie at a multiple of theirs."""

OWN: Final = "__attribute__((aligned(128))) "
"""The words before the type of a thread's memory, so that a vector of any type may begin there."""
