"""Orthogonal polynomials, whose degrees are a tensor too: by their recurrences, as many steps as the largest degree asks for.

See Abramowitz and Stegun, "Handbook of mathematical functions", 22.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np

from weft.frontends.torch.call import Call, common_shape
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Builder, CompileTimeConstant, Operand, total
from weft.graph.composites.branches_and_loops import loop
from weft.support.dtypes import i64

Line: TypeAlias = tuple[float, float]
"""A factor of x, and a constant."""
Recurrence: TypeAlias = Callable[[Builder, Operand, Operand, Operand, Operand], Operand]
"""Makes the polynomial of degree k + 1 of x, k (as a float), and those of degrees k and k - 1."""


def _twice_x(line: Line) -> Recurrence:
    """2 x p - q, of the *line* of x."""

    def step(b: Builder, x: Operand, k: Operand, p: Operand, q: Operand) -> Operand:
        return b.add("sub", b.add("mul", _on(b, (2 * line[0], 2 * line[1]), x), p), q)

    return step


def _hermite(factor: float) -> Recurrence:
    """The factor times x p - k q."""

    def step(b: Builder, x: Operand, k: Operand, p: Operand, q: Operand) -> Operand:
        made = b.add("sub", b.add("mul", x, p), b.add("mul", k, q))
        return b.add("mul", made, b.scalar(factor, x.dtype))

    return step


def _laguerre(b: Builder, x: Operand, k: Operand, p: Operand, q: Operand) -> Operand:
    """((2 k + 1 - x) p - k q) / (k + 1)."""
    odd = _on(b, (2, 1), k)
    made = b.add("sub", b.add("mul", b.add("sub", odd, x), p), b.add("mul", k, q))
    return b.add("div", made, _on(b, (1, 1), k))


def _legendre(b: Builder, x: Operand, k: Operand, p: Operand, q: Operand) -> Operand:
    """((2 k + 1) x p - k q) / (k + 1)."""
    made = b.add("sub", b.add("mul", b.add("mul", _on(b, (2, 1), k), x), p), b.add("mul", k, q))
    return b.add("div", made, _on(b, (1, 1), k))


_POLYNOMIALS: Final[dict[str, tuple[Line, Recurrence]]] = {
    "chebyshev_polynomial_t": ((1, 0), _twice_x((1, 0))),
    "chebyshev_polynomial_u": ((2, 0), _twice_x((1, 0))),
    "chebyshev_polynomial_v": ((2, -1), _twice_x((1, 0))),
    "chebyshev_polynomial_w": ((2, 1), _twice_x((1, 0))),
    "shifted_chebyshev_polynomial_t": ((2, -1), _twice_x((2, -1))),
    "shifted_chebyshev_polynomial_u": ((4, -2), _twice_x((2, -1))),
    "shifted_chebyshev_polynomial_v": ((4, -3), _twice_x((2, -1))),
    "shifted_chebyshev_polynomial_w": ((4, -1), _twice_x((2, -1))),
    "hermite_polynomial_h": ((2, 0), _hermite(2)),
    "hermite_polynomial_he": ((1, 0), _hermite(1)),
    "laguerre_polynomial_l": ((-1, 1), _laguerre),
    "legendre_polynomial_p": ((1, 0), _legendre),
}
"""The polynomial of degree 1, and how the others follow."""


def _polynomial(first: Line, recurrence: Recurrence) -> Translation:
    def translate(c: Call) -> Operand:
        x, n = c.operand("x", c.dtype), c.cast(c.operand("n", c.dtype), i64)
        shape = common_shape([x.shape, n.shape])
        x, n = c.add("expand", x, shape=shape), c.add("expand", n, shape=shape)
        flat = c.reshape(n, [total(shape)])
        most = c.add("reduce_max", flat, axes=(0,), keepdims=False)

        def step(r: Builder, k: Operand, states: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
            p, q = states
            grows = r.add("less", k, r.add("sub", n, r.scalar(1, i64)))
            degree = r.add("add", r.cast(k, x.dtype), r.scalar(1, x.dtype))
            made = recurrence(r, x, degree, p, q)
            return CompileTimeConstant(np.ones((), np.bool_)), [r.add("where", grows, made, p), p], []

        one = c.add("full", shape=shape, value=1, dtype=c.dtype)
        steps = c.add("sub", most, c.scalar(1, i64))
        made = loop(c, steps, None, [_on(c, first, x), one], step)[0][0]
        none = c.add("less", n, c.scalar(1, i64))
        of_none = c.add("where", c.add("less", n, c.scalar(0, i64)), c.scalar(0, c.dtype), one)
        return c.add("where", none, of_none, made)

    return translate


def _on(b: Builder, line: Line, x: Operand) -> Operand:
    """Returns the number on a line at *x*."""
    return b.add("add", b.add("mul", x, b.scalar(line[0], x.dtype)), b.scalar(line[1], x.dtype))


for _name, (_first, _recurrence) in _POLYNOMIALS.items():
    translates(*[f"special_{_name}{o}" for o in ("", ".x_scalar", ".n_scalar")])(_polynomial(_first, _recurrence))
