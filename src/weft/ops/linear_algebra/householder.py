"""Orthogonal factors by Householder reflections: I - tau v v', of vectors v whose first element is 1, as LAPACK holds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import Expr, apply, const, eq, minimum, select
from weft.loop import Buffer, Load, Stmt, allocated, cell, get, let, put, seq, store
from weft.ops.linear_algebra.matrix import Matrix, check_matrices, each
from weft.ops.registry import operator
from weft.ops.shapes import same_size, show_shape
from weft.support.errors import TypeMismatch
from weft.te import Tensor, extern


@operator("householder_qr")
def householder_qr(x: Tensor) -> tuple[Tensor, Tensor]:
    """The factors of each matrix [..., m, n] in one, R on and above the diagonal, vectors v below it; and tau [..., min(m, n)].

    See Golub and Van Loan, "Matrix computations", section 5.2; the signs are those of LAPACK's `geqrf`.
    """
    check_matrices("householder_qr", x)
    m, n = x.shape[-2:]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        a, given, squares = Matrix(outs[0], i), Matrix(ins[0], i), cell("squares", x.dtype)

        def column(k: Expr) -> Stmt:
            length = each("r", m - 1 - k, lambda r: put(squares, get(squares) + a[k + 1 + r, k] * a[k + 1 + r, k]))

            def reflected(tau: Expr) -> Stmt:
                below = each("c", n - 1 - k, lambda c: _reflected(a, a, k, tau, k + 1 + c))
                return seq(store(outs[1], (*i, k), tau), below)

            return seq(put(squares, 0), length, _vector(a, k, get(squares), m, reflected))

        copied = a.filled(lambda r, c: given[r, c])
        return seq(copied, allocated([squares], each("k", minimum(m, n), column)))

    shapes = [x.shape, (*x.shape[:-2], minimum(m, n))]
    packed, tau = extern(shapes, [x], of_matrix, [x.dtype] * 2, "householder_qr", along=range(x.rank - 2))
    return packed, tau


@operator("apply_reflectors")
def apply_reflectors(v: Tensor, tau: Tensor, c: Tensor, *, transposed: bool) -> Tensor:
    """The product of the reflections of each v [..., m, n] and tau [..., k], or of its transpose, and of C [..., m, p].

    The vectors are below the diagonal of the first k columns, as `householder_qr` leaves them.
    """
    for given in (v, c):
        check_matrices("apply_reflectors", given)
    if not same_size(v.shape[-2], c.shape[-2]):
        raise TypeMismatch(
            f"apply_reflectors takes matrices of as many rows, not {show_shape(v.shape)} and {show_shape(c.shape)}"
        )
    count, columns = tau.shape[-1], c.shape[-1]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        vectors, given, made = Matrix(ins[0], i), Matrix(ins[2], i), Matrix(outs[0], i)

        def reflection(j: Expr) -> Stmt:
            k = j if transposed else count - 1 - j
            scale = Load(ins[1], (*i, k))
            return let("tau", scale, lambda t: each("c", columns, lambda at: _reflected(made, vectors, k, t, at)))

        return seq(made.filled(lambda r, at: given[r, at]), each("j", count, reflection))

    return extern([c.shape], [v, tau, c], of_matrix, [c.dtype], "apply_reflectors", along=range(c.rank - 2))[0]


def _vector(a: Matrix, k: Expr, squares: Expr, m: Expr, then: Callable[[Expr], Stmt]) -> Stmt:
    """Makes column *k*, whose elements below the diagonal have the sum *squares*, a vector v; *then* is given its tau.

    A column that is zero below the diagonal needs no reflection: its tau is 0.
    """
    zero, one = const(0, a.buffer.dtype), const(1, a.buffer.dtype)

    def made(alpha: Expr, done: Expr) -> Stmt:
        length = apply("sqrt", alpha * alpha + squares)
        to = select(done, alpha, select(alpha < zero, length, -length))

        def scaled(beta: Expr) -> Stmt:
            by = select(done, one, one / select(done, one, alpha - beta))
            vector = let(
                "scale", by, lambda s: each("r", m - 1 - k, lambda r: a.put(k + 1 + r, k, a[k + 1 + r, k] * s))
            )
            tau = select(done, zero, (beta - alpha) / select(done, one, beta))
            return seq(vector, a.put(k, k, beta), let("tau", tau, then))

        return let("beta", to, scaled)

    return let("alpha", a[k, k], lambda alpha: made(alpha, eq(squares, zero)))


def _reflected(c: Matrix, v: Matrix, k: Expr, tau: Expr, at: Expr) -> Stmt:
    """Reflects column *at* of *c*, from row *k* on, by the vector in column *k* of *v*."""
    product, m = cell("product", c.buffer.dtype), c.buffer.shape[-2]
    total = each("r", m - 1 - k, lambda r: put(product, get(product) + v[k + 1 + r, k] * c[k + 1 + r, at]))

    def taken(w: Expr) -> Stmt:
        return seq(c.add(k, at, -w), each("r", m - 1 - k, lambda r: c.add(k + 1 + r, at, -(w * v[k + 1 + r, k]))))

    return allocated([product], seq(put(product, c[k, at]), total, let("w", tau * get(product), taken)))
