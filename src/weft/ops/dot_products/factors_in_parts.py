"""Products of float32 as sums of products of bf16 (bf16x6), at float32's accuracy (docs/design/0084).

    x = x[0] + x[1] + x[2]        x[0] = bf16(x),  x[1] = bf16(x - x[0]),  x[2] = x - x[0] - x[1]
    a * b  ~  a[2] b[0] + a[1] b[0] + a[0] b[0] + a[0] b[2] + a[0] b[1] + a[1] b[1]

Three numbers of 8 significant bits have all 24 of a float32. The products that are left out are below 2^-24 of the result, and
those that are made are exact in float32, in which they are summed (Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial
intelligence datatype for higher-precision computations", ARITH 2019). Infinities become NaN, and parts below the normal range
are lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir import ZERO, Expr, Reinterpret, cast, ceil_div, const, index, select
from weft.ops.blocked_layouts import columns_of_panels
from weft.ops.dot_products.grouped_matmul import widened_product
from weft.ops.registry import operator
from weft.ops.shapes import broadcast_index, broadcast_shapes, same_size, show_shape, simplify_size, sized
from weft.support.dtypes import bf16, f32, u16, u32
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, reduce_axis, sum_

PARTS: Final = 3
"""Parts of a number."""

LEFT_PARTS: Final = (2, 1, 0, 0, 0, 1)
RIGHT_PARTS: Final = (0, 0, 0, 2, 1, 1)
"""The parts of the factors of each product that is made: neighbours share one, which stays in its register."""

GROUP: Final = 2
"""Neighbouring terms that instructions sum side by side."""


def part_of(x: Expr, part: Expr) -> Expr:
    """Returns a part of a float32, by its number. A NaN is one in the last part, whatever its bits are."""
    first = _nearest(x)
    rest = x - cast(first, f32)
    second = _nearest(rest)
    third = _upper_half(Reinterpret(rest - cast(second, f32), u32))
    return select(part < 1, first, select(part < 2, second, third))


def _nearest(x: Expr) -> Expr:
    """Returns a float32 rounded to bf16, ties away from zero: what is rounded away is exact in float32 in any case."""
    return _upper_half(Reinterpret(x, u32) + const(1 << 15, u32))


def _upper_half(bits: Expr) -> Expr:
    return Reinterpret(cast(bits >> const(16, u32), u16), bf16)


def looked_up(number: Expr, values: Sequence[int]) -> Expr:
    """Returns the value of that *number*, one of 0 and up."""
    made: Expr = index(values[-1])
    for n in reversed(range(len(values) - 1)):
        if values[n] != values[n + 1]:
            made = select(number < n + 1, index(values[n]), made)
    return made


@operator("split_in_parts")
def split_in_parts(x: Tensor, *, block: int) -> Tensor:
    """float32 [..., K] to its parts in bf16 [..., K/block, 3, block], filled up with zeros."""
    _check("split_in_parts", x)
    *lead, depth = x.shape
    shape = sized(*lead, ceil_div(depth, block), PARTS, block)

    def split(*i: Expr) -> Expr:
        *at, o, part, k = i
        return _inside(o * block + k, depth, block, part_of(x[(*at, o * block + k)], part))

    return compute(shape, split, "split_in_parts", dtype=bf16)


@operator("pack_matrix_parts", prepares=True)
def pack_matrix_parts(b: Tensor, *, block: int, depth: int, trans: bool = False) -> Tensor:
    """float32 [*B, K, N] (or [*B, N, K], when *trans*) to bf16 [*B, N/block, K/depth, 3, depth/2, block, 2], zeros at the end.

    A panel of *block* columns has, for each *depth* terms, the parts one after another, each in pairs of terms.
    """
    _check("pack_matrix_parts", b)
    *batch, first, second = b.shape
    terms, columns = (second, first) if trans else (first, second)
    shape = sized(*batch, ceil_div(columns, block), ceil_div(terms, depth), PARTS, depth // GROUP, block, GROUP)

    def packed(*i: Expr) -> Expr:
        *lead, o, outer, part, g, j, t = i
        k, n = outer * depth + g * GROUP + t, o * block + j
        value = part_of(b[(*lead, n, k) if trans else (*lead, k, n)], part)
        return _inside(k, terms, depth, _inside(n, columns, block, value))

    return compute(shape, packed, "pack_matrix_parts", dtype=bf16)


@operator("matmul_in_parts", reads_bits=True)
def matmul_in_parts(a: Tensor, p: Tensor, *, columns: int, block: int = 0, blocks: int = 1) -> Tensor:
    """Parts a [..., M, K/d, 3, d] times a matrix p [*B, N/nr, K/d, 3, d/2, nr, 2] (of `pack_matrix_parts`) to [..., M, columns].

    The panels' batch dimensions broadcast against those of *a*. The terms are those of a *block* of K, one of so many *blocks*.
    """
    if a.rank < 4 or not same_size(a.shape[-3], p.shape[-5]) or not same_size(a.shape[-1], p.shape[-3] * GROUP):
        raise TypeMismatch(
            f"matmul_in_parts: the inner sizes of {show_shape(a.shape)} and {show_shape(p.shape)} differ"
        )
    steps = sized(p.shape[-5] // blocks)[0]
    outer, pair = reduce_axis(steps, "k"), reduce_axis(len(LEFT_PARTS), "pair")
    groups, terms = reduce_axis(p.shape[-3], "g"), reduce_axis(GROUP, "t")
    batch = broadcast_shapes(a.shape[:-4], p.shape[:-6])

    def contraction(*i: Expr) -> object:
        *lead, m, o, j = i
        step, pairs = block * steps + outer, (looked_up(pair, LEFT_PARTS), looked_up(pair, RIGHT_PARTS))
        left = (*broadcast_index(a.shape[:-4], lead, batch), m, step, pairs[0], groups * GROUP + terms)
        right = (*broadcast_index(p.shape[:-6], lead, batch), o, step, pairs[1], groups, j, terms)
        return sum_(widened_product(a[left], p[right]), [outer, pair, groups, terms])

    shape = (*batch, a.shape[-4], p.shape[-6], p.shape[-2])
    made = compute(shape, contraction, "matmul_in_parts", dtype=f32)
    return columns_of_panels(made, columns, "matmul_in_parts_out", has_rows=True)


def _inside(i: Expr, size: Expr, block: int, value: Expr) -> Expr:
    """Returns *value* where *i* is below *size*, else zero; the test is left out where blocks are full."""
    return value if simplify_size(size % block) is ZERO else select(i < size, value, const(0, value.dtype))


def _check(name: str, x: Tensor) -> None:
    if x.dtype is not f32:
        raise TypeMismatch(f"{name} takes float32, not {x.dtype}")
