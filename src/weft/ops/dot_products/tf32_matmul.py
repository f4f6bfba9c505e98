"""Matrix products of float32 whose factors are rounded to tf32."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, ExprLike, Reinterpret, const
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
