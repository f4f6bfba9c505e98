"""Products of polynomials by their values at points: the matrices of short convolutions, and their products with few terms.

m outputs of a window of r taps are A' [(G g) * (B' d)], with n = m + r - 1 multiplications (the Cook-Toom construction; Winograd,
"Arithmetic complexity of computations", 1980, chapter V). The rows of G are left unscaled and the scales are put into B': weights
that are transformed at some points serve tiles of any size at these, and smaller ones at the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import lcm, prod

import numpy as np

from weft.ir import Expr, const
from weft.support.errors import TypeMismatch

POINTS = (0.0, 2**-0.5, -(2**-0.5), 2**0.5, -(2**0.5), 1.0, -1.0)
"""Finite points in the order of use; the first five make F(4, 3) about as accurate as a direct convolution."""

OWN_POINTS = {2: (0.0, 1.0), 3: (0.0, 1.0, -1.0), 6: (0.0, 0.5, -0.5, 1.0, -1.0, 2.0)}
"""Points by their number, where `POINTS` would leave one without its opposite; the six are the best of a few for F(4, 4)."""

WHOLE_POINTS = (0, 1, -1, 2, -2)
"""Finite points of exact convolutions of integers, in the order of use; more of them would not leave 16 bits enough."""

Matrix = tuple[tuple[float, ...], ...]


@cache
def matrices(m: int, r: int, largest: int = 0) -> tuple[Matrix, Matrix, Matrix]:
    """Returns B' (n x n), G (n x r) and A' (m x n) for tiles of *m* outputs and *r* taps, n = m + r - 1.

    The first row of G stands for infinity, the others are 1, p, p^2 ... at points p. These are the first of those for tiles of
    *largest* outputs, if that is more.
    """
    n = m + r - 1
    points = finite_points(max(m, largest) + r - 2)[: n - 1]
    b, g, a = np.zeros((n, n)), np.zeros((n, r)), np.zeros((m, n))
    b[0] = np.poly(points)[::-1]
    g[0, r - 1] = a[m - 1, 0] = 1.0
    for k, p in enumerate(points, 1):
        others = [q for q in points if q != p]
        b[k, : n - 1] = np.atleast_1d(np.poly(others))[::-1] / np.prod([p - q for q in others])
        g[k] = p ** np.arange(r)
        a[:, k] = p ** np.arange(m)
    return _plain(b), _plain(g), _plain(a)


@cache
def whole_matrices(m: int, r: int) -> tuple[Matrix, Matrix, Matrix, int]:
    """Returns B', G and A' of whole numbers for tiles of *m* outputs and *r* taps, and how many times its outputs A' makes.

    The products of the scales are put into A', where sums have 32 bits. Points are those of `WHOLE_POINTS`: smaller tiles have
    the first of them. Raises `TypeMismatch` where there are not as many.
    """
    if m + r - 2 > len(WHOLE_POINTS):
        raise TypeMismatch(f"there are {len(WHOLE_POINTS)} whole points, which are too few for {m + r - 2}")
    points = WHOLE_POINTS[: m + r - 2]
    scales = [prod(p - q for q in points if q != p) for p in points]
    times = lcm(*scales)
    b = [_coefficients(points), *[(*_coefficients([q for q in points if q != p]), 0) for p in points]]
    g = [(0,) * (r - 1) + (1,), *[tuple([p**k for k in range(r)]) for p in points]]
    columns = [[times // scale * p**k for k in range(m)] for p, scale in zip(points, scales, strict=True)]
    a = [(times if k == m - 1 else 0, *[column[k] for column in columns]) for k in range(m)]
    return tuple(b), tuple(g), tuple(a), times


def _coefficients(roots: Sequence[int]) -> tuple[int, ...]:
    """Returns the coefficients of the polynomial with these *roots*, the lowest first."""
    found = [1]
    for root in roots:
        found = [low - root * high for low, high in zip([0, *found], [*found, 0], strict=True)]
    return tuple(found)


def finite_points(count: int) -> list[float]:
    """Returns *count* points; raises `TypeMismatch` where there are not as many."""
    if count > len(POINTS):
        raise TypeMismatch(f"there are {len(POINTS)} points, which are too few for {count}")
    return list(OWN_POINTS.get(count, POINTS[:count]))


def _plain(x: np.ndarray) -> Matrix:
    rounded = np.round(x, 13) + 0.0  # so that entries that are equal but for rounding are equal
    return tuple(tuple(float(v) for v in row) for row in rounded)


def divided(e: Expr, times: int) -> Expr:
    """Returns integers *e* divided by *times*, which divides them: times the inverse of its odd part, also if they wrapped."""
    if times == 1:
        return e
    power = (times & -times).bit_length() - 1
    inverse = pow(times >> power, -1, 1 << e.dtype.bits)
    whole = e if inverse == 1 else e * const(inverse, e.dtype)
    return whole >> const(power, e.dtype) if power else whole


def times_vector(matrix: Matrix, values: Sequence[Expr]) -> list[Expr]:
    """Returns the products of the rows of *matrix* with *values*; rows that are u + v and u - v share both parts."""
    done: dict[int, Expr] = {}
    for k, row in enumerate(matrix):
        if k in done:
            continue
        twin = next((j for j in range(k + 1, len(matrix)) if _is_twin(row, matrix[j])), None)
        if twin is None:
            done[k] = _dot(row, values)
            continue
        same = _dot([c if c == d else 0.0 for c, d in zip(row, matrix[twin], strict=True)], values)
        flipped = _dot([c if c != d else 0.0 for c, d in zip(row, matrix[twin], strict=True)], values)
        done[k], done[twin] = same + flipped, same - flipped
    return [done[k] for k in range(len(matrix))]


def _is_twin(a: Sequence[float], b: Sequence[float]) -> bool:
    """Tells whether two rows differ in the signs of some entries only, but not of all."""
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x or y]
    return all(abs(x) == abs(y) for x, y in pairs) and 0 < sum(x != y for x, y in pairs) < len(pairs)


def _dot(row: Sequence[float], values: Sequence[Expr]) -> Expr:
    terms = [v if c == 1.0 else -v if c == -1.0 else v * c for c, v in zip(row, values, strict=True) if c]
    total = terms[0]
    for t in terms[1:]:
        total = total + t
    return total
