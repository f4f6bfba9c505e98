"""Convolution and pooling; images [N, C, ...] have a batch."""

from __future__ import annotations

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Operand, Results, static_sizes
from weft.graph.composites.pooling import spatial_axes
from weft.graph.composites.windows import Window, same_pads


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
    return _convolved(c, same_pads(c, kernel, [1] * n, dilations, x.shape[2:], lower=False))


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
    return c.add(
        "conv2d",
        c.tensor("input", weight.rank),
        weight,
        c.optional("bias"),
        strides=c.ints("stride", n, 1),
        pads=pads,
        dilations=c.ints("dilation", n, 1),
        group=c.integer("groups", 1),
    )


def _transposed(c: Call) -> Operand:
    weight = c.tensor("weight")
    n = weight.rank - 2
    return c.add(
        "conv_transpose2d",
        c.tensor("input", weight.rank),
        weight,
        c.optional("bias"),
        strides=c.ints("stride", n, 1),
        pads=c.ints("padding", n) * 2,
        dilations=c.ints("dilation", n, 1),
        output_padding=c.ints("output_padding", n),
        group=c.integer("groups", 1),
    )


def _kernel(c: Call, weight: Operand) -> list[int]:
    sizes = static_sizes(weight.shape[2:])
    if sizes is None:
        c.fail("the size of its kernel is symbolic", "export it with a static weight")
    return sizes


def _window(c: Call, n: int) -> Window:
    """Reads the window of a pool, whose strides are by default its kernel's sizes."""
    kernel = c.ints("kernel_size", n)
    strides = c.ints("stride", n) if c.arguments.get("stride") else kernel
    return Window(kernel, strides, c.ints("dilation", n, 1), c.ints("padding", n) * 2)


def _max_pool(n: int) -> Translation:
    """The largest element of each window."""
    return lambda c: _largest(c, n)


def _largest(c: Call, n: int) -> Operand:
    return c.add("max_pool2d", c.tensor(rank=n + 2), **_window(c, n).attributes, ceil_mode=bool(c.value("ceil_mode")))


def _max_pool_with_indices(n: int) -> Translation:
    """The largest element of each window; where it is, is not supported."""
    return lambda c: (_largest(c, n), None)


def _avg_pool(n: int) -> Translation:
    """The mean of each window."""

    def translate(c: Call) -> Results:
        if c.value("divisor_override") is not None:
            c.fail("divisor_override is not supported", "multiply the result in the module")
        return c.add(
            "avg_pool2d",
            c.tensor(rank=n + 2),
            **_window(c, n).attributes,
            ceil_mode=bool(c.value("ceil_mode")),
            count_include_pad=bool(c.value("count_include_pad", True)),
        )

    return translate


def _adaptive_avg_pool(n: int) -> Translation:
    """The means of as many windows as are asked for: equal ones."""

    def translate(c: Call) -> Results:
        x, wanted = c.tensor(rank=n + 2), c.ints("output_size", n)
        if all(w == 1 for w in wanted):
            return c.add("reduce_mean", x, axes=spatial_axes(x), keepdims=True)
        sizes = static_sizes(x.shape[2:])
        if sizes is None or any(s % w for s, w in zip(sizes, wanted, strict=True)):
            c.fail(
                f"windows of unequal sizes, {tuple(wanted)} of {x!r}, are not supported", "use avg_pool with a kernel"
            )
        kernel = [s // w for s, w in zip(sizes, wanted, strict=True)]
        return c.add("avg_pool2d", x, **Window(kernel, kernel, [1] * n, [0] * (2 * n)).attributes)

    return translate


for _n in (1, 2, 3):
    translates(f"max_pool{_n}d")(_max_pool(_n))
    translates(f"avg_pool{_n}d")(_avg_pool(_n))
    translates(f"adaptive_avg_pool{_n}d")(_adaptive_avg_pool(_n))
for _n in (2, 3):
    translates(f"max_pool{_n}d_with_indices")(_max_pool_with_indices(_n))
    translates(f"_adaptive_avg_pool{_n}d")(_adaptive_avg_pool(_n))
