"""Products that ONNX Runtime has fused with neighbouring nodes: transpositions, scales, sums, activations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.contrib import CONVOLUTION, contrib
from weft.frontends.onnx.ops.convolution import convolved
from weft.frontends.onnx.ops.linear import gemm
from weft.graph import UNFIT
from weft.graph.composites.channel_order import channels_first, channels_last

_MATMUL: Final = {
    "alpha": float,
    **dict.fromkeys(("transA", "transB", "transBatchA", "transBatchB"), int),
}
_ACTIVATIONS: Final[dict[str, tuple[int, Callable[..., Operand]]]] = {
    "Relu": (0, lambda c, x: c.add("relu", x)),
    "Sigmoid": (0, lambda c, x: c.add("sigmoid", x)),
    "Tanh": (0, lambda c, x: c.add("tanh", x)),
    "LeakyRelu": (1, lambda c, x, alpha: c.add("leaky_relu", x, alpha=alpha)),
    "HardSigmoid": (2, lambda c, x, alpha, beta: c.add("hard_sigmoid", x, alpha=alpha, beta=beta)),
    "Clip": (2, lambda c, x, low, high: c.add("clip", x, c.scalar(low, x.dtype), c.scalar(high, x.dtype))),
}
"""Activations by name: how many parameters each has, which the node must give, and how it is made."""


def _activated(c: Call, x: Operand, parameters: Sequence[float]) -> Operand:
    """Returns the activation of *x* that the attribute `activation` names; raises `ModelError` for one that is not supported."""
    name = c.text("activation", "")
    if not name:
        return x
    if name not in _ACTIVATIONS:
        c.fail(f"its attribute 'activation' is {name!r}", f"Weft supports {', '.join(_ACTIVATIONS)}")
    count, made = _ACTIVATIONS[name]
    if len(parameters) < count:
        c.fail(f"its activation {name} takes {count} parameters, and it has {len(parameters)}", UNFIT)
    return made(c, x, *parameters[:count])


@contrib("FusedConv", inputs=(2, 4), attributes={**CONVOLUTION, "activation": str, "activation_params": list})
def fused_conv(c: Call) -> Results:
    """A convolution, a tensor added to it, and an activation."""
    y = convolved(c, c.input(0), c.input(1), c.optional(2))
    y = c.add("add", y, c.input(3)) if c.has(3) else y
    return _activated(c, y, [float(v) for v in c.attributes.get("activation_params", [])])


@contrib("NhwcConv", inputs=(2, 3), attributes=CONVOLUTION)
def nhwc_conv(c: Call) -> Results:
    """The convolution of images whose channels come last; the weight's order is ONNX's."""
    return channels_last(c, convolved(c, channels_first(c, c.input(0)), c.input(1), c.optional(2)))


@contrib(
    "FusedGemm",
    inputs=(2, 3),
    attributes={
        **dict.fromkeys(("activation_alpha", "activation_beta", "activation_gamma", "alpha", "beta"), float),
        **dict.fromkeys(("transA", "transB"), int),
        "activation": str,
    },
)
def fused_gemm(c: Call) -> Results:
    """alpha * A B + beta * C and an activation."""
    y = gemm(c)
    assert not isinstance(y, tuple)  # it has one output
    names = [name for name in ("activation_alpha", "activation_beta") if name in c.attributes]
    return _activated(c, y, [c.number(name, 0.0) for name in names])


@contrib("FusedMatMul", inputs=(2, 2), attributes=_MATMUL)
def fused_matmul(c: Call) -> Results:
    """alpha times the product of matrices, or batches of them, as given or transposed."""
    return _scaled_product(c)


@contrib("TransposeMatMul", inputs=(2, 2), attributes={"alpha": float, "transA": int, "transB": int})
def transpose_matmul(c: Call) -> Results:
    """alpha times the product of matrices, or batches of them, as given or transposed."""
    return _scaled_product(c)


def _scaled_product(c: Call) -> Operand:
    product = c.add("matmul", _transposed(c, c.input(0), "A"), _transposed(c, c.input(1), "B"))
    alpha = c.number("alpha", 1.0)
    return product if alpha == 1.0 else c.add("mul", product, c.scalar(alpha, product.dtype))


def _transposed(c: Call, x: Operand, side: str) -> Operand:
    """Returns a factor as the attributes of its side say.

    `transBatch` moves the first dimension behind the batch, before `trans` exchanges the last two. Vectors stay.
    """
    perm = list(range(x.rank))
    if x.rank > 1 and c.flag(f"transBatch{side}", False):
        perm = [*perm[1:-1], perm[0], perm[-1]]
    if x.rank > 1 and c.flag(f"trans{side}", False):
        perm[-2:] = perm[:-3:-1]
    return c.transpose(x, perm)
