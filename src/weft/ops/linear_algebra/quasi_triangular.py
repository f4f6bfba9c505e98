"""Eigenvectors of matrices in the real Schur form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.ir import INDEX, ZERO, Expr, apply, cast, const, eq, maximum, ne, select
from weft.loop import Buffer, If, Load, Stmt, While, allocated, cell, get, let, put, seq
from weft.ops.linear_algebra.complex_scalars import ComplexScalar
from weft.ops.linear_algebra.matrix import Matrix, check_matrices, each, epsilon
from weft.ops.registry import operator
from weft.te import Tensor, extern


@operator("quasi_triangular_vectors")
def quasi_triangular_vectors(t: Tensor, real: Tensor, imaginary: Tensor) -> tuple[Tensor, Tensor]:
    """The real and the imaginary parts of the eigenvectors of T [..., n, n], as columns, by its eigenvalues [..., n].

    T is as `real_schur` makes it, and its values are in the order of its diagonal: of a block, the one whose imaginary part is
    positive comes first. By back substitution, scaled where elements grow, so that none overflows (Golub and Van Loan, "Matrix
    computations", section 7.6.4; EISPACK's `hqr2`).
    """
    check_matrices("quasi_triangular_vectors", t, square=True)
    n = t.shape[-1]

    def of_matrix(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        form, parts, bound = Matrix(ins[0], i), (Matrix(outs[0], i), Matrix(outs[1], i)), cell("bound", t.dtype)

        def sized(r: Expr, c: Expr) -> Stmt:
            return let("size", apply("abs", form[r, c]), lambda s: put(bound, select(get(bound) < s, s, get(bound))))

        def column(k: Expr) -> Stmt:
            value = ComplexScalar(Load(ins[1], (*i, k)), Load(ins[2], (*i, k)))
            return _of_value(lambda re, im: _Column(form, parts, k, ComplexScalar(re, im), get(bound)).solved(), value)

        steps = seq(
            put(bound, 0),
            each("r", n, lambda r: each("c", n, lambda c: sized(r, c))),
            put(bound, get(bound) * epsilon(t.dtype)),
            put(bound, select(eq(get(bound), const(0, t.dtype)), const(epsilon(t.dtype), t.dtype), get(bound))),
            *[m.filled(lambda r, c: const(0, t.dtype)) for m in parts],
            each("k", n, column),
        )
        return allocated([bound], steps)

    shapes, types = [t.shape] * 2, [t.dtype] * 2
    made = extern(shapes, [t, real, imaginary], of_matrix, types, "quasi_triangular_vectors", along=range(t.rank - 2))
    return made[0], made[1]


def _of_value(body: Callable[[Expr, Expr], Stmt], z: ComplexScalar) -> Stmt:
    """Returns *body* on the parts of a number, which are computed once."""
    return let("re", z.real, lambda re: let("im", z.imaginary, lambda im: body(re, im)))


@dataclass(frozen=True)
class _Column:
    """The eigenvector of T, column *k* of *parts*, that belongs to *value*; divisors below *bound* count as that."""

    t: Matrix
    parts: tuple[Matrix, Matrix]
    k: Expr
    value: ComplexScalar
    bound: Expr

    def __getitem__(self, row: Expr) -> ComplexScalar:
        return ComplexScalar(*[m[row, self.k] for m in self.parts])

    def put(self, row: Expr, z: ComplexScalar) -> Stmt:
        """Returns the statements that set an element."""
        return _of_value(lambda *z: seq(*[m.put(row, self.k, v) for m, v in zip(self.parts, z, strict=True)]), z)

    def solved(self) -> Stmt:
        """Solves row after row, upwards from those of the eigenvalue: one, or the two of a block."""
        zero = const(0, self.bound.dtype)
        is_block = ne(self.value.imaginary, zero)
        base = select(self.value.imaginary < zero, maximum(self.k - 1, 0), self.k)
        rows = cast(is_block, INDEX) + 1
        at = cell("at")

        def all_rows(base: Expr, top: Expr) -> Stmt:
            one = self.put(base, ComplexScalar(const(1, zero.dtype), zero))
            two = seq(
                self.put(base, self._less(base + 1)),
                self.put(base + 1, ComplexScalar(self.t[base + 1, base], zero)),
            )
            step = let("row", get(at) - 1, lambda r: self._row(r, top, at))
            return seq(If(is_block, two, one), allocated([at], seq(put(at, base), While(get(at) > ZERO, step))))

        return let("base", base, lambda b: let("top", b + rows, lambda top: all_rows(b, top)))

    def _less(self, row: Expr) -> ComplexScalar:
        """Returns the eigenvalue less the element of T on the diagonal."""
        return self.value - ComplexScalar(self.t[row, row], const(0, self.bound.dtype))

    def _row(self, row: Expr, top: Expr, at: Buffer) -> Stmt:
        """Solves a row, or the block of two that ends with it; those below, up to *top*, are solved."""
        before = maximum(row - 1, 0)
        is_block = (row > ZERO) & ne(self.t[row, before], const(0, self.bound.dtype))
        one = seq(
            self._summed(row, row + 1, top, lambda z: self.put(row, z / self._less(row).unless_small(self.bound))),
            self._scaled(row, top, 1),
            put(at, row),
        )
        two = seq(self._pair(before, row, top), self._scaled(before, top, 2), put(at, before))
        return If(is_block, two, one)

    def _pair(self, p: Expr, q: Expr, top: Expr) -> Stmt:
        """Solves a block of two rows, by Cramer's rule."""
        a, d, b, c = self._less(p), self._less(q), self.t[p, q], self.t[q, p]
        mixed = ComplexScalar(b * c, const(0, b.dtype))
        divisor = (a * d - mixed).unless_small(self.bound * self.bound)

        def put(x: ComplexScalar, y: ComplexScalar) -> Stmt:
            return seq(self.put(p, (d * x + y.times(b)) / divisor), self.put(q, (a * y + x.times(c)) / divisor))

        return self._summed(p, q + 1, top, lambda x: self._summed(q, q + 1, top, lambda y: put(x, y)))

    def _summed(self, row: Expr, first: Expr, top: Expr, then: Callable[[ComplexScalar], Stmt]) -> Stmt:
        """Gives *then* the sum of a row of T, from the column *first* on, times the elements that are known."""
        sums = [cell(name, self.bound.dtype) for name in ("real", "imaginary")]

        def added(j: Expr) -> Stmt:
            terms = self[first + j].times(self.t[row, first + j])
            return seq(*[put(c, get(c) + e) for c, e in zip(sums, (terms.real, terms.imaginary), strict=True)])

        zeros = [put(c, 0) for c in sums]
        total = each("j", top - first, added)
        given = _of_value(lambda re, im: then(ComplexScalar(re, im)), ComplexScalar(*map(get, sums)))
        return allocated(sums, seq(*zeros, total, given))

    def _scaled(self, row: Expr, top: Expr, count: int) -> Stmt:
        """Divides the known part of the vector by the largest of *count* elements from *row* on, if that is large."""
        size = self[row].size() if count == 1 else maximum(self[row].size(), self[row + 1].size())
        large = const(1 / epsilon(self.bound.dtype), self.bound.dtype)

        def divided(size: Expr) -> Stmt:
            by = const(1, size.dtype) / size
            return If(large < size, each("r", top - row, lambda r: self.put(row + r, self[row + r].times(by))), None)

        return let("size", size, divided)
