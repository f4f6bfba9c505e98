"""The helpers for which Metal Shading Language has functions of its own: roundings, bits of numbers, 16-bit floats, shuffles.

The language has no hexadecimal floats, which those of C use, and GPUs take f32 that are too small for a normal one for 0, so
that conversions of f16 are its own. It has `bfloat` from version 3.1 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.codegen.c_family.atomic_helpers import WORDS_OF_32, native_updates, swaps
from weft.codegen.metal.simdgroup_products import PRODUCT_HELPERS

_ROUNDINGS: Final = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round_even": "rint"}

_ORDER: Final = "memory_order_relaxed"
_SWAP: Final = (
    f"return atomic_compare_exchange_weak_explicit((WEFT_GLOBAL atomic_uint *)place, old, made, {_ORDER}, {_ORDER});"
)
_UPDATES: Final = {
    (k, t): f"atomic_fetch_{k}_explicit((WEFT_GLOBAL {kind} *)place, x, {_ORDER});"
    for t, kind in (("u32", "atomic_uint"), ("i32", "atomic_int"))
    for k in (("add", "min", "max") if t == "u32" else ("min", "max"))
}

OWN_HELPERS: Final[Mapping[str, str]] = {
    **PRODUCT_HELPERS,
    "of_f32": "static inline float weft_of_f32(uint32_t x) { return as_type<float>(x); }",
    "bits_f32": "static inline uint32_t weft_bits_f32(float x) { return as_type<uint32_t>(x); }",
    **{
        f"{k}_f32": f"static inline float weft_{k}_f32(float x) {{ return precise::{v}(x); }}"
        for k, v in _ROUNDINGS.items()
    },
    **{
        f"shuffle_{k}": f"""static inline {t} weft_shuffle_{k}({t} x, int32_t lane) {{
  return as_type<{t}>(simd_shuffle(as_type<uint2>(x), ushort(lane)));
}}"""
        for k, t in (("i64", "int64_t"), ("u64", "uint64_t"))
    },
    **swaps(_SWAP, WORDS_OF_32, "thread "),
    **native_updates(_UPDATES),
    "from_f16": "static inline float weft_from_f16(uint16_t x) { return float(as_type<half>(x)); }",
    "to_f16": "static inline uint16_t weft_to_f16(float x) { return as_type<uint16_t>(half(x)); }",
    "from_bf16": "static inline float weft_from_bf16(uint16_t x) { return as_type<float>(uint32_t(x) << 16); }",
    "to_bf16": """#ifdef __HAVE_BFLOAT__
static inline uint16_t weft_to_bf16(float x) { return as_type<uint16_t>(bfloat(x)); }
#else
static inline uint16_t weft_to_bf16(float x) {
  uint32_t bits = as_type<uint32_t>(x);
  if (x != x) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#endif""",
}
"""The helpers by name, see `c_family.helpers`."""
