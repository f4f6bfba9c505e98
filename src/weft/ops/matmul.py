"""Matrix multiplication: plain, general (Gemm), and with the right-hand matrix in panels."""

from __future__ import annotations

from functools import reduce

from weft.ir import INDEX, ONE, ZERO, Expr, ExprLike, as_expr, cast, const
from weft.ops.blocked_layouts import columns_of_panels
from weft.ops.output_channels import Contraction, along, line_up_along
from weft.ops.registry import operator
from weft.ops.shapes import at_broadcast, broadcast_index, broadcast_shapes, check_broadcasts, same_size, show_shape
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, reduce_axis, sum_


@operator("matmul", contraction=Contraction(-1, along(-1)))
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """[*B, M, K] times [*B, K, N], with NumPy's rules: batch dimensions broadcast, vectors count as a row or a column."""
    if a.rank == 0 or b.rank == 0:
        raise TypeMismatch("matmul takes no scalars")
    k = reduce_axis(a.shape[-1], "k")
    if not same_size(a.shape[-1], b.shape[-2] if b.rank > 1 else b.shape[0]):
        raise TypeMismatch(f"matmul: the inner sizes of {show_shape(a.shape)} and {show_shape(b.shape)} differ")
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows = a.shape[-2:-1]
    columns = b.shape[-1:] if b.rank > 1 else ()

    def contraction(*i: Expr) -> object:
        lead, rest = i[: len(batch)], i[len(batch) :]
        left = (*broadcast_index(a.shape[:-2], lead, batch), *rest[: len(rows)], k)
        right = (*broadcast_index(b.shape[:-2], lead, batch), k, *rest[len(rows) :])
        return sum_(a[left] * b[right], [k])

    return compute((*batch, *rows, *columns), contraction, "matmul", dtype=a.dtype)


@operator("matmul_rows")
def matmul_rows(a: Tensor, b: Tensor, *, rows: ExprLike, transposed: bool = False) -> Tensor:
    """[*B, M, rows] times the first *rows* of b [*B, capacity, K]; *transposed*, [*B, M, K] times the transpose of those.

    Elements behind these rows are not read. Batch dimensions broadcast.
    """
    if min(a.rank, b.rank) < 2:
        raise TypeMismatch("matmul_rows takes matrices")
    count = as_expr(rows, INDEX)
    depth, columns = (b.shape[-1], count) if transposed else (count, b.shape[-1])
    if not same_size(a.shape[-1], depth):
        raise TypeMismatch(f"matmul_rows: the inner sizes of {show_shape(a.shape)} and {show_shape((depth,))} differ")
    k = reduce_axis(depth, "k")
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])

    def contraction(*i: Expr) -> object:
        *lead, m, j = i
        left = (*broadcast_index(a.shape[:-2], lead, batch), m, k)
        right = broadcast_index(b.shape[:-2], lead, batch)
        return sum_(a[left] * b[(*right, j, k) if transposed else (*right, k, j)], [k])

    return compute((*batch, a.shape[-2], columns), contraction, "matmul_rows", dtype=a.dtype)


@operator(
    "gemm",
    contraction=Contraction(-1, lambda attribute, w, by: line_up_along(0 if attribute("trans_b") else 1, w, by)),
)
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Tensor:
    """`alpha * A B + beta * C` of matrices, either of which may be given transposed; *c* broadcasts to the result."""
    if a.rank != 2 or b.rank != 2:
        raise TypeMismatch(f"gemm takes matrices, not {show_shape(a.shape)} and {show_shape(b.shape)}")
    m, depth = reversed(a.shape) if trans_a else a.shape
    other, n = reversed(b.shape) if trans_b else b.shape
    if not same_size(depth, other):
        raise TypeMismatch(f"gemm: the inner sizes of {show_shape(a.shape)} and {show_shape(b.shape)} differ")
    if c is not None:
        check_broadcasts("gemm: the tensor to add", c.shape, (m, n))
    k = reduce_axis(depth, "k")

    def contraction(i: Expr, j: Expr) -> object:
        return sum_((a[k, i] if trans_a else a[i, k]) * (b[j, k] if trans_b else b[k, j]), [k])

    product = compute((m, n), contraction, "gemm", dtype=a.dtype)
    if c is None and alpha == 1.0:
        return product

    def finished(i: Expr, j: Expr) -> Expr:
        e = product[i, j] if alpha == 1.0 else product[i, j] * const(alpha, a.dtype)
        if c is None:
            return e
        added = at_broadcast(c, (i, j), (m, n))
        return e + (added if beta == 1.0 else added * const(beta, a.dtype))

    return compute((m, n), finished, "gemm_out", dtype=a.dtype)


@operator("einsum")
def einsum(*xs: Tensor, equation: str) -> Tensor:
    """The sum of products that *equation* names, such as `ij,jk->ik`: one letter a dimension, those not in the result summed."""
    left, _, result = equation.partition("->")
    terms = left.split(",")
    sizes: dict[str, Expr] = {}
    for term, x in zip(terms, xs, strict=True):
        for letter, size in zip(term, x.shape, strict=True):
            if letter not in sizes or sizes[letter] is ONE:
                sizes[letter] = size
            elif size is not ONE and not same_size(size, sizes[letter]):
                raise TypeMismatch(f"einsum: {letter} is {show_shape((sizes[letter],))} and {show_shape((size,))}")
    summed = {k: reduce_axis(s, k) for k, s in sizes.items() if k not in result}

    def contraction(*i: Expr) -> object:
        at = {**dict(zip(result, i, strict=True)), **summed}
        factors = [
            x[tuple([ZERO if s is ONE else at[k] for k, s in zip(term, x.shape, strict=True)])]
            for term, x in zip(terms, xs, strict=True)
        ]
        value = reduce(lambda a, b: a * b, factors)
        return sum_(value, list(summed.values())) if summed else value

    return compute([sizes[k] for k in result], contraction, "einsum", dtype=xs[0].dtype)


@operator("matmul_packed")
def matmul_packed(
    a: Tensor, p: Tensor, bias: Tensor | None = None, *, columns: int | Expr, by_panels: bool = False
) -> Tensor:
    """[..., M, K] times a matrix in panels p [*B, N/nr, K, nr] (of `pack_matrix`) to [..., M, columns]; bias [columns].

    Panels of other elements are converted to those of *a* where they are multiplied, or *by_panels*: a whole panel before it
    is multiplied by all rows. The panels' batch dimensions broadcast against those of *a*. Whole
    panels are computed, then the columns that exist are kept.
    """
    k = reduce_axis(p.shape[-2], "k")
    if not same_size(a.shape[-1], p.shape[-2]):
        raise TypeMismatch(f"matmul_packed: the inner sizes of {show_shape(a.shape)} and {show_shape(p.shape)} differ")
    rows = a.shape[-2] if a.rank > 1 else ONE
    batch = broadcast_shapes(a.shape[:-2], p.shape[:-3])
    block = p.shape[-1]
    wide = compute(p.shape, lambda *i: cast(p[i], a.dtype), "panel", dtype=a.dtype) if by_panels else p

    def contraction(*i: Expr) -> object:
        *lead, m, o, j = i
        left = (*broadcast_index(a.shape[:-2], lead, batch), *((m,) if a.rank > 1 else ()), k)
        right = (*broadcast_index(p.shape[:-3], lead, batch), o, k, j)
        return sum_(a[left] * cast(wide[right], a.dtype), [k])

    made = compute((*batch, rows, p.shape[-3], block), contraction, "matmul_packed", dtype=a.dtype)
    return columns_of_panels(made, columns, "matmul_out", has_rows=a.rank > 1, bias=bias)
