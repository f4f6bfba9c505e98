"""The real Schur form of matrices that need not be symmetric: Q T Q', of which T is triangular but for blocks of two rows.

    [[1, 2], [-3, 1]]           a block, whose eigenvalues are a conjugate pair, 1 + 2.4 i and 1 - 2.4 i
    [[1, 2], [3, 1]]            no block: a reflection makes it [[3.4, 1], [0, -1.4]]

By reflections to Hessenberg form, and by the double steps of Francis from there (Golub and Van Loan, "Matrix computations",
sections 7.4 and 7.5), which stay among real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from weft.ir import INDEX, ONE, ZERO, Expr, apply, const, eq, maximum, minimum, ne, select
from weft.loop import Buffer, If, Load, Stmt, While, allocated, cell, get, let, put, seq, store
from weft.ops.linear_algebra.matrix import Matrix, check_matrices, each, epsilon
from weft.ops.registry import operator
from weft.te import Tensor, extern

MOST_STEPS: Final = 30
"""Steps for each eigenvalue, on average, after which the rest are NaN; two or three do."""
OTHER_SHIFTS: Final = 10
"""After each so many steps without an eigenvalue the shifts are others, by which no matrix makes steps go round in a circle."""

Reflection = Callable[[Expr], Stmt]


@operator("real_schur")
def real_schur(x: Tensor) -> tuple[Tensor, Tensor]:
    """The Schur form T [..., n, n] of real matrices [..., n, n], and the orthogonal Q [..., n, n]: each matrix is Q T Q'.

    Below the diagonal of T all is zero but the first element of blocks of two rows, whose eigenvalues are complex. Eigenvalues
    that so many steps do not find are NaN, as are those of matrices with NaN.
    """
    check_matrices("real_schur", x, square=True)
    n = x.shape[-1]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        given, zero, one = Matrix(ins[0], i), const(0, x.dtype), const(1, x.dtype)
        form = _Form(Matrix(outs[0], i), Matrix(outs[1], i), Buffer("v", (maximum(n, 3),), x.dtype, "local"), n)
        start = seq(
            form.t.filled(lambda r, c: given[r, c]),
            form.q.filled(lambda r, c: select(eq(r, c), one, zero)),
        )
        return seq(start, allocated([form.v], seq(form.to_hessenberg(), _deflated(form))))

    t, q = extern([x.shape, x.shape], [x], of_matrix, [x.dtype] * 2, "real_schur", along=range(x.rank - 2))
    return t, q


@dataclass(frozen=True)
class _Form:
    """The matrices T and Q [n, n], both of which reflections change, and the vector *v* of one, whose first element is 1."""

    t: Matrix
    q: Matrix
    v: Buffer
    n: Expr

    def to_hessenberg(self) -> Stmt:
        """Makes all below the first subdiagonal zero, by a reflection for each column."""

        def column(k: Expr) -> Stmt:
            count = self.n - 1 - k
            load = each("r", count, lambda r: store(self.v, (r,), self.t[k + 1 + r, k]))
            zeros = each("r", count - 1, lambda r: self.t.put(k + 2 + r, k, 0))
            return seq(load, self.reflect(k + 1, count, k, self.n, lambda beta: seq(self.t.put(k + 1, k, beta), zeros)))

        return each("column", maximum(self.n - 2, 0), column)

    def reflect(self, first: Expr, count: Expr, left: Expr, rows: Expr, then: Reflection) -> Stmt:
        """Reflects rows and columns *first* to *first* + *count* of T, and columns of Q, so that *v* becomes [beta, 0, ...].

        Columns of T before *left*, and rows from *rows* on, are zero there. *then* is given beta, when all is reflected; that is
        the first element where the others are zero, or so small that their squares are.
        """
        size, squares, v = cell("size", self.v.dtype), cell("squares", self.v.dtype), self.v
        zero, one = const(0, v.dtype), const(1, v.dtype)
        sized = each("r", count, lambda r: put(size, get(size) + apply("abs", Load(v, (r,)))))

        def added(r: Expr) -> Stmt:
            return let("part", Load(v, (r + 1,)) / get(size), lambda p: put(squares, get(squares) + p * p))

        def made(alpha: Expr) -> Stmt:
            part = alpha / get(size)
            length = get(size) * apply("sqrt", part * part + get(squares))
            return let("beta", select(alpha < zero, length, -length), lambda beta: scaled(alpha, beta))

        def scaled(alpha: Expr, beta: Expr) -> Stmt:
            by = each("r", count - 1, lambda r: store(v, (r + 1,), Load(v, (r + 1,)) / (alpha - beta)))
            tau = (beta - alpha) / beta
            sides = let("tau", tau, partial(self._sides, first, count, left, rows))
            return seq(by, store(v, (ZERO,), one), sides, then(beta))

        total = If(ne(get(size), zero), each("r", count - 1, added), None)
        work = If(ne(get(squares), zero), let("alpha", Load(v, (ZERO,)), made), then(Load(v, (ZERO,))))
        return allocated([size, squares], seq(put(size, zero), put(squares, zero), sized, total, work))

    def _sides(self, first: Expr, count: Expr, left: Expr, rows: Expr, tau: Expr) -> Stmt:
        def of_columns(m: Matrix, r: Expr) -> Stmt:
            return self._taken(tau, count, lambda k: m[r, first + k], lambda k, value: m.add(r, first + k, value))

        def of_rows(c: Expr) -> Stmt:
            at = left + c
            return self._taken(
                tau, count, lambda k: self.t[first + k, at], lambda k, value: self.t.add(first + k, at, value)
            )

        return seq(
            each("c", self.n - left, of_rows),
            each("r", rows, lambda r: of_columns(self.t, r)),
            each("r", self.n, lambda r: of_columns(self.q, r)),
        )

    def _taken(
        self, tau: Expr, count: Expr, element: Callable[[Expr], Expr], add: Callable[[Expr, Expr], Stmt]
    ) -> Stmt:
        """Takes tau v v' times some elements from them."""
        product = cell("product", self.v.dtype)
        total = each("k", count, lambda k: put(product, get(product) + Load(self.v, (k,)) * element(k)))
        less = let("w", tau * get(product), lambda w: each("k", count, lambda k: add(k, -(w * Load(self.v, (k,))))))
        return allocated([product], seq(put(product, 0), total, less))


def _deflated(form: _Form) -> Stmt:
    """Takes steps until all of T is diagonal, or blocks of two rows that have no real eigenvalues.

    *end* is one behind the rows that are left, and *start* the first row from which on no subdiagonal element is zero.
    """
    t, n = form.t, form.n
    end, start, steps, left = cell("end"), cell("start"), cell("steps"), cell("left")

    def of_rows(low: Expr, high: Expr) -> Stmt:
        found = seq(put(end, low), put(steps, 0))
        one, two = eq(low, high), eq(low + 1, high)
        again = seq(put(steps, get(steps) + 1), put(left, get(left) - 1), _francis_step(form, low, high, get(steps)))
        return If(one, found, If(two, seq(_split(form, low), found), again))

    def step(high: Expr) -> Stmt:
        return seq(_begin(form, start, high), let("low", get(start), lambda low: of_rows(low, high)))

    work = While((get(end) > ZERO) & (get(left) > ZERO), let("high", get(end) - 1, step))
    rest = each("r", get(end), lambda r: t.put(r, r, const(float("nan"), t.buffer.dtype)))
    begin = seq(put(end, n), put(steps, 0), put(left, n * MOST_STEPS))
    return allocated([end, start, steps, left], seq(begin, work, rest))


def _begin(form: _Form, start: Buffer, high: Expr) -> Stmt:
    """Sets *start* to the first row of those up to *high* between which nothing is small enough to count as zero."""
    t, tiny, zero = form.t, epsilon(form.v.dtype), const(0, form.v.dtype)
    low = maximum(get(start), 1)

    def sized(r: Expr) -> Expr:
        return apply("abs", t[r, r]) + apply("abs", t[maximum(r - 1, 0), maximum(r - 1, 0)])

    counts = sized(low) * tiny < apply("abs", t[low, maximum(low - 1, 0)])
    down = While((get(start) > ZERO) & counts, put(start, get(start) - 1))
    cut = If(get(start) > ZERO, t.put(get(start), maximum(get(start) - 1, 0), zero), None)
    return seq(put(start, high), down, cut)


def _split(form: _Form, low: Expr) -> Stmt:
    """Makes the block of two rows from *low* on triangular, if its eigenvalues are real."""
    t, v, zero = form.t, form.v, const(0, form.v.dtype)

    def made(half: Expr, mixed: Expr) -> Stmt:
        root = apply("sqrt", half * half + mixed)
        vector = seq(
            store(v, (ZERO,), half + select(half < zero, -root, root)),
            store(v, (ONE,), t[low + 1, low]),
        )
        zeroed = t.put(low + 1, low, zero)
        turned = form.reflect(low, const(2, INDEX), low, low + 2, lambda _: zeroed)
        return If(zero <= half * half + mixed, seq(vector, turned), None)

    half = (t[low, low] - t[low + 1, low + 1]) / 2
    return let("half", half, lambda h: let("mixed", t[low, low + 1] * t[low + 1, low], lambda m: made(h, m)))


def _francis_step(form: _Form, low: Expr, high: Expr, steps: Expr) -> Stmt:
    """Takes a step with two shifts, the eigenvalues of the last two rows, on the rows from *low* to *high* (three at least)."""
    t, v = form.t, form.v

    def first(total: Expr, product: Expr) -> Stmt:
        a, b = t[low, low], t[low + 1, low + 1]
        elements = (
            a * a + t[low, low + 1] * t[low + 1, low] - total * a + product,
            t[low + 1, low] * (a + b - total),
            t[low + 1, low] * t[low + 2, low + 1],
        )
        return seq(*[store(v, (const(k, INDEX),), e) for k, e in enumerate(elements)])

    def chased(k: Expr) -> Stmt:
        return let(
            "at", low + k, lambda at: let("count", minimum(high - at + 1, 3), partial(_bulge, form, low, high, at))
        )

    return seq(_shifts(form, high, steps, first), each("k", high - low, chased))


def _shifts(form: _Form, high: Expr, steps: Expr, then: Callable[[Expr, Expr], Stmt]) -> Stmt:
    """Gives *then* the sum and the product of two shifts: eigenvalues, or now and then others (as EISPACK's `hqr` has them)."""
    t = form.t
    a, d = t[high - 1, high - 1], t[high, high]
    size = apply("abs", t[high, high - 1]) + apply("abs", t[high - 1, high - 2])
    is_usual = ne(steps % OTHER_SHIFTS, ZERO)
    total = select(is_usual, a + d, d + d + size * const(1.5, form.v.dtype))
    other = d * d + size * d * const(1.5, form.v.dtype) + size * size
    product = select(is_usual, a * d - t[high - 1, high] * t[high, high - 1], other)
    return let("total", total, lambda s: let("product", product, lambda p: then(s, p)))


def _bulge(form: _Form, low: Expr, high: Expr, at: Expr, count: Expr) -> Stmt:
    """Reflects *count* rows from *at* on, so that the column before becomes one of a Hessenberg matrix again."""
    t, v, before = form.t, form.v, maximum(at - 1, low)
    load = each("r", count, lambda r: store(v, (r,), t[at + r, before]))
    zeros = each("r", count - 1, lambda r: t.put(at + 1 + r, before, 0))

    def done(beta: Expr) -> Stmt:
        return If(low < at, seq(t.put(at, before, beta), zeros), None)

    rows = minimum(at + 4, high + 1)
    return seq(If(low < at, load, None), form.reflect(at, count, before, rows, done))
