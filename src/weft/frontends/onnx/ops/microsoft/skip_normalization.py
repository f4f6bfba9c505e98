"""Normalisations that ONNX Runtime has fused with the sums or the embeddings before them."""

from __future__ import annotations

from typing import Final

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.contrib import contrib
from weft.frontends.onnx.registry import DEFAULT_DOMAIN
from weft.graph.composites.normalization import inverse_deviation
from weft.support.dtypes import f32, i32

_EPSILON: Final = 1e-12
_STATISTICS: Final = "the outputs mean and inv_std_var"


@contrib("SkipLayerNormalization", inputs=(3, 5), attributes={"epsilon": float}, limits=_STATISTICS)
def skip_layer_normalization(c: Call) -> Results:
    """The layer normalisation of input + skip + bias; that sum too, where it is asked for."""
    x = _sum(c, 4)
    y = c.add("layer_norm", x, c.input(2), c.optional(3), axis=-1, epsilon=c.number("epsilon", _EPSILON))
    return y, None, None, x


@contrib("SkipSimplifiedLayerNormalization", inputs=(3, 4), attributes={"epsilon": float}, limits=_STATISTICS)
def skip_simplified_layer_normalization(c: Call) -> Results:
    """input + skip + bias over the root of its mean square; that sum too, where it is asked for."""
    x = _sum(c, 3)
    y = c.add("rms_norm", x, axis=-1, epsilon=c.number("epsilon", _EPSILON))
    return c.add("mul", y, c.input(2)), None, None, x


def _sum(c: Call, bias: int) -> Operand:
    """Returns the sum of inputs 0 and 1 and, if there is one, the *bias*."""
    x = c.add("add", c.input(0), c.input(1))
    return c.add("add", x, c.input(bias)) if c.has(bias) else x


@contrib(
    "SimplifiedLayerNormalization",
    inputs=(2, 2),
    attributes={"axis": int, "epsilon": float, "stash_type": int},
    domain=DEFAULT_DOMAIN,
)
def simplified_layer_normalization(c: Call) -> Results:
    """Divides by the root of the mean square over the dimensions from an axis on; the inverse of that root where asked for.

    ONNX Runtime has it in ONNX's domain; ONNX calls it RMSNormalization.
    """
    x = c.input(0)
    axis, epsilon = c.axis(-1, x.rank), c.number("epsilon", 1e-5)
    y = c.add("mul", c.add("rms_norm", x, axis=axis, epsilon=epsilon), c.input(1))
    if not c.wants(1):
        return y
    squares = c.add("square", c.cast(x, f32))
    mean = c.add("reduce_mean", squares, axes=tuple(range(axis, x.rank)), keepdims=True)
    return y, inverse_deviation(c, mean, epsilon)


@contrib(
    "EmbedLayerNormalization",
    inputs=(7, 9),
    attributes={"epsilon": float, "mask_index_type": int},
)
def embed_layer_normalization(c: Call) -> Results:
    """The layer normalisation of the sum of a word's, its position's and its segment's embedding; how long the sentences are."""
    words = c.ranked(0, 2, "the ids of the words")
    x = c.add("gather", c.input(2), words, axis=0)
    x = c.add("add", x, _positions(c, words))
    if c.has(1) and c.has(4):
        x = c.add("add", x, c.add("gather", c.input(4), c.input(1), axis=0))
    y = c.add("layer_norm", x, c.input(5), c.input(6), axis=-1, epsilon=c.number("epsilon", _EPSILON))
    return y, _lengths(c, words), x


def _positions(c: Call, words: Operand) -> Operand:
    """Returns the embeddings of the words' positions: those given, or 0, 1, ... in each sentence."""
    if c.has(8):
        return c.add("gather", c.input(3), c.input(8), axis=0)
    return c.add("slice", c.input(3), starts=(0,), ends=(words.shape[1],), axes=(0,), steps=(1,))


def _lengths(c: Call, words: Operand) -> Operand | None:
    """Returns how many words of each sentence the mask has as 1: zeros without a mask; None where nobody asks."""
    if not c.wants(1):
        return None
    if not c.has(7):
        return c.add("full", shape=(words.shape[0],), value=0, dtype=i32)
    mask = c.input(7)
    is_one = c.cast(c.add("equal", mask, c.scalar(1, mask.dtype)), i32)
    return c.add("reduce_sum", is_one, axes=(1,), keepdims=False)
