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
from weft.graph.composites.numerics import gamma_derivatives, special_functions
from weft.support.dtypes import f32, i32

_FUNCTIONS: Final[dict[str, Callable[[Builder, Operand], Operand]]] = {
    "Digamma": gamma_derivatives.digamma,
    "Erfinv": special_functions.erfinv,
    "Lgamma": special_functions.lgamma,
    "Ndtri": special_functions.ndtri,
}


def _function(of: Callable[[Builder, Operand], Operand]) -> Translation:
    return lambda c: c.pointwise(partial(of, c), c.tensor())


for _name, _of in _FUNCTIONS.items():
    translates(_name)(_function(_of))


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
