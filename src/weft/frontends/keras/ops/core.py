"""Dense layers, embeddings, and layers that do nothing when a model is used."""

from __future__ import annotations

from weft.frontends.keras.call import Call
from weft.frontends.keras.ops.nonlinearity import activated, activation_of
from weft.frontends.keras.registry import translates
from weft.graph.builder import Operand, total
from weft.support.dtypes import i64


@translates("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "GaussianDropout", "AlphaDropout")
@translates("GaussianNoise", "ActivityRegularization", "Identity")
def identity(c: Call) -> Operand:
    """Layers of training, which pass on their input."""
    return c.tensor()


@translates("Dense")
def dense(c: Call) -> Operand:
    """x W + b along the last dimension."""
    c.refuse("lora_rank")
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


@translates("Embedding")
def embedding(c: Call) -> Operand:
    """Rows of a table, at indices."""
    if c.flag("mask_zero"):
        c.fail("masks are not supported: mask_zero=True", "build the model with mask_zero=False")
    c.refuse("lora_rank")
    return c.add("gather", c.variable(0, 2), c.cast(c.tensor(), i64), axis=0)


@translates("TimeDistributed")
def time_distributed(c: Call) -> Operand:
    """A layer, called for each step of sequences [batch, time, ...]."""
    x = c.tensor()
    if x.rank < 3:
        c.fail(f"its input should have 3 dimensions or more: {x!r}", "save the model again")
    steps = c.reshape(x, [total(x.shape[:2]), *x.shape[2:]])
    y = c.inner(c.layer.config.get("layer"), c.weights.part("layer"), [steps])
    return c.reshape(y, [*x.shape[:2], *y.shape[1:]])
