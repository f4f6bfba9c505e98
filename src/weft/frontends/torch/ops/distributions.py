"""Random numbers: of the distributions that PyTorch's are, but others than its generators would draw.

They are a function of the model's input `seed`, and of which operator of the model draws them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results
from weft.graph.composites.numerics import random_numbers
from weft.support.dtypes import f32, f64


@translates("rand", "rand_like")
def rand(c: Call) -> Results:
    """Numbers from 0 to below 1."""
    return random_numbers.uniform(c, c.random_stream(), _shape(c), c.dtype)


@translates("randn_like")
def randn(c: Call) -> Results:
    """Numbers of the normal distribution."""
    return random_numbers.normal(c, c.random_stream(), _shape(c), c.dtype)


@translates("prims.normal.default", "normal_functional")
def normal(c: Call) -> Results:
    """Numbers of a normal distribution."""
    made = random_numbers.normal(c, c.random_stream(), _shape(c), c.dtype)
    spread = c.add("mul", made, c.scalar(c.value("std", 1), c.dtype))
    return c.add("add", spread, c.scalar(c.value("mean", 0), c.dtype))


@translates("prims.uniform.default")
def uniform(c: Call) -> Results:
    """Numbers from one to below another."""
    low, high = float(c.value("low")), float(c.value("high"))
    made = random_numbers.uniform(c, c.random_stream(), _shape(c), c.dtype)
    return c.add("add", c.add("mul", made, c.scalar(high - low, c.dtype)), c.scalar(low, c.dtype))


@translates("randint", "randint.low", "randint_like", "randint_like.low_dtype")
def randint(c: Call) -> Results:
    """Whole numbers from one, 0 by default, to below another."""
    low, high = int(c.value("low", 0)), int(c.value("high"))
    return c.cast(random_numbers.integers(c, c.random_stream(), _shape(c), low, high), c.dtype)


@translates("random", "random.to")
def random(c: Call) -> Results:
    """Whole numbers from 0 to below a bound, or all that are exact in the type and are not negative."""
    limit = 2 ** (ml_dtypes.finfo(c.dtype.numpy).nmant + 1) if c.dtype.is_float else _largest(c)
    return c.cast(random_numbers.integers(c, c.random_stream(), _shape(c), 0, int(c.value("to", limit))), c.dtype)


@translates("randperm")
def randperm(c: Call) -> Results:
    """The numbers from 0 to below n in a random order."""
    return c.cast(random_numbers.permutation(c, c.random_stream(), c.value("n")), c.dtype)


@translates("bernoulli.p")
def bernoulli(c: Call) -> Results:
    """One with a probability, else zero."""
    return c.cast(_happens(c, c.tensor(), float(c.value("p", 0.5))), c.dtype)


@translates("multinomial")
def multinomial(c: Call) -> Results:
    """Places in rows of weights."""
    weights, again = c.tensor(), bool(c.value("replacement", False))
    weights = weights if weights.dtype is f64 else c.cast(weights, f32)
    return random_numbers.chosen(c, c.random_stream(), weights, c.integer("num_samples"), again=again)


@translates("dropout")
def dropout(c: Call) -> Results:
    """While training, zeros in random places, and in the others the elements as much larger as these are fewer."""
    return dropped(c, c.tensor("input"), float(c.value("p")) if c.value("train") else 0.0)


def dropped(c: Call, x: Operand, p: float) -> Operand:
    """Returns zeros in the place of a share *p* of the elements, and the others larger, so that the mean stays."""
    if p == 0:
        return x
    scale = 0 if p == 1 else 1 / (1 - p)
    return c.add("where", _happens(c, x, p), c.scalar(0, x.dtype), c.add("mul", x, c.scalar(scale, x.dtype)))


@translates("rrelu_with_noise_functional")
def rrelu(c: Call) -> Results:
    """A leaky rectifier, whose slope is random while training; and the slopes."""
    x, low, high = c.tensor(), float(c.value("lower", 1 / 8)), float(c.value("upper", 1 / 3))
    if not c.value("training", False):
        return c.add("leaky_relu", x, alpha=(low + high) / 2), c.tensor("noise")
    drawn = random_numbers.uniform(c, c.random_stream(), x.shape, x.dtype)
    slope = c.add("add", c.add("mul", drawn, c.scalar(high - low, x.dtype)), c.scalar(low, x.dtype))
    slopes = c.add("where", c.add("less_equal", x, c.scalar(0, x.dtype)), slope, c.scalar(1, x.dtype))
    return c.add("mul", x, slopes), slopes


def _happens(c: Call, like: Operand, probability: float) -> Operand:
    """Returns for each element of *like* whether something of this probability happens."""
    drawn = random_numbers.uniform(c, c.random_stream(), like.shape, f32)
    return c.add("less", drawn, c.scalar(probability, f32))


def _shape(c: Call) -> Sequence[Any]:
    """Returns the shape that is given, or that of the tensor that is."""
    given = next((name for name in ("size", "shape") if name in c.arguments), None)
    return c.sizes(given) if given is not None else c.tensor().shape


def _largest(c: Call) -> int:
    return 2 if c.dtype.is_bool else 2 ** (c.dtype.bits - (c.dtype.kind == "int"))
