"""Functions of numerical mathematics: the gamma function's logarithm and its derivative, inverses of the error function."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from weft.frontends.tensorflow_operators.call import Call
from weft.frontends.tensorflow_operators.registry import Translation, translates
from weft.graph.builder import Builder, Operand
from weft.graph.composites.numerics import bessel_series, gamma_derivatives, special_functions
from weft.graph.composites.numerics.incomplete_gamma import incomplete_gamma
from weft.graph.composites.numerics.next_float import next_after
from weft.support.dtypes import f32, i32

_BESSEL: Final[dict[str, Callable[..., Operand]]] = {
    "I": bessel_series.bessel_i,
    "J": bessel_series.bessel_j,
    "K": bessel_series.bessel_k,
    "Y": bessel_series.bessel_y,
}
_FUNCTIONS: Final[dict[str, Callable[[Builder, Operand], Operand]]] = {
    "Digamma": gamma_derivatives.digamma,
    "Erfinv": special_functions.erfinv,
    "Lgamma": special_functions.lgamma,
    "Ndtri": special_functions.ndtri,
    **{f"Bessel{kind}{n}": partial(_BESSEL[kind], order=n) for kind in "JY" for n in range(2)},
    **{f"Bessel{kind}{n}": partial(_BESSEL[kind], order=n, scaled=False) for kind in "IK" for n in range(2)},
    **{f"Bessel{kind}{n}e": partial(_BESSEL[kind], order=n, scaled=True) for kind in "IK" for n in range(2)},
}


def _function(of: Callable[[Builder, Operand], Operand]) -> Translation:
    return lambda c: c.pointwise(partial(of, c), c.tensor())


for _name, _of in _FUNCTIONS.items():
    translates(_name)(_function(_of))


@translates("Igamma", "Igammac")
def incomplete(c: Call) -> Operand:
    """The regularised incomplete gamma function, its lower or upper part."""
    return c.pointwise(partial(incomplete_gamma, c, upper=c.op == "Igammac"), c.tensor(0), c.tensor(1))


@translates("Zeta")
def zeta(c: Call) -> Operand:
    """Hurwitz's zeta function."""
    return c.pointwise(partial(gamma_derivatives.zeta, c), c.tensor(0), c.tensor(1))


@translates("NextAfter")
def next_float(c: Call) -> Operand:
    """The next number on the way to another."""
    return c.pointwise(partial(next_after, c), c.tensor(0), c.tensor(1))


@translates("CumulativeLogsumexp")
def running_log_sum_exp(c: Call) -> Operand:
    """The logarithms of the running sums of exponentials: of each sum its own largest term is taken out, so that none is lost."""
    x = c.tensor(0)
    axis = c.axis_at(1, x.rank)
    shape, n = x.shape, x.shape[axis]
    place = c.add("range", start=0, size=n, step=1)
    end, term = c.reshape(place, [n, 1]), c.reshape(place, [1, n])
    if c.flag("reverse"):
        end, term = term, end
    counts = c.add("less" if c.flag("exclusive") else "less_equal", term, end)
    tail = [1] * (x.rank - axis - 1)
    wide = c.reshape(x, [*shape[:axis], 1, *shape[axis:]])
    terms = c.add("where", c.reshape(counts, [n, n, *tail]), wide, c.scalar(-math.inf, x.dtype))
    return c.add("reduce_log_sum_exp", terms, axes=(axis + 1,), keepdims=False)


@translates("L2Loss")
def half_of_squares(c: Call) -> Operand:
    """Half of the sum of the squares of all elements."""
    x = c.tensor(0)
    whole = c.add("reduce_sum", c.add("square", x), axes=tuple(range(x.rank)), keepdims=False) if x.rank else x
    return c.add("mul", whole if x.rank else c.add("square", x), c.scalar(0.5, x.dtype))


@translates("Bucketize")
def bucketize(c: Call) -> Operand:
    """How many of the boundaries are at most each element."""
    x, bounds = c.tensor(0), c.value("boundaries", list)
    kept = c.constant(np.asarray(bounds, np.float32))
    wide = c.reshape(c.cast(x, f32), [*x.shape, 1])
    return c.add("reduce_sum", c.cast(c.add("less_equal", kept, wide), i32), axes=(x.rank,), keepdims=False)
