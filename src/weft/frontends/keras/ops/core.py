"""Dense layers, embeddings, and layers that do nothing when a model is used."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.ops.nonlinearity import activated, activation_of
from weft.frontends.keras.registry import translates
from weft.graph.builder import Operand, static_sizes, total
from weft.graph.composites.einsum import einsum
from weft.support.dtypes import bool_, f32, i32, i64

_CHANGES: Final = (
    *(
        "Brightness",
        "ColorDegeneration",
        "ColorJitter",
        "Contrast",
        "ElasticTransform",
        "Erasing",
        "Flip",
        "GaussianBlur",
        "Grayscale",
        "Hue",
    ),
    *("Invert", "Perspective", "Posterization", "Rotation", "Saturation", "Sharpness", "Shear", "Translation", "Zoom"),
)
"""Changes of images, each by chance, in training."""


@translates("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "GaussianDropout", "AlphaDropout")
@translates("GaussianNoise", "ActivityRegularization", "Identity")
@translates(*[f"Random{name}" for name in _CHANGES])
@translates("AugMix", "CutMix", "MixUp", "RandAugment", "Solarization")
def identity(c: Call) -> Operand:
    """Layers of training, which pass on their input."""
    return c.tensor()


@translates("RandomCrop")
def random_crop(c: Call) -> Operand:
    """Images of the size to which training cuts larger ones; for those, versions of Keras do different things."""
    x = c.tensor(rank=4)
    wanted = [c.integer("height"), c.integer("width")]
    if static_sizes(c.first(x, last=c.channels_last).shape[2:]) != wanted:
        c.fail(f"it crops {x!r} to {wanted}, which versions of Keras do in different ways", "use a CenterCrop")
    return x


@translates("Dense")
def dense(c: Call) -> Operand:
    """x W + b along the last dimension."""
    c.refuse("quantization_config")
    x = c.floats()
    y = product(c, x, c.variable(0, 2), c.variable(1, 1) if c.flag("use_bias", True) else None)
    return activated(c, y, activation_of(c))


def product(c: Call, x: Operand, weight: Operand, bias: Operand | None) -> Operand:
    """Returns x W + b along the last dimension."""
    if x.rank < 2:
        c.fail(f"its input should have 2 dimensions or more: {x!r}", "save the model again")
    if x.rank == 2:
        return c.add("gemm", x, weight, bias, alpha=1.0, beta=1.0, trans_a=False, trans_b=False)
    y = c.add("matmul", x, weight)
    return y if bias is None else c.add("add", y, bias)


@translates("EinsumDense")
def einsum_dense(c: Call) -> Operand:
    """Sums of products of the input and a weight over labelled dimensions, and a bias."""
    c.refuse("quantization_config")
    equation = c.text("equation").replace(" ", "")
    labels = equation.partition("->")[0].rpartition(",")[2]
    y = einsum(c, [c.floats(), c.variable(0, len(labels))], equation)
    if c.has("bias_axes"):
        y = c.add("add", y, c.variable(1, c.weights.variables()[1].ndim))
    return activated(c, y, activation_of(c))


@translates("SpectralNormalization")
def spectral_normalization(c: Call) -> Operand:
    """A layer whose weight training keeps of norm 1."""
    return c.inner(c.layer.config.get("layer"), c.weights.part("layer"), [c.tensor()])[0]


@translates("Embedding")
def embedding(c: Call) -> Operand:
    """Rows of a table, at indices."""
    return _rows(c)


def _rows(c: Call) -> Operand:
    return c.add("gather", c.variable(0, 2), c.cast(c.tensor(), i64), axis=0)


@translates("ReversibleEmbedding")
def reversible_embedding(c: Call) -> Operand:
    """Rows of a table, at indices; or (`reverse`) the products of vectors with all rows."""
    c.refuse("quantization_config")
    reverse = c.named.get("reverse", c.positional[1] if len(c.positional) > 1 else False)
    if not reverse:
        return _rows(c)
    tied = c.flag("tie_weights", True)
    kernel = c.variable(0, 2, np.transpose, "reverse") if tied else c.variable(1, 2)
    y = c.add("matmul", c.floats(), kernel)
    if not c.has("logit_soft_cap"):
        return y
    most = c.scalar(c.number("logit_soft_cap"), f32)
    return c.add("mul", c.add("tanh", c.add("div", y, most)), most)


@translates("Pipeline")
def pipeline(c: Call) -> Operand:
    """Layers one after another."""
    x = c.tensor()
    for described in c.value("layers", list):
        x = c.inner(described, c.weights, [x])[0]
    return x


@translates("Masking")
def masking(c: Call) -> Operand:
    """Sequences whose steps of one number are zeros, and do not count in the layers behind it."""
    x = c.floats()
    return c.add("where", steps_other_than(c, x, c.number("mask_value", 0.0), keeps=True), x, c.scalar(0, f32))


def steps_other_than(c: Call, x: Operand, value: float, *, keeps: bool) -> Operand:
    """Tells which steps have an element that is not *value*; *keeps* their dimension with the size 1."""
    others = c.add("logical_not", c.add("equal", x, c.scalar(value, x.dtype)))
    any_ = c.add("reduce_max", c.cast(others, i32), axes=(x.rank - 1,), keepdims=keeps)
    return c.cast(any_, bool_)


@translates("TimeDistributed")
def time_distributed(c: Call) -> Operand:
    """A layer, called for each step of sequences [batch, time, ...]."""
    x = c.tensor()
    if x.rank < 3:
        c.fail(f"its input should have 3 dimensions or more: {x!r}", "save the model again")
    steps = c.reshape(x, [total(x.shape[:2]), *x.shape[2:]])
    mask = c.mask()
    inside = {} if mask is None or mask.rank < 3 else {"mask": c.reshape(mask, [total(x.shape[:2]), *mask.shape[2:]])}
    y = c.inner(c.layer.config.get("layer"), c.weights.part("layer"), [steps], inside)[0]
    return c.reshape(y, [*x.shape[:2], *y.shape[1:]])
