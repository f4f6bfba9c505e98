"""Data types: a kind, a width in bits, and a number of lanes.

A `DType` is interned, so equal types are the same object and `is` compares them. Text forms are
short: `f32`, `i64`, `u8`, `bool`, `bf16`, and `f32x16` for a vector of sixteen lanes.

Floats of 8 and 4 bits and integers of 4 and 2 bits are `STORAGE` types: tensors may consist of them, and their elements may be
loaded, stored, chosen between and reinterpreted as `u8`. Nothing computes with them; operators that convert them do so by
arithmetic on their bits. In memory each takes a byte, its bits the low ones. Names are those of MLIR and ml_dtypes.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np

from weft.support.errors import ToolchainError

try:
    import ml_dtypes
except ImportError:  # the runtime does without: only models that take or make the types it has need it
    ml_dtypes = None

_INTERNED: dict[tuple[str, int, int], DType] = {}


class DType:
    """A scalar or vector type; `kind` is one of bool, int, uint, float, bfloat, handle, or a storage type's own name."""

    __leaf__ = "identity"
    __slots__ = ("__dict__", "bits", "element", "is_bool", "is_float", "is_int", "is_storage", "kind", "lanes")

    kind: str
    bits: int
    lanes: int
    element: DType  # the type of one lane
    is_float: bool
    is_int: bool
    is_bool: bool
    is_storage: bool  # held and moved, not computed with

    def __new__(cls, kind: str, bits: int, lanes: int = 1) -> DType:
        """Returns the one object for this kind, width and number of lanes."""
        key = (kind, bits, lanes)
        self = _INTERNED.get(key)
        if self is None:
            self = super().__new__(cls)
            self.kind, self.bits, self.lanes = key
            self.element = self if lanes == 1 else DType(kind, bits)
            self.is_float = kind in ("float", "bfloat")
            self.is_int = kind in ("int", "uint")
            self.is_bool = kind == "bool"
            self.is_storage = kind in STORAGE
            self = _INTERNED.setdefault(key, self)
        return self

    def with_lanes(self, lanes: int) -> DType:
        """Returns the type with the same elements and *lanes* of them."""
        return self if lanes == self.lanes else DType(self.kind, self.bits, lanes)

    @cached_property
    def bytes(self) -> int:
        """Bytes that one value takes in memory; a bool takes one byte a lane."""
        return max(self.bits, 8) // 8 * self.lanes

    @cached_property
    def name(self) -> str:
        """The text form, such as `f32` or `i64x8`."""
        base = self.kind if self.is_storage else _SHORT[self.kind]
        base += "" if self.is_storage or self.kind in ("bool", "handle") else str(self.bits)
        return base if self.lanes == 1 else f"{base}x{self.lanes}"

    @cached_property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype of one lane; raises `ToolchainError` for one that only the missing package ml_dtypes has."""
        if self.element.name not in _NUMPY:
            raise ToolchainError(
                f"NumPy has no {_EXTRA[self.element.name]} without the package ml_dtypes", hint="pip install ml_dtypes"
            )
        dtype: np.dtype[np.generic] = np.dtype(_NUMPY[self.element.name])
        return dtype

    @cached_property
    def code(self) -> int:
        """The number that the native runtime knows a scalar type by."""
        return CODES[self.element.name]

    @cached_property
    def int_range(self) -> tuple[int, int]:
        """The smallest and the largest value of an integer type."""
        if self.kind in ("int", "int4", "int2"):
            return -(1 << (self.used_bits - 1)), (1 << (self.used_bits - 1)) - 1
        return 0, (1 << self.used_bits) - 1

    @cached_property
    def used_bits(self) -> int:
        """The bits of a lane that tell its value: fewer than `bits` in types of 4 and 2."""
        return STORAGE[self.kind][0] if self.is_storage else self.bits

    @property
    def holds_floats(self) -> bool:
        """Tells whether the elements stand for floats, storage types included."""
        return self.is_float or (self.is_storage and self.kind[0] == "f")

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return DType, (self.kind, self.bits, self.lanes)


STORAGE: Final[dict[str, tuple[int, str]]] = {
    "f8e4m3fn": (8, "float8_e4m3fn"),
    "f8e4m3fnuz": (8, "float8_e4m3fnuz"),
    "f8e5m2": (8, "float8_e5m2"),
    "f8e5m2fnuz": (8, "float8_e5m2fnuz"),
    "f8e8m0fnu": (8, "float8_e8m0fnu"),
    "f4e2m1fn": (4, "float4_e2m1fn"),
    "int4": (4, "int4"),
    "uint4": (4, "uint4"),
    "int2": (2, "int2"),
    "uint2": (2, "uint2"),
}
"""The types that are only held and moved: the bits of the byte that an element uses, and the name in ml_dtypes."""

_SHORT: Final = {"bool": "bool", "int": "i", "uint": "u", "float": "f", "bfloat": "bf", "handle": "handle"}

bool_: Final = DType("bool", 1)
i8: Final = DType("int", 8)
i16: Final = DType("int", 16)
i32: Final = DType("int", 32)
i64: Final = DType("int", 64)
u8: Final = DType("uint", 8)
u16: Final = DType("uint", 16)
u32: Final = DType("uint", 32)
u64: Final = DType("uint", 64)
f16: Final = DType("float", 16)
bf16: Final = DType("bfloat", 16)
f32: Final = DType("float", 32)
f64: Final = DType("float", 64)
handle: Final = DType("handle", 64)

SCALARS: Final = {
    t.name: t
    for t in (
        *(bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, handle),
        *[DType(name, 8) for name in STORAGE],
    )
}
CODES: Final = {name: code for code, name in enumerate(SCALARS)}
_EXTRA: Final = {"bf16": "bfloat16", **{name: extra for name, (_, extra) in STORAGE.items()}}
_NUMPY: Final[dict[str, Any]] = {
    "bool": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "handle": np.uint64,
    **({} if ml_dtypes is None else {name: getattr(ml_dtypes, extra) for name, extra in _EXTRA.items()}),
}
_OF_NUMPY: Final = {np.dtype(n): SCALARS[t] for t, n in _NUMPY.items() if t != "handle"}


def parse_dtype(text: str) -> DType:
    """Returns the type whose text form is *text*; raises `KeyError` for anything else."""
    base, x, lanes = text.partition("x")
    return SCALARS[base].with_lanes(int(lanes)) if x else SCALARS[base]


def from_numpy(dtype: Any) -> DType:
    """Returns the type of a NumPy dtype; raises `KeyError` for one that Weft has no type for."""
    return _OF_NUMPY[np.dtype(dtype)]
