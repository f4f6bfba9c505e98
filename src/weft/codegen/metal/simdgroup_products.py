"""Products of matrices by the threads of a simdgroup together: the helpers that their calls use, and the threads' numbers.

`simdgroup_multiply_accumulate` multiplies matrices of 8 x 8. Of each, thread b4 b3 b2 b1 b0 of the simdgroup, in bits, has two
elements: of row b4 b2 b1, in columns 2 * (b3 b0) and the next one. (Apple does not say so; MetalFlashAttention, MLX and TileLang
rely on it.) Declared is that thread (g, t) has rows 2 * g and 2 * g + 1 and columns 2 * t and 2 * t + 1 of 16 x 8 sums
(`targets.instructions.warp_products`). So a kernel with products numbers its threads by these bits, g along y and t along x, with
the simdgroup along z, and a product is two, of the even rows and of the odd ones. Shuffles in such a kernel take an element from
the thread of another number (`number_lanes`).
"""

from __future__ import annotations

from typing import Final

from weft.loop import WARP_SHUFFLE, Call, Function, Program, Stmt, map_stmts, statements
from weft.support.dtypes import DType, bf16, f16, f32
from weft.targets import Target
from weft.targets.instructions import FRAGMENT, FRAGMENT_INSTRUCTIONS, terms_of

LANE, SIMDGROUP = "weft_lane", "weft_simdgroup"
"""The parameters of a kernel that have the number of a thread in its simdgroup, and that of the simdgroup."""

PARAMETERS: Final = (
    f"ushort {LANE} [[thread_index_in_simdgroup]]",
    f"ushort {SIMDGROUP} [[simdgroup_index_in_threadgroup]]",
)
NUMBER: Final = f"uint3(({LANE} >> 2 & 2) | ({LANE} & 1), ({LANE} >> 2 & 4) | ({LANE} >> 1 & 3), {SIMDGROUP})"
"""The numbers of a thread along x, y and z."""

ORDER: Final = 8
"""The rows and columns of a matrix."""

_PRODUCT: Final = """static inline void
weft_mma_NAME(thread float *c, threadgroup const MEMORY *a, threadgroup const MEMORY *b, int64_t tc, int64_t ta, int64_t ua,
              int64_t tb, int64_t ub, uint3 at) {
  const int64_t t = at.x, g = at.y;
  for (int k = 0; k < TERMS; k += ORDER, a += ORDER * ua, b += ORDER * tb) {
    simdgroup_matrix<TYPE, ORDER, ORDER> left, right;
    simdgroup_matrix<float, ORDER, ORDER> sums;
    for (int e = 0; e < PAIRS; e++) right.thread_elements()[e] = RIGHT;
    for (int half_ = 0; half_ < HALVES; half_++) {
      for (int e = 0; e < PAIRS; e++) {
        left.thread_elements()[e] = LEFT;
        sums.thread_elements()[e] = c[half_ * tc + e];
      }
      simdgroup_multiply_accumulate(sums, left, right, sums);
      for (int e = 0; e < PAIRS; e++) c[half_ * tc + e] = sums.thread_elements()[e];
    }
  }
}"""


def _helper(dtype: DType, memory: str, kind: str, load: str) -> str:
    words = {"NAME": str(dtype), "MEMORY": memory, "TYPE": kind, "TERMS": terms_of(dtype)}
    words |= {"LEFT": load.format("a[half_ * ta + (PAIRS * t + e) * ua]"), "RIGHT": load.format("b[g * tb + e * ub]")}
    words |= {"ORDER": ORDER, "PAIRS": FRAGMENT.pairs, "HALVES": FRAGMENT.halves}
    text = _PRODUCT
    for word, value in words.items():
        text = text.replace(word, str(value))
    return text


PRODUCT_HELPERS: Final = {
    "mma_f32": _helper(f32, "float", "float", "{}"),
    "mma_f16": _helper(f16, "uint16_t", "half", "as_type<half>({})"),
    "mma_bf16": _helper(bf16, "uint16_t", "float", "as_type<float>(uint32_t({}) << 16)"),
}
"""The helpers of products, by name. Those of bf16 are of float32: not every version of the language has matrices of them."""


def number_lanes(program: Program, target: Target) -> Program:
    """Returns *program* with the lanes of shuffles as the machine numbers them, in the kernels in which it numbers others."""
    made = [f.with_body(map_stmts(f.body, _from_lane)) if has_products(f) else f for f in program.functions]
    return program if tuple(made) == program.functions else Program(tuple(made))


def _from_lane(s: Stmt) -> Stmt | None:
    if not isinstance(s, Call) or s.callee != WARP_SHUFFLE:
        return None
    to, own, lane = s.args
    g, t = lane // FRAGMENT.quads, lane % FRAGMENT.quads
    return Call(s.callee, (to, own, g // 4 * 16 + t // 2 * 8 + g % 4 * 2 + t % 2))


def has_products(fn: Function) -> bool:
    """Tells whether simdgroups multiply matrices in a kernel."""
    return any(isinstance(s, Call) and s.callee in FRAGMENT_INSTRUCTIONS.values() for s in statements(fn.body))
