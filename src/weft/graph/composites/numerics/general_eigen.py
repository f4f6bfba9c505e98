"""Eigenvalues and eigenvectors of real matrices [..., n, n] that need not be symmetric: pairs of real and imaginary parts."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.numerics.complex_numbers import Pair, length, product
from weft.graph.composites.numerics.linear_algebra import diagonal, sides
from weft.graph.composites.sequences import concat
from weft.support.dtypes import i64


def eigenvalues(b: Builder, x: Operand) -> Pair:
    """Returns the eigenvalues [..., n]; of a conjugate pair, the one whose imaginary part is positive comes first."""
    return _of_schur_form(b, b.add_many("real_schur", x)[0])


def eigen(b: Builder, x: Operand) -> tuple[Pair, Pair]:
    """Returns the eigenvalues, and their vectors as columns, of length 1, whose largest elements are real (LAPACK's `geev`)."""
    form, q = b.add_many("real_schur", x)
    values = _of_schur_form(b, form)
    real, imaginary = b.add_many("quasi_triangular_vectors", form, *values)
    return values, _normalised(b, (b.add("matmul", q, real), b.add("matmul", q, imaginary)))


def _of_schur_form(b: Builder, t: Operand) -> Pair:
    """Returns the diagonal but for blocks of two rows, which are where an element below it is not zero.

    The eigenvalues of a block [[a, p], [q, d]] are (a + d) / 2 and i times the roots of -p q - (a - d)^2 / 4.
    """
    n, d = sides(b, t)[0], diagonal(b, t)
    if n < 2:
        return d, b.add("mul", d, b.scalar(0, d.dtype))
    zero, half = b.scalar(0, d.dtype), b.scalar(0.5, d.dtype)
    above, below = diagonal(b, _part(b, t, t.rank - 1, 1, n)), diagonal(b, _part(b, t, t.rank - 2, 1, n))
    first, second = (_part(b, d, d.rank - 1, k, n - 1 + k) for k in (0, 1))
    square = b.add("square", b.add("mul", b.add("sub", first, second), half))
    under_root = b.add("neg", b.add("add", square, b.add("mul", above, below)))
    root = b.add("sqrt", b.add("maximum", under_root, zero))
    alone = b.add("equal", below, zero)
    is_alone = b.cast(alone, d.dtype)
    mean, size = (b.add("where", alone, zero, v) for v in (b.add("mul", b.add("add", first, second), half), root))
    none, one = (b.add("full", shape=(*d.shape[:-1], 1), value=v, dtype=d.dtype) for v in (0, 1))

    def of_rows(v: Operand, rest: Operand) -> tuple[Operand, Operand]:
        """Returns numbers of blocks as those of their first rows, and of their second ones."""
        return concat(b, [v, rest], d.rank - 1), concat(b, [rest, v], d.rank - 1)

    is_single = b.add("equal", b.add("mul", *of_rows(is_alone, one)), b.scalar(1, d.dtype))
    return b.add("where", is_single, d, b.add("add", *of_rows(mean, none))), b.add("sub", *of_rows(size, none))


def _normalised(b: Builder, v: Pair) -> Pair:
    """Returns complex vectors, the columns of matrices, divided by their lengths, and by the direction of the largest element."""
    squares = b.add("add", b.add("square", v[0]), b.add("square", v[1]))
    rows = v[0].rank - 2
    by = b.add("sqrt", b.add("reduce_sum", squares, axes=(rows,), keepdims=True))
    largest = b.cast(b.add("argmax", squares, axis=rows, keepdims=True, last=False), i64)
    real, imaginary = (b.add("gather_elements", part, largest, axis=rows) for part in v)
    by = b.add("mul", by, length(b, (real, imaginary)))
    return product(b, v, (b.add("div", real, by), b.add("neg", b.add("div", imaginary, by))))


def _part(b: Builder, x: Operand, axis: int, start: int, end: int) -> Operand:
    return b.add("slice", x, starts=(start,), ends=(end,), axes=(axis,), steps=(1,))
