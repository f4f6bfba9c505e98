"""Functions of one number that are made of others, by formulas that keep their precision where those alone lose it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Builder, Operand, Results
from weft.graph.composites.numerics import special_functions

Function: TypeAlias = Callable[[Builder, Operand], Operand]


def _of_one(function: Function) -> Translation:
    return lambda c: function(c, _given(c))


translates("log1p")(_of_one(special_functions.log1p))
translates("expm1")(_of_one(special_functions.expm1))
translates("cbrt")(_of_one(special_functions.cbrt))
translates("erfc", "special_erfc")(_of_one(special_functions.erfc))
translates("special_erfcx", "prims.erfcx.default")(_of_one(special_functions.erfcx))
translates("erfinv", "prims.erf_inv.default")(_of_one(special_functions.erfinv))
translates("special_ndtri", "prims.ndtri.default")(_of_one(special_functions.ndtri))
translates("lgamma")(_of_one(special_functions.lgamma))


def _log(base: float) -> Translation:
    """The logarithm to a base."""
    return lambda c: c.add("mul", c.add("log", _given(c)), c.scalar(1 / math.log(base), c.dtype))


translates("log2")(_log(2))
translates("log10")(_log(10))


@translates("exp2")
def exp2(c: Call) -> Results:
    """Two to a power."""
    return c.add("power", c.scalar(2, c.dtype), _given(c))


def _given(c: Call) -> Operand:
    return c.operand("self", c.dtype)
