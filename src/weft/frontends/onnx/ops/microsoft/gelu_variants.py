"""The kinds of Gaussian error linear units among ONNX Runtime's own operators."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, Results
from weft.frontends.onnx.contrib import contrib
from weft.graph.composites.activations import silu


@contrib("Gelu", inputs=(1, 1))
def gelu(c: Call) -> Results:
    """The exact one."""
    return c.add("gelu", c.input(0))


@contrib("BiasGelu", inputs=(2, 2))
def bias_gelu(c: Call) -> Results:
    """The exact one of a sum with a bias."""
    return c.add("gelu", c.add("add", c.input(0), c.input(1)))


@contrib("FastGelu", inputs=(1, 2))
def fast_gelu(c: Call) -> Results:
    """The one by tanh, of a sum with a bias if there is one."""
    x = c.add("add", c.input(0), c.input(1)) if c.has(1) else c.input(0)
    return c.add("gelu", x, approximate=True)


@contrib("QuickGelu", inputs=(1, 1), attributes={"alpha": float})
def quick_gelu(c: Call) -> Results:
    """x * sigmoid(alpha * x)."""
    return silu(c, c.input(0), c.number("alpha", 1.702))
