"""Convolution."""

from __future__ import annotations

from weft.frontends.torch.call import Call
from weft.frontends.torch.ops.windows.pooling import as_given, with_batch
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results, static_sizes
from weft.graph.composites.windows import same_pads


@translates("conv1d", "conv2d", "conv3d")
def conv(c: Call) -> Results:
    """Convolution."""
    n = c.tensor("weight").rank - 2
    return _convolved(c, c.ints("padding", n) * 2)


@translates("conv1d.padding", "conv2d.padding", "conv3d.padding")
def conv_padded(c: Call) -> Results:
    """Convolution with pads "valid" (none) or "same" (as many results as elements)."""
    x, weight = c.tensor("input"), c.tensor("weight")
    n = weight.rank - 2
    if c.value("padding") == "valid":
        return _convolved(c, [0] * (2 * n))
    kernel, dilations = _kernel(c, weight), c.ints("dilation", n, 1)
    return _convolved(c, same_pads(c, kernel, [1] * n, dilations, x.shape[x.rank - n :], lower=False))


@translates("convolution")
def convolution(c: Call) -> Results:
    """Convolution, or transposed convolution, as decomposed programs have it."""
    n = c.tensor("weight").rank - 2
    return _transposed(c) if c.value("transposed") else _convolved(c, c.ints("padding", n) * 2)


@translates("conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(c: Call) -> Results:
    """Transposed convolution."""
    return _transposed(c)


def _convolved(c: Call, pads: list[int]) -> Operand:
    weight = c.tensor("weight")
    n = weight.rank - 2
    attributes = {"strides": c.ints("stride", n, 1), "pads": pads, "dilations": c.ints("dilation", n, 1)}
    x, group = with_batch(c, "input", n), c.integer("groups", 1)
    made = c.add("conv2d", x, weight, c.optional("bias"), **attributes, group=group)
    return as_given(c, made, "input", n)


def _transposed(c: Call) -> Operand:
    weight = c.tensor("weight")
    n = weight.rank - 2
    made = c.add(
        "conv_transpose2d",
        with_batch(c, "input", n),
        weight,
        c.optional("bias"),
        strides=c.ints("stride", n, 1),
        pads=c.ints("padding", n) * 2,
        dilations=c.ints("dilation", n, 1),
        output_padding=c.ints("output_padding", n),
        group=c.integer("groups", 1),
    )
    return as_given(c, made, "input", n)


def _kernel(c: Call, weight: Operand) -> list[int]:
    sizes = static_sizes(weight.shape[2:])
    if sizes is None:
        c.fail("the size of its kernel is symbolic", "export it with a static weight")
    return sizes
