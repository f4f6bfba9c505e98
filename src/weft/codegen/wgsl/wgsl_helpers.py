"""The helpers that kernels in WGSL call, each written out only where it is needed; the language lets them stand in any order.

Numbers of two words, `vec2<u32>`, have the low one first. A compiler of the language may take NaNs and infinities not to
happen, so that they are told by their bits; and sums for associative, so that `rounded` changes the bits of one by a zero that it
does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_CALL: Final = re.compile(r"\bweft_(\w+)\(")

_FLOATS: Final = {
    "of_f32": "fn weft_of_f32(x: u32) -> f32 { return bitcast<f32>(x); }",
    "rounded_f32": "fn weft_rounded_f32(x: f32, zero: u32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ zero); }",
    "is_nan_f32": "fn weft_is_nan_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }",
    "is_inf_f32": "fn weft_is_inf_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }",
    "min_f32": "fn weft_min_f32(a: f32, b: f32) -> f32 { return select(b, a, weft_is_nan_f32(a) || a < b); }",
    "max_f32": "fn weft_max_f32(a: f32, b: f32) -> f32 { return select(b, a, weft_is_nan_f32(a) || a > b); }",
    "copysign_f32": """fn weft_copysign_f32(x: f32, sign: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(sign) & 0x80000000u));
}""",
    "to_i32": """fn weft_to_i32(x: f32) -> i32 {
  if (!weft_is_nan_f32(x) && x >= -2147483648.0f && x < 2147483648.0f) { return i32(x); }
  return bitcast<i32>(0x80000000u);
}""",
    "to_i64": """fn weft_to_i64(x: f32) -> vec2<u32> {
  if (weft_is_nan_f32(x) || x < -9223372036854775808.0f || x >= 9223372036854775808.0f) { return vec2<u32>(0u, 0x80000000u); }
  let a = trunc(abs(x));
  let high = floor(a * 2.3283064365386963e-10f);
  let made = vec2<u32>(u32(a - high * 4294967296.0f), u32(high));
  if (x < 0.0f) { return weft_sub_i64(vec2<u32>(0u, 0u), made); }
  return made;
}""",
    "to_u64": """fn weft_to_u64(x: f32) -> vec2<u32> {
  if (x < 9223372036854775808.0f) { return weft_to_i64(x); }
  return weft_to_i64(x - 9223372036854775808.0f) ^ vec2<u32>(0u, 0x80000000u);
}""",
    "from_bf16": "fn weft_from_bf16(x: u32) -> f32 { return bitcast<f32>(x << 16u); }",
    "to_bf16": """fn weft_to_bf16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if (weft_is_nan_f32(x)) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}""",
    "from_f16": """fn weft_from_f16(x: u32) -> f32 {
  let shifted = (x & 0x7fffu) << 13u;
  let sign = (x & 0x8000u) << 16u;
  if (shifted >= (0x7c00u << 13u)) { return bitcast<f32>(shifted | 0x7f800000u | sign); }
  if (shifted >= (0x400u << 13u)) { return bitcast<f32>((shifted + (112u << 23u)) | sign); }
  return bitcast<f32>(bitcast<u32>(f32(x & 0x3ffu) * 5.9604644775390625e-8f) | sign);
}""",
    "to_f16": """fn weft_to_f16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let size = bits & 0x7fffffffu;
  var made: u32;
  if (size > 0x7f800000u) { made = ((size >> 13u) & 0x3ffu) | 0x7e00u; }
  else if (size >= 0x477ff000u) { made = 0x7c00u; }
  else if (size < (113u << 23u)) { made = bitcast<u32>(bitcast<f32>(size) + 0.5f) - 0x3f000000u; }
  else { made = (size - (112u << 23u) + 0xfffu + ((size >> 13u) & 1u)) >> 13u; }
  return made | ((bits >> 16u) & 0x8000u);
}""",
}

_WORDS: Final = {
    "floordiv_i32": """fn weft_floordiv_i32(a: i32, b: i32) -> i32 {
  let q = a / b;
  return select(q, q - 1i, a % b != 0i && ((a < 0i) != (b < 0i)));
}""",
    "floormod_i32": """fn weft_floormod_i32(a: i32, b: i32) -> i32 {
  let r = a % b;
  return select(r, r + b, r != 0i && ((r < 0i) != (b < 0i)));
}""",
    "extend": "fn weft_extend(x: i32) -> vec2<u32> { return vec2<u32>(u32(x), u32(x >> 31u)); }",
    "add_i64": """fn weft_add_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}""",
    "sub_i64": """fn weft_sub_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}""",
    "mul_i64": """fn weft_mul_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let al = a.x & 0xffffu;
  let ah = a.x >> 16u;
  let bl = b.x & 0xffffu;
  let bh = b.x >> 16u;
  let ll = al * bl;
  let m = ah * bl + (ll >> 16u);
  let n = al * bh + (m & 0xffffu);
  let high = ah * bh + (m >> 16u) + (n >> 16u);
  return vec2<u32>((n << 16u) | (ll & 0xffffu), high + a.x * b.y + a.y * b.x);
}""",
    "abs_i64": """fn weft_abs_i64(a: vec2<u32>) -> vec2<u32> {
  return select(a, weft_sub_i64(vec2<u32>(0u, 0u), a), (a.y >> 31u) != 0u);
}""",
    "shl_i64": """fn weft_shl_i64(a: vec2<u32>, by: vec2<u32>) -> vec2<u32> {
  let n = by.x & 63u;
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2<u32>(0u, a.x << (n - 32u)); }
  return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}""",
    "shr_u64": """fn weft_shr_u64(a: vec2<u32>, by: vec2<u32>) -> vec2<u32> {
  let n = by.x & 63u;
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2<u32>(a.y >> (n - 32u), 0u); }
  return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);
}""",
    "shr_i64": """fn weft_shr_i64(a: vec2<u32>, by: vec2<u32>) -> vec2<u32> {
  let n = by.x & 63u;
  let high = bitcast<i32>(a.y);
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2<u32>(u32(high >> (n - 32u)), u32(high >> 31u)); }
  return vec2<u32>((a.x >> n) | (a.y << (32u - n)), u32(high >> n));
}""",
    "lt_u64": """fn weft_lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.y < b.y || (a.y == b.y && a.x < b.x);
}""",
    "lt_i64": """fn weft_lt_i64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);
}""",
    "divmod": """fn weft_divmod(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  if (a.y == 0u && b.y == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }
  var q = vec2<u32>(0u, 0u);
  var r = vec2<u32>(0u, 0u);
  for (var i: i32 = 63i; i >= 0i; i--) {
    let word = select(a.x, a.y, i >= 32i);
    let top = r.y >> 31u;
    r = vec2<u32>((r.x << 1u) | ((word >> (u32(i) & 31u)) & 1u), (r.y << 1u) | (r.x >> 31u));
    if (top != 0u || !weft_lt_u64(r, b)) {
      r = weft_sub_i64(r, b);
      if (i >= 32i) { q.y |= 1u << (u32(i) & 31u); } else { q.x |= 1u << u32(i); }
    }
  }
  return vec4<u32>(q, r);
}""",
    "truncdiv_i64": """fn weft_truncdiv_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let q = weft_divmod(weft_abs_i64(a), weft_abs_i64(b)).xy;
  return select(q, weft_sub_i64(vec2<u32>(0u, 0u), q), ((a.y ^ b.y) >> 31u) != 0u);
}""",
    "truncmod_i64": """fn weft_truncmod_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let r = weft_divmod(weft_abs_i64(a), weft_abs_i64(b)).zw;
  return select(r, weft_sub_i64(vec2<u32>(0u, 0u), r), (a.y >> 31u) != 0u);
}""",
    "floormod_i64": """fn weft_floormod_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let r = weft_truncmod_i64(a, b);
  return select(r, weft_add_i64(r, b), any(r != vec2<u32>(0u, 0u)) && ((r.y ^ b.y) >> 31u) != 0u);
}""",
    "floordiv_i64": """fn weft_floordiv_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return weft_truncdiv_i64(weft_sub_i64(a, weft_floormod_i64(a, b)), b);
}""",
    "u64_to_f32": """fn weft_u64_to_f32(a: vec2<u32>) -> f32 {
  if (a.y == 0u) { return f32(a.x); }
  let by = firstLeadingBit(a.y) + 1u;
  let kept = weft_shr_u64(a, vec2<u32>(by, 0u)).x;
  let lost = any(weft_shl_i64(vec2<u32>(kept, 0u), vec2<u32>(by, 0u)) != a);
  return f32(kept | select(0u, 1u, lost)) * bitcast<f32>((by + 127u) << 23u);
}""",
    "i64_to_f32": """fn weft_i64_to_f32(a: vec2<u32>) -> f32 {
  let size = weft_u64_to_f32(weft_abs_i64(a));
  return select(size, -size, (a.y >> 31u) != 0u);
}""",
}
"""Division is the shift-and-subtract method; a conversion to f32 keeps 32 bits, the lowest set where any that is lost was set."""

_UNSIGNED: Final = {
    f"{name}_u64": f"fn weft_{name}_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {{ return weft_divmod(a, b).{part}; }}"
    for name, part in {"floordiv": "xy", "truncdiv": "xy", "floormod": "zw", "truncmod": "zw"}.items()
}
_ORDERED: Final = {
    f"{name}_{t}": f"fn weft_{name}_{t}(a: vec2<u32>, b: vec2<u32>) -> {text.replace('lt', f'weft_lt_{t}')}"
    for t in ("i64", "u64")
    for name, text in {
        "le": "bool { return !lt(b, a); }",
        "min": "vec2<u32> { return select(b, a, lt(a, b)); }",
        "max": "vec2<u32> { return select(a, b, lt(a, b)); }",
    }.items()
}
HELPERS: Final = {**_FLOATS, **_WORDS, **_UNSIGNED, **_ORDERED}
"""The texts of all helpers, by name."""


def helpers(needs: Iterable[str]) -> str:
    """Returns the text of the helpers called *needs*, and of those that they call."""
    written: dict[str, str] = {}
    todo = sorted(needs, reverse=True)
    while todo:
        name = todo.pop()
        if name not in written:
            written[name] = HELPERS[name]
            todo += [n for n in _CALL.findall(HELPERS[name]) if n not in written]
    return "\n".join(written.values())
