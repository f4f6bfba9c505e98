"""Convolutions: ordinary, depthwise, separable and transposed ones, over one to three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.ops.nonlinearity import activated, activation_of
from weft.frontends.keras.registry import Translation, translates
from weft.graph import Array
from weft.graph.builder import Operand
from weft.graph.composites.run_time.late_windows import same_padded
from weft.graph.composites.windows import halved


def outputs_first(kernel: Array) -> Array:
    """Returns a kernel [*sizes, in, out] as [out, in, *sizes]."""
    n = kernel.ndim - 2
    return kernel.transpose(n + 1, n, *range(n))


def depthwise_kernel(kernel: Array) -> Array:
    """Returns a kernel [*sizes, in, multiplier] as [in * multiplier, 1, *sizes]."""
    n = kernel.ndim - 2
    moved = kernel.transpose(n, n + 1, *range(n))
    return moved.reshape(moved.shape[0] * moved.shape[1], 1, *moved.shape[2:])


def padded(
    c: Call, x: Operand, kernel: list[int], strides: list[int], dilations: list[int]
) -> tuple[Operand, list[int]]:
    """Returns images whose channels are first, with padding along symbolic sizes, and the pads around them."""
    n, padding = len(kernel), c.text("padding", "valid")
    if padding == "valid":
        return x, [0] * (2 * n)
    if padding == "same":
        return same_padded(c, x, kernel, strides, dilations)
    if padding == "causal" and n == 1:
        return x, [dilations[0] * (kernel[0] - 1), 0]
    return c.fail(f"there is no padding {padding!r} here", "use 'same' or 'valid'")


def sizes_of(weight: Operand) -> list[int]:
    """Returns the spatial sizes of a weight [out, in, *sizes]."""
    return [int(s.value) for s in weight.shape[2:]]  # type: ignore[attr-defined]


def convolved(c: Call, x: Operand, weight: Operand, bias: Operand | None, group: int) -> Operand:
    """Convolves images whose channels are first."""
    n = weight.rank - 2
    strides, dilations = c.ints("strides", n), c.ints("dilation_rate", n)
    x, pads = padded(c, x, sizes_of(weight), strides, dilations)
    settings: dict[str, Any] = {"strides": strides, "pads": pads, "dilations": dilations, "group": group}
    return c.add("conv2d", x, weight, bias, **settings)


def _bias(c: Call, i: int) -> Operand | None:
    return c.variable(i, 1) if c.flag("use_bias", True) else None


def _finished(c: Call, y: Operand) -> Operand:
    return activated(c, c.last(y, last=c.channels_last), activation_of(c))


def _conv(n: int) -> Translation:
    """A convolution."""

    def translate(c: Call) -> Operand:
        x = c.first(c.floats(rank=n + 2), last=c.channels_last)
        weight = c.variable(0, n + 2, outputs_first)
        return _finished(c, convolved(c, x, weight, _bias(c, 1), c.integer("groups", 1)))

    return translate


def _depthwise(n: int) -> Translation:
    """A convolution of each channel by itself."""

    def translate(c: Call) -> Operand:
        x = c.first(c.floats(rank=n + 2), last=c.channels_last)
        return _finished(c, convolved(c, x, c.variable(0, n + 2, depthwise_kernel), _bias(c, 1), _channels(c, x)))

    return translate


def _separable(n: int) -> Translation:
    """A convolution of each channel by itself, then one over the channels (Chollet, 2017)."""

    def translate(c: Call) -> Operand:
        x = c.first(c.floats(rank=n + 2), last=c.channels_last)
        deep = convolved(c, x, c.variable(0, n + 2, depthwise_kernel), None, _channels(c, x))
        ones: list[int] = [1] * n
        weight = c.variable(1, n + 2, outputs_first)
        settings: dict[str, Any] = {"strides": ones, "pads": [0] * (2 * n), "dilations": ones, "group": 1}
        return _finished(c, c.add("conv2d", deep, weight, _bias(c, 2), **settings))

    return translate


def _channels(c: Call, x: Operand) -> int:
    """Returns the number of channels of images whose channels are first; raises `ModelError` for a symbolic one."""
    found = getattr(x.shape[1], "value", None)
    if not isinstance(found, int | np.integer):
        c.fail(f"its channels are of symbolic size: {x!r}", "build the model with a number of channels")
    return int(found)


def _transposed(n: int) -> Translation:
    """A transposed convolution, whose results are as many as inputs times strides with padding "same"."""

    def translate(c: Call) -> Operand:
        c.refuse("groups", 1)
        x = c.first(c.floats(rank=n + 2), last=c.channels_last)
        weight = c.variable(0, n + 2, outputs_first)  # [*sizes, out, in] becomes [in, out, *sizes]
        strides, dilations = c.ints("strides", n), c.ints("dilation_rate", n)
        reach = [d * (k - 1) + 1 for k, d in zip(sizes_of(weight), dilations, strict=True)]
        excess = _excess(c, reach, strides)
        y = c.add(
            "conv_transpose2d",
            x,
            weight,
            _bias(c, 1),
            strides=strides,
            pads=halved([max(e, 0) for e in excess], lower=False),
            dilations=dilations,
            output_padding=[max(-e, 0) for e in excess],
            group=1,
        )
        return _finished(c, y)

    return translate


def _excess(c: Call, reach: list[int], strides: list[int]) -> list[int]:
    """Returns by how many elements the whole result is too long in each dimension; negative where it is too short."""
    same = c.text("padding", "valid") == "same"
    if not c.has("output_padding"):
        return [r - s if same else min(r - s, 0) for r, s in zip(reach, strides, strict=True)]
    found = c.layer.config["output_padding"]
    extra = found if isinstance(found, list) else [found] * len(reach)
    return [(2 * (r // 2) if same else 0) - int(e) for r, e in zip(reach, extra, strict=True)]


for _n in (1, 2, 3):
    translates(f"Conv{_n}D")(_conv(_n))
    translates(f"Conv{_n}DTranspose")(_transposed(_n))
for _n in (1, 2):
    translates(f"DepthwiseConv{_n}D")(_depthwise(_n))
    translates(f"SeparableConv{_n}D")(_separable(_n))
