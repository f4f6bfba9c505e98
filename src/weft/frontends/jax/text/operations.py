"""The module that a text describes: functions, and the operations in them.

module    ::= functions by name
function  ::= arguments, result types, body
region    ::= (arguments) operations, of which the last returns
operation ::= results = name operands {attributes} (regions) : types
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.frontends.jax.text.locations import Locations
from weft.support.dtypes import SCALARS, DType

_TENSOR: Final = re.compile(r"tensor<((?:(?:\d{1,18}|\?)x)*)([\w.]+|complex<\w+>|!.*?)(?:, .*)?>")

ELEMENTS: Final[dict[str, DType]] = {
    "i1": SCALARS["bool"],
    "index": SCALARS["i64"],
    **{f"i{b}": SCALARS[f"i{b}"] for b in (8, 16, 32, 64)},
    **{f"ui{b}": SCALARS[f"u{b}"] for b in (8, 16, 32, 64)},
    **{name: SCALARS[name] for name in ("f16", "bf16", "f32", "f64")},
    "i4": SCALARS["int4"],
    "ui4": SCALARS["uint4"],
    "i2": SCALARS["int2"],
    "ui2": SCALARS["uint2"],
    **{f"f8{n}": SCALARS[f"f8{n.lower()}"] for n in ("E4M3FN", "E5M2", "E4M3FNUZ", "E5M2FNUZ", "E8M0FNU")},
    "f4E2M1FN": SCALARS["f4e2m1fn"],
}
"""Weft's element types by MLIR's names for them."""


@dataclass(frozen=True)
class TensorText:
    """The type of a tensor: sizes, None for those that are not known, and the name of the elements' type."""

    shape: tuple[int | None, ...]
    element: str

    @property
    def dtype(self) -> DType | None:
        """Weft's type of the elements; None where it has none."""
        return ELEMENTS.get(self.element)


def tensor_type(text: str) -> TensorText | None:
    """Returns the type that *text* is, `tensor<2x?xf32>`; None for types of other things."""
    found = _TENSOR.fullmatch(text)
    if found is None:
        return None
    sizes = found[1].split("x")[:-1]
    return TensorText(tuple([None if s == "?" else int(s) for s in sizes]), found[2])


@dataclass
class Operation:
    """An operation; `words` are those of its text that stand alone, as the direction of a comparison does."""

    name: str
    line: int
    results: list[str]
    operands: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    operand_types: list[str] = field(default_factory=list)
    result_types: list[str] = field(default_factory=list)
    location: str = ""


@dataclass
class Region:
    """Operations with the names of their arguments."""

    arguments: list[str]
    operations: list[Operation]


@dataclass
class Argument:
    """An argument of a function."""

    name: str
    type: str
    attributes: Mapping[str, Any]
    location: str


@dataclass
class Function:
    """A function, with the attributes of its results."""

    name: str
    arguments: Sequence[Argument]
    results: Sequence[Mapping[str, Any]]
    body: Region


@dataclass
class Module:
    """The functions by their names; the first public one is the program."""

    name: str
    functions: dict[str, Function]
    locations: Locations
    resources: Mapping[str, str]
