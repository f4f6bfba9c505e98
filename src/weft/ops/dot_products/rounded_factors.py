"""Values rounded for products: to tf32, as bits, or to a narrow type beside the value itself.

tf32 has the exponents of float32, and 11 significant bits. The bits of a rounded number are those of the float32 that it is, of
which the last 13 are 0. They are kept as integers, so that products of such numbers are told from those of float32. (NVIDIA,
"Parallel Thread Execution ISA" 8.0, section 5.2.3.)
"""

from __future__ import annotations

from weft.ir import Expr, Reinterpret, apply
from weft.ops.elementwise import cast, map_tensors
from weft.ops.registry import operator
from weft.support.dtypes import DType, f32, u32
from weft.support.errors import TypeMismatch
from weft.te import Tensor


def tf32_bits(e: Expr) -> Expr:
    """Returns the bits of a float32 rounded to tf32."""
    return Reinterpret(apply("round_tf32", e), u32)


@operator("round_tf32", reads_bits=True)
def round_tf32(x: Tensor) -> Tensor:
    """Returns the bits of the elements rounded to tf32, ties to even."""
    if x.dtype is not f32:
        raise TypeMismatch(f"round_tf32 takes float32, not {x.dtype}")
    return map_tensors("round_tf32", tf32_bits, x, dtype=u32)


@operator("with_rounded")
def with_rounded(x: Tensor, *, dtype: DType) -> tuple[Tensor, ...]:
    """Returns x as it is, and rounded to *dtype*, u32 for the bits of tf32: a kernel that ends in both writes them at once."""
    return map_tensors("kept", lambda e: e, x), round_tf32(x) if dtype is u32 else cast(x, dtype=dtype)
