"""Warp-level matrix products (`mma.sync`): the helpers that their calls use.

The helper gathers the parts of both factors that the instruction takes from its thread. Thread (g, t) is given where the rows of
its g begin and the columns of its t; it gathers the terms of its t, and the columns of its g. Terms may be given to the
instruction in any order, the same for both factors: of tf32, whose thread t has terms t and t + 4, it gets terms 2 * t and
2 * t + 1, which lie side by side.
"""

from __future__ import annotations

from typing import Final

from weft.support.dtypes import bf16, f16, u32

_NAMES: Final = {f16: "mma_f16", bf16: "mma_bf16", u32: "mma_tf32"}

_PRODUCT: Final = """static inline void
weft_NAME(float *c, const uint16_t *a, const uint16_t *b, int64_t tc, int64_t ta, int64_t ua, int64_t tb, int64_t ub) {
  const int64_t t = threadIdx.x, g = threadIdx.y;
  a += 2 * t * ua;
  b += (g - 2 * t) * ub + 2 * t * tb;
  const uint32_t a0 = weft_pair(a, ua), a1 = weft_pair(a + ta, ua), a2 = weft_pair(a + 8 * ua, ua);
  const uint32_t a3 = weft_pair(a + ta + 8 * ua, ua), b0 = weft_pair(b, tb), b1 = weft_pair(b + 8 * tb, tb);
  WEFT_MMA("k16", "TYPE", c[0], c[1], c[tc], c[tc + 1], a0, a1, a2, a3, b0, b1);
}"""

_TF32_PRODUCT: Final = """static inline void
weft_mma_tf32(float *c, const uint32_t *a, const uint32_t *b, int64_t tc, int64_t ta, int64_t ua, int64_t tb, int64_t ub) {
  const int64_t t = threadIdx.x, g = threadIdx.y;
  a += 2 * t * ua;
  b += (g - 2 * t) * ub + 2 * t * tb;
  const uint2 a0 = ua == 1 ? *(const uint2 *)a : make_uint2(a[0], a[ua]);
  const uint2 a1 = ua == 1 ? *(const uint2 *)(a + ta) : make_uint2(a[ta], a[ta + ua]);
  const uint2 b0 = tb == 1 ? *(const uint2 *)b : make_uint2(b[0], b[tb]);
  WEFT_MMA("k8", "tf32", c[0], c[1], c[tc], c[tc + 1], a0.x, a1.x, a0.y, a1.y, b0.x, b0.y);
}"""

MMA: Final = """#define WEFT_MMA(terms, type, c0, c1, c2, c3, a0, a1, a2, a3, b0, b1) \\
  asm("mma.sync.aligned.m16n8" terms ".row.col.f32." type "." type ".f32 " \\
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \\
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
"""
"""The instruction, for the head of a source."""

GATHER: Final = """static inline uint32_t weft_pair(const uint16_t *x, int64_t step) {
  return step == 1 ? *(const uint32_t *)x : x[0] | (uint32_t)x[step] << 16;
}
"""
"""Two terms of a factor; those that lie side by side begin at an even element."""


FRAGMENT_HELPERS: Final = {
    name: _TF32_PRODUCT if t is u32 else _PRODUCT.replace("NAME", name).replace("TYPE", str(t))
    for t, name in _NAMES.items()
}
"""The helpers of products, by name."""
