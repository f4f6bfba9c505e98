"""Matrix products of float32 whose factors are rounded to tf32: with its exponents, and 11 significant bits.

The bits of a rounded number are those of the float32 that it is, of which the last 13 are 0. They are kept as integers, so that
products of such numbers are told from those of float32. (NVIDIA, "Parallel Thread Execution ISA" 8.0, section 5.2.3.)
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, ExprLike, Reinterpret, apply, const
from weft.ops.elementwise import map_tensors
from weft.ops.registry import operator
from weft.ops.shapes import same_size, show_shape
from weft.support.dtypes import f32, u32
from weft.support.errors import TypeMismatch
from weft.targets.instructions import TF32_BITS
from weft.te import Tensor, Widened, compute, reduce_axis, sum_


class TF32Numbers(Widened):
    """The bits *stored* of numbers in tf32, whose elements are these numbers in formulas."""

    @staticmethod
    def of(t: Tensor) -> Tensor:
        """Returns *t*, bits of tf32, as numbers in float32."""
        return TF32Numbers(t.op, t.index, f32, t)

    def __getitem__(self, indices: ExprLike | Sequence[ExprLike]) -> Expr:
        return Reinterpret(self.stored[indices] & const(TF32_BITS, u32), f32)  # whatever the last bits are


def tf32_bits(e: Expr) -> Expr:
    """Returns the bits of a float32 rounded to tf32."""
    return Reinterpret(apply("round_tf32", e), u32)


@operator("round_tf32", reads_bits=True)
def round_tf32(x: Tensor) -> Tensor:
    """Returns the bits of the elements rounded to tf32, ties to even."""
    if x.dtype is not f32:
        raise TypeMismatch(f"round_tf32 takes float32, not {x.dtype}")
    return map_tensors("round_tf32", tf32_bits, x, dtype=u32)


@operator("matmul_tf32", reads_bits=True)
def matmul_tf32(a: Tensor, b: Tensor) -> Tensor:
    """[*B, M, K] times the transpose of [N, K], of bits of tf32, to their sums in float32 [*B, M, N]."""
    if a.rank < 2 or b.rank != 2 or not same_size(a.shape[-1], b.shape[-1]):
        raise TypeMismatch(f"matmul_tf32 takes rows of terms, not {show_shape(a.shape)} and {show_shape(b.shape)}")
    k, left, right = reduce_axis(a.shape[-1], "k"), TF32Numbers.of(a), TF32Numbers.of(b)

    def contraction(*i: Expr) -> object:
        *rows, j = i
        return sum_(left[(*rows, k)] * right[j, k], [k])

    return compute((*a.shape[:-1], b.shape[0]), contraction, "matmul_tf32", dtype=f32)
