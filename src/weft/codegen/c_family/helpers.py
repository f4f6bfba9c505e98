"""The helpers that generated code calls, each written out only where it is needed.

A helper is named `weft_NAME_TYPE`, such as `weft_max_f32`; `TEMPLATES` has its text with `T` for the C type, `U` for the unsigned
type of its size, and `B` for its bits. A line `uses: ...` names the helpers that it calls itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from weft.codegen.c_family.atomic_helpers import UPDATE_TEMPLATES

_UNION: Final = "union { T value; U bits; } v"
TEMPLATES: Final[dict[str, str]] = {
    **UPDATE_TEMPLATES,
    "of": f"static inline T weft_of(U x) {{ {_UNION}; v.bits = x; return v.value; }}",
    "bits": f"static inline U weft_bits(T x) {{ {_UNION}; v.value = x; return v.bits; }}",
    "min": "static inline T weft_min(T a, T b) { return a < b/*nan*/ ? a : b; }",
    "max": "static inline T weft_max(T a, T b) { return a > b/*nan*/ ? a : b; }",
    "floordiv": """static inline T weft_floordiv(T a, T b) {
  T q = (T)(a / b), r = (T)(a % b);
  return (T)(r != 0 && (r < 0) != (b < 0) ? q - 1 : q);
}""",
    "floormod": """static inline T weft_floormod(T a, T b) {
  T r = (T)(a % b);
  return (T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);
}""",
    "watched": """static inline T weft_watched(weft_ctx *ctx, T x, T low, T high) {
  if (x >= low && x <= high) return x;
  ctx->outside = 1;
  x = x < low ? low : x;
  return x > high ? high : x;
}""",
    "shuffle": "static inline T weft_shuffle(T x, int32_t lane) { return (T)WEFT_SHUFFLE(x, lane); }",
    "iabs": "static inline T weft_iabs(T x) { return (T)(x < 0 ? 0 - (U)x : (U)x); }",
    "abs": "uses: of bits\nstatic inline T weft_abs(T x) { return weft_of(weft_bits(x) & ~((U)1 << (B - 1))); }",
    "copysign": """uses: of bits
static inline T weft_copysign(T x, T sign) {
  U top = (U)1 << (B - 1);
  return weft_of((weft_bits(x) & ~top) | (weft_bits(sign) & top));
}""",
    "is_nan": "static inline bool weft_is_nan(T x) { return x != x; }",
    "is_inf": "uses: abs of\nstatic inline bool weft_is_inf(T x) { return weft_abs(x) == weft_of((U)INFINITE); }",
    "trunc": """uses: abs copysign
static inline T weft_trunc(T x) {
  if (!(weft_abs(x) < WHOLE)) return x;
  return weft_copysign((T)(int64_t)x, x);
}""",
    "floor": """uses: trunc copysign
static inline T weft_floor(T x) {
  T t = weft_trunc(x);
  return t > x ? t - 1 : t;
}""",
    "ceil": """uses: trunc copysign
static inline T weft_ceil(T x) {
  T t = weft_trunc(x);
  return t < x ? weft_copysign(t + 1, x) : t;
}""",
    "round_even": """uses: abs copysign
static inline T weft_round_even(T x) {
  T a = weft_abs(x);
  if (!(a < WHOLE)) return x;
  T r = (T)(int64_t)a, d = a - r;
  if (d > (T)0.5 || (d == (T)0.5 && ((int64_t)r & 1))) r += 1;
  return weft_copysign(r, x);
}""",
    "to_i32": """static inline int32_t weft_to_i32(T x) {
  return x > (T)-2147483649.0 && x < (T)2147483648.0 ? (int32_t)x : INT32_MIN;
}""",
    "to_i64": """static inline int64_t weft_to_i64(T x) {
  return x >= (T)-9223372036854775808.0 && x < (T)9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}""",
    "to_u32": "uses: to_i64\nstatic inline uint32_t weft_to_u32(T x) { return (uint32_t)weft_to_i64(x); }",
    "to_u64": """uses: to_i64
static inline uint64_t weft_to_u64(T x) {
  const T half = (T)9223372036854775808.0;
  return x < half ? (uint64_t)weft_to_i64(x) : (uint64_t)weft_to_i64(x - half) ^ ((uint64_t)1 << 63);
}""",
}
"""Helper functions by name. `nan` tests for NaN; from `WHOLE` on, all numbers are whole; `INFINITE` is infinity's bits."""

_FIXED: Final[dict[str, str]] = {
    "from_bf16": """uses: of_f32
static inline float weft_from_bf16(uint16_t x) { return weft_of_f32((uint32_t)x << 16); }""",
    "to_bf16": """uses: bits_f32
static inline uint16_t weft_to_bf16(float x) {
  uint32_t bits = weft_bits_f32(x);
  if (x != x) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}""",
    "from_f16": """uses: of_f32 bits_f32
static inline float weft_from_f16(uint16_t x) {
  uint32_t shifted = (x & 0x7fffu) << 13, sign = (x & 0x8000u) << 16;
  if (shifted >= 0x7c00u << 13) return weft_of_f32(shifted | 0x7f800000u | sign);
  return weft_of_f32(weft_bits_f32(weft_of_f32(shifted) * 0x1p+112f) | sign);
}""",
    "to_f16": """uses: of_f32 bits_f32
static inline uint16_t weft_to_f16(float x) {
  uint32_t bits = weft_bits_f32(x), size = bits & 0x7fffffffu, made;
  if (size > 0x7f800000u) made = (size >> 13 & 0x3ff) | 0x7e00;
  else if (size >= 0x477ff000u) made = 0x7c00;
  else if (size < 113u << 23) made = weft_bits_f32(weft_of_f32(size) + 0.5f) - 0x3f000000u;
  else made = (size + (0xfffu - (112u << 23)) + (size >> 13 & 1)) >> 13;
  return (uint16_t)(made | (bits >> 16 & 0x8000u));
}""",
    "to_odd": """uses: of_f32 bits_f32 abs_f64
static inline float weft_to_odd(double x) {
  float near = (float)x;
  uint32_t bits = weft_bits_f32(near);
  if (!((double)near != x) || x != x) return near;
  return weft_of_f32((weft_abs_f64((double)near) > weft_abs_f64(x) ? bits - 1 : bits) | 1);
}""",
}
"""Conversions of 16-bit floats. `to_odd` rounds to odd, so that rounding again is as if rounded once (Boldo, Melquiond, 2008)."""

_TYPES: Final = {
    "i8": ("int8_t", "uint8_t"),
    "i16": ("int16_t", "uint16_t"),
    "i32": ("int32_t", "uint32_t"),
    "i64": ("int64_t", "uint64_t"),
    "u8": ("uint8_t", "uint8_t"),
    "u16": ("uint16_t", "uint16_t"),
    "u32": ("uint32_t", "uint32_t"),
    "u64": ("uint64_t", "uint64_t"),
    "f32": ("float", "uint32_t"),
    "f64": ("double", "uint64_t"),
}
_FLOATS: Final = {"f32": ("0x1p+23f", "0x7f800000u"), "f64": ("0x1p+52", "0x7ff0000000000000ull")}


def helper_text(need: str, own: Mapping[str, str]) -> tuple[str, list[str]]:
    """Returns the text of the helper called *need*, such as `max_f32`, and the names of those that it calls."""
    if need in own:
        return own[need], []
    name, _, kind = need.rpartition("_")
    text = _FIXED.get(need) or TEMPLATES[name]
    uses: list[str] = []
    if text.startswith("uses: "):
        head, _, text = text.partition("\n")
        uses = head.removeprefix("uses: ").split()
    return (text, uses) if need in _FIXED else (_for_type(text, kind), [f"{u}_{kind}" for u in uses])


def _for_type(text: str, kind: str) -> str:
    """Returns a template for one type, whose name the names of helpers get."""
    whole, infinite = _FLOATS.get(kind, ("", ""))
    words = {"T": _TYPES[kind][0], "U": _TYPES[kind][1], "B": kind[1:], "WHOLE": whole, "INFINITE": infinite}
    text = text.replace("/*nan*/", " || a != a" if kind in _FLOATS else "")
    text = re.sub(r"\b(T|U|B|WHOLE|INFINITE)\b", lambda m: words[m[1]], text)
    return re.sub(r"\bweft_(?!ctx\b)(\w+)", rf"weft_\1_{kind}", text)


NONE: Final[Mapping[str, str]] = {}


def helpers(needs: Iterable[str], own: Mapping[str, str] = NONE) -> str:
    """Returns the text of the helpers called *needs* and of those that they call, each after its callees.

    *own* are those for which a language has functions or instructions of its own, by name, which call no others.
    """
    written: dict[str, str] = {}

    def write(need: str) -> None:
        text, uses = helper_text(need, own)
        for other in uses:
            if other not in written:
                write(other)
        written.setdefault(need, text)

    for need in sorted(needs):
        write(need)
    return "\n".join(written.values())
