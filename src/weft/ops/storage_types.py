"""Conversions of the types that are only held and moved (`STORAGE`): arithmetic on bits, so that all targets agree on each.

    y = decode(x: f8e4m3fn, dtype=f32)                  exact
    y = encode(x: f32, dtype=f8e4m3fn, saturate=True)   rounded once, to the nearest number, of two as near to the even one

The formats: Micikevicius et al., "FP8 formats for deep learning", 2022 (E4M3FN, E5M2); Noune et al., "8-bit numerical formats for
deep neural networks", 2022 (those with one zero and one NaN, FNUZ); Open Compute Project, "Microscaling formats (MX)
specification", 2023 (E8M0, E2M1). NaN, infinities and numbers out of range are converted as ONNX defines for Cast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.ir import Cast, Expr, Reinterpret, ShiftRight, all_of, const, eq, ne, select
from weft.ops.elementwise import map_tensors
from weft.ops.registry import operator
from weft.support.dtypes import SCALARS, DType, f32, f64, i32, u8, u32, u64
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute

ROUNDINGS: Final = ("up", "down", "nearest")
"""How a number between two powers of two becomes one of them: away from zero, towards it, or the nearer, of two the upper."""


@dataclass(frozen=True)
class Format:
    """A float format with a sign: the bits of its fraction, its bias, and the magnitude of its largest number, all by bits."""

    fraction: int
    bias: int
    largest: int
    nan: int | None = None
    infinity: int | None = None
    sign: int = 7

    @property
    def has_one_zero(self) -> bool:
        """Tells whether the bits of a negative zero are the one NaN."""
        return self.nan == 1 << self.sign


FORMATS: Final[dict[DType, Format]] = {
    SCALARS["f8e4m3fn"]: Format(3, 7, 0x7E, nan=0x7F),
    SCALARS["f8e4m3fnuz"]: Format(3, 8, 0x7F, nan=0x80),
    SCALARS["f8e5m2"]: Format(2, 15, 0x7B, nan=0x7E, infinity=0x7C),
    SCALARS["f8e5m2fnuz"]: Format(2, 16, 0x7F, nan=0x80),
    SCALARS["f4e2m1fn"]: Format(1, 1, 0x7, sign=3),
}

_EXPONENTS: Final = SCALARS["f8e8m0fnu"]
_MAGNITUDE, _INFINITY, _NAN = 0x7FFFFFFF, 0x7F800000, 0x7FC00000  # of f32
_POINT: Final = 23
"""The bits of the fraction of f32."""


@operator("decode", reads_bits=True)
def decode(x: Tensor, *, dtype: DType) -> Tensor:
    """Converts elements of a storage type to *dtype*: floats by way of float32, which has all of them, integers of i32."""
    _check("decode", x.dtype.is_storage and not dtype.is_storage, x.dtype, dtype)

    def converted(e: Expr) -> Expr:
        bits = Cast(Reinterpret(e, u8), u32)
        if x.dtype in FORMATS:
            return _as(_float_of(bits, FORMATS[x.dtype]), dtype)
        return _as(_power_of(bits) if x.dtype is _EXPONENTS else _integer_of(bits, x.dtype), dtype)

    return map_tensors("decode", converted, x, dtype=dtype)


@operator("encode", reads_bits=True)
def encode(x: Tensor, *, dtype: DType, saturate: bool = True, rounding: str = "up") -> Tensor:
    """Converts elements to the storage type *dtype*.

    Floats out of its range become its largest numbers if they are to *saturate*, else infinities, or NaN where it has none; E2M1
    always saturates. *rounding* is one of `ROUNDINGS` and is for E8M0, whose numbers are powers of two: negative ones become NaN.
    Integers keep the low bits, as the conversions between integers do; a float is rounded towards zero first.
    """
    _check("encode", dtype.is_storage and not x.dtype.is_storage, x.dtype, dtype)
    if rounding not in ROUNDINGS:
        raise TypeMismatch(f"encode does not round {rounding!r}", hint=f"use one of {', '.join(ROUNDINGS)}")

    def converted(e: Expr) -> Expr:
        if not dtype.holds_floats:
            return Reinterpret(_low_bits(e, dtype), dtype)
        bits = Reinterpret(_single(e), u32)
        made = (
            _bits_of_power(bits, saturate, rounding)
            if dtype is _EXPONENTS
            else _bits_of_float(bits, FORMATS[dtype], saturate=saturate)
        )
        return Reinterpret(Cast(made, u8), dtype)

    return map_tensors("encode", converted, x, dtype=dtype)


def _check(op: str, fits: bool, source: DType, dtype: DType) -> None:
    if not fits:
        raise TypeMismatch(
            f"{op} does not convert {source} to {dtype}", hint="use cast between types that are computed with"
        )


def _as(e: Expr, dtype: DType) -> Expr:
    return e if e.dtype is dtype else Cast(e, dtype)


def _float_of(bits: Expr, form: Format) -> Expr:
    """Returns the f32 with the value that *bits* has in a format.

    A number below the normal ones gets the least normal exponent, and the one before the point that this implies is taken off.
    """
    magnitude = bits & ((1 << form.sign) - 1)
    normal = (magnitude << (_POINT - form.fraction)) + ((127 - form.bias) << _POINT)
    least = Reinterpret(normal + (1 << _POINT), f32) - const(2.0 ** (1 - form.bias), f32)
    made = select(magnitude < (1 << form.fraction), Reinterpret(least, u32), normal)
    if form.infinity is not None:
        made = select(eq(magnitude, form.infinity), const(_INFINITY, u32), made)
    if form.nan is not None and not form.has_one_zero:
        made = select(magnitude > (form.infinity or form.largest), const(_NAN, u32), made)
    made = made | ((bits >> form.sign & 1) << 31)
    if form.has_one_zero:
        made = select(eq(bits, 1 << form.sign), const(_NAN | 1 << 31, u32), made)
    return Reinterpret(made, f32)


def _bits_of_float(single: Expr, form: Format, *, saturate: bool) -> Expr:
    """Returns the bits in a format of the number nearest to an f32, which is given by its own.

    From the least normal number on, the exponent is biased anew, and half a unit added, less one where the result would be odd.
    Below it, the adder rounds: to a power of two so large that its unit is the format's least number.
    """
    magnitude, drop = single & _MAGNITUDE, _POINT - form.fraction
    moved = magnitude + ((1 << (drop - 1)) - 1) + (magnitude >> drop & 1) - ((127 - form.bias) << _POINT)
    anchor = const(2.0 ** (drop + 1 - form.bias), f32)
    small = Reinterpret(Reinterpret(magnitude, f32) + anchor, u32) - Reinterpret(anchor, u32)
    near = select(magnitude < ((128 - form.bias) << _POINT), small, moved >> drop)
    beyond = form.largest if saturate or form.nan is None else form.nan if form.infinity is None else form.infinity
    made = select(near > form.largest, const(beyond, u32), near)
    if form.nan is not None:
        made = select(magnitude > _INFINITY, const(form.nan, u32), made)
        sign = single >> 31 << form.sign
        return select(eq(made & ((1 << form.sign) - 1), 0), made, made | sign) if form.has_one_zero else made | sign
    # E2M1 has no NaN: it becomes zero, with the sign that ml_dtypes gives it, the other one
    is_nan = magnitude > _INFINITY
    sign = select(is_nan, (single >> 31) ^ 1, single >> 31) << form.sign
    return select(is_nan, const(0, u32), made) | sign


def _power_of(bits: Expr) -> Expr:
    """Returns the f32 with the value of an E8M0; the least, 2^-127, is below the normal numbers of f32."""
    made = select(eq(bits, 0), const(1 << (_POINT - 1), u32), bits << _POINT)
    return Reinterpret(select(eq(bits, 0xFF), const(_NAN, u32), made), f32)


def _bits_of_power(single: Expr, saturate: bool, rounding: str) -> Expr:
    """Returns the E8M0 of an f32: its exponent, one more where the fraction is rounded up."""
    magnitude, least = single & _MAGNITUDE, 1 << (_POINT - 1)
    normal = (magnitude + {"up": (1 << _POINT) - 1, "down": 0, "nearest": least}[rounding]) >> _POINT
    second = {"up": least + 1, "down": 1 << _POINT, "nearest": least + least // 2}[rounding]
    near = select(magnitude < 1 << _POINT, select(magnitude < second, const(0, u32), const(1, u32)), normal)
    made = select(near > 0xFE, const(0xFE if saturate else 0xFF, u32), near)
    if not saturate:
        made = select(magnitude < least, const(0xFF, u32), made)
    is_negative = all_of([ne(single >> 31, 0), ne(magnitude, 0)])
    return select(magnitude > _INFINITY, const(0xFF, u32), select(is_negative, const(0xFF, u32), made))


def _integer_of(bits: Expr, dtype: DType) -> Expr:
    """Returns the i32 with the value of an integer of 4 or 2 bits."""
    value = Cast(bits & ((1 << dtype.used_bits) - 1), i32)
    sign = -dtype.int_range[0]
    return (value ^ sign) - sign if sign else value


def _low_bits(e: Expr, dtype: DType) -> Expr:
    """Returns the low bits of an integer, or of a float without its fraction: none of them if it is beyond 32 bits, or NaN."""
    if e.dtype.is_float:
        wide = e if e.dtype is f64 else _as(e, f32)
        bound, zero = const(2.0**31, wide.dtype), const(0.0, wide.dtype)
        e = Cast(select(all_of([wide < bound, -wide < bound]), wide, zero), i32)
    return _as(e, u8) & ((1 << dtype.used_bits) - 1)


def _single(e: Expr) -> Expr:
    """Returns a number as f32; one that f32 lacks as one beside it whose last bit is odd, so that rounding once more is exact.

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008. Integers
    of 64 bits are rounded to 53 first.
    """
    is_exact = e.dtype.bits <= 16 or e.dtype is f32  # all these integers and floats are among those of f32
    if is_exact:
        return _as(e, f32)
    wide = _as(e, f64)
    near = Cast(wide, f32)
    bits, back = Reinterpret(near, u32), Cast(near, f64)
    magnitude = (1 << 63) - 1
    is_above = (Reinterpret(back, u64) & magnitude) > (Reinterpret(wide, u64) & magnitude)
    odd = select(is_above, bits - 1, bits) | 1
    return Reinterpret(select(all_of([ne(back, wide), eq(wide, wide)]), odd, bits), f32)


@operator("unpack", reads_bits=True, unpacks=True)
def unpack(x: Tensor, *, dtype: DType) -> Tensor:
    """Takes bytes [n, ...] apart, each into m elements [m * n, ...] of a type of 4 or 2 bits.

    The first n rows are in the lowest bits of the bytes, the next n in those above: neighbours in a row stay neighbours.
    """
    _check("unpack", x.dtype is u8 and x.rank > 0 and dtype.is_storage and dtype.used_bits < u8.bits, x.dtype, dtype)
    count = u8.bits // dtype.used_bits

    def element(*i: Expr) -> Expr:
        byte, place = x[(i[0] % x.shape[0], *i[1:])], Cast(i[0] // x.shape[0], u8)
        return Reinterpret(ShiftRight(byte, place * dtype.used_bits) & ((1 << dtype.used_bits) - 1), dtype)

    return compute((x.shape[0] * count, *x.shape[1:]), element, "unpack", dtype=dtype)
