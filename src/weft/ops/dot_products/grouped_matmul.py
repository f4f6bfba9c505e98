"""Matrix products of narrow elements, summed in groups of neighbouring terms: the form of dot-product instructions.

    y[m, n] = sum over k of a[m, 4*k] * b[4*k, n] + ... + a[m, 4*k + 3] * b[4*k + 3, n]

Products and sums have the type of the accumulator: 32-bit integers for bytes, float32 for bf16. Elements are taken as they lie:
zero points and scales are the graph's.
"""

from __future__ import annotations

from weft.ir import ONE, Expr, cast, const, select
from weft.ops.blocked_layouts import columns_of_panels
from weft.ops.registry import operator
from weft.ops.shapes import broadcast_index, broadcast_shapes, same_size, show_shape, sized
from weft.support.dtypes import DType, bf16, f32, i32
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, reduce_axis, sum_


def accumulator_of(dtype: DType) -> DType:
    """Returns the type in which instructions sum products of elements of *dtype*."""
    if dtype is bf16:
        return f32
    return dtype if dtype.is_float else i32


def widened_product(a: Expr, b: Expr) -> Expr:
    """Returns the product of two narrow elements, in the type that it is summed in."""
    to = accumulator_of(a.dtype)
    return cast(a, to) * cast(b, to)


@operator("pack_matrix_groups", prepares=True)
def pack_matrix_groups(b: Tensor, *, block: int, group: int, trans: bool = False) -> Tensor:
    """[*B, K, N] (or [*B, N, K], when *trans*) to [*B, N/block, K/group, block, group], filled up with zeros.

    A panel of *block* columns has the *group* terms that one instruction sums side by side, column after column.
    """
    *batch, first, second = b.shape
    depth, columns = (second, first) if trans else (first, second)
    shape = sized(*batch, -(-columns // block), -(-depth // group), block, group)

    def packed(*i: Expr) -> Expr:
        *lead, o, g, j, t = i
        k, n = g * group + t, o * block + j
        inside = select(n < columns, b[(*lead, n, k) if trans else (*lead, k, n)], const(0, b.dtype))
        return select(k < depth, inside, const(0, b.dtype))

    return compute(shape, packed, "pack_matrix_groups", dtype=b.dtype)


@operator("matmul_grouped", reads_bits=True)
def matmul_grouped(a: Tensor, p: Tensor, *, columns: int) -> Tensor:
    """[..., M, K] times a matrix in groups p [*B, N/nr, K/g, nr, g] (of `pack_matrix_groups`) to [..., M, columns].

    K is a multiple of the group g. The panels' batch dimensions broadcast against those of *a*.
    """
    group, block = p.shape[-1], p.shape[-2]
    groups, terms = reduce_axis(p.shape[-3], "k"), reduce_axis(group, "t")
    if not same_size(a.shape[-1], p.shape[-3] * group):
        raise TypeMismatch(f"matmul_grouped: the inner sizes of {show_shape(a.shape)} and {show_shape(p.shape)} differ")
    has_rows = a.rank > 1
    batch = broadcast_shapes(a.shape[:-2], p.shape[:-4])

    def contraction(*i: Expr) -> object:
        *lead, m, o, j = i
        left = (*broadcast_index(a.shape[:-2], lead, batch), *((m,) if has_rows else ()), groups * group + terms)
        right = (*broadcast_index(p.shape[:-4], lead, batch), o, groups, j, terms)
        return sum_(widened_product(a[left], p[right]), [groups, terms])

    rows = a.shape[-2] if has_rows else ONE
    made = compute((*batch, rows, p.shape[-4], block), contraction, "matmul_grouped", dtype=accumulator_of(a.dtype))
    return columns_of_panels(made, columns, "matmul_grouped_out", has_rows=has_rows)


@operator("matmul_summed", reads_bits=True)
def matmul_summed(a: Tensor, b: Tensor, *, trans: bool = False) -> Tensor:
    """[*B, M, K] times [*B, K, N] (or [*B, N, K], when *trans*) of narrow elements as they lie, to their sums [*B, M, N].

    Batch dimensions broadcast. The left factor may be of the type of the sums, in which products are made in any case.
    """
    if min(a.rank, b.rank) < 2:
        raise TypeMismatch(
            f"matmul_summed takes rows and matrices, not {show_shape(a.shape)} and {show_shape(b.shape)}"
        )
    depth, columns = reversed(b.shape[-2:]) if trans else b.shape[-2:]
    if not same_size(a.shape[-1], depth):
        raise TypeMismatch(f"matmul_summed: the inner sizes of {show_shape(a.shape)} and {show_shape(b.shape)} differ")
    k = reduce_axis(depth, "k")
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])

    def contraction(*i: Expr) -> object:
        *lead, m, j = i
        left = (*broadcast_index(a.shape[:-2], lead, batch), m, k)
        right = (*broadcast_index(b.shape[:-2], lead, batch), *((j, k) if trans else (k, j)))
        return sum_(widened_product(a[left], b[right]), [k])

    return compute((*batch, a.shape[-2], columns), contraction, "matmul_summed", dtype=accumulator_of(a.dtype))
