"""Functions that TensorFlow composes of several operators, and TensorFlow Lite has as one."""

from __future__ import annotations

from functools import partial

from weft.frontends.tflite.call import LiteCall
from weft.frontends.tflite.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.activations import hard_swish
from weft.graph.composites.normalization import lp_normalize


@translates("RELU_N1_TO_1", "RELU_0_TO_1")
def clipped(c: LiteCall) -> Operand:
    """x between two numbers."""
    low = -1 if c.op == "RELU_N1_TO_1" else 0
    return c.pointwise(lambda x: c.add("clip", x, c.scalar(low, x.dtype), c.scalar(1, x.dtype)), c.tensor())


@translates("PRELU")
def prelu(c: LiteCall) -> Operand:
    """x, or a learned fraction of it below 0."""
    return c.pointwise(partial(c.add, "prelu"), c.tensor(0), c.tensor(1))


@translates("GELU")
def gelu(c: LiteCall) -> Operand:
    """x P(X <= x) for a standard normal X (Hendrycks and Gimpel, 2016), exactly or by their tanh formula."""
    return c.pointwise(partial(c.add, "gelu", approximate=c.flag("approximate")), c.tensor())


@translates("HARD_SWISH")
def hard_swish_(c: LiteCall) -> Operand:
    """x times a piecewise linear sigmoid."""
    return c.pointwise(partial(hard_swish, c), c.tensor())


@translates("L2_NORMALIZATION")
def l2_normalization(c: LiteCall) -> Operand:
    """Divides by the 2-norm along the last dimension."""
    x = c.tensor()
    return lp_normalize(c, x, x.rank - 1, 2)


@translates("EMBEDDING_LOOKUP")
def embedding_lookup(c: LiteCall) -> Operand:
    """Rows of a table at indices, which are the first input."""
    return c.add("gather", c.tensor(1), c.tensor(0), axis=0)
