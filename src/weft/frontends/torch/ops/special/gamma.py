"""Incomplete gamma functions, derivatives of gamma's logarithm, and Hurwitz' zeta function."""

from __future__ import annotations

import math

from weft.frontends.torch.call import Call, common_shape
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Results
from weft.graph.composites.numerics import gamma_derivatives
from weft.graph.composites.numerics.incomplete_gamma import incomplete_gamma


def _incomplete(*, upper: bool) -> Translation:
    """The share of the gamma function's integral below a bound, or above it."""

    def translate(c: Call) -> Results:
        given = [c.operand(name, c.dtype) for name in ("self", "other")]
        shape = common_shape([v.shape for v in given])
        a, x = (c.add("expand", v, shape=shape) for v in given)
        return incomplete_gamma(c, a, x, upper=upper)

    return translate


translates("igamma", "prims.igamma.default")(_incomplete(upper=False))
translates("igammac", "prims.igammac.default")(_incomplete(upper=True))


@translates("digamma", "prims.digamma.default")
def digamma(c: Call) -> Results:
    """The derivative of the logarithm of the gamma function."""
    return gamma_derivatives.digamma(c, c.operand("self", c.dtype))


@translates("polygamma")
def polygamma(c: Call) -> Results:
    """A further derivative, the n-th of the digamma function."""
    n, x = c.integer("n"), c.operand("self", c.dtype)
    if n == 0:
        return gamma_derivatives.digamma(c, x)
    factor = (-1) ** (n + 1) * math.factorial(n)
    return c.add("mul", gamma_derivatives.zeta_of_large(c, c.scalar(n + 1, c.dtype), x), c.scalar(factor, c.dtype))


@translates("special_zeta", "special_zeta.self_scalar", "special_zeta.other_scalar", "prims.zeta.default")
def zeta(c: Call) -> Results:
    """The sum of (other + k) to the power of -self, over all k from 0: NaN where self is below 1."""
    s, q = c.operand("self", c.dtype), c.operand("other", c.dtype)
    return gamma_derivatives.zeta(c, s, q)
