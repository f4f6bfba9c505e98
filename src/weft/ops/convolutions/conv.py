"""Convolutions: direct, over channels in blocks, depthwise, and transposed by the definition.

A convolution is three formulas: the input padded, the contraction, and the bias added; a schedule decides where each is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import Expr, all_of, const, prove, select
from weft.ops.output_channels import Contraction, along, through_groups
from weft.ops.registry import operator
from weft.ops.shapes import check_shape, multiplied, same_size, show_shape, size_bounds, sized
from weft.support.errors import TypeMismatch
from weft.te import ReduceAxis, Tensor, as_stored, compute, reduce_axis, sum_

Ints = Sequence[int]


def check_window(what: str, spatial: int, kernel: int, strides: Ints, pads: Ints, dilations: Ints) -> None:
    """Raises `TypeMismatch` unless a window is given for each of the *spatial* dimensions."""
    if not spatial == kernel == len(strides) == len(dilations) == len(pads) // 2:
        raise TypeMismatch(
            f"{what}: a kernel of {kernel} dimensions, strides {tuple(strides)}, pads {tuple(pads)} and dilations "
            f"{tuple(dilations)} over {spatial} dimensions"
        )
    if min([*strides, *dilations], default=1) < 1:
        raise TypeMismatch(f"{what}: strides {tuple(strides)} and dilations {tuple(dilations)} must be at least 1")


def pad_spatial(x: Tensor, pads: Ints, first: int = 2, value: float | Tensor = 0.0, name: str = "pad") -> Tensor:
    """Pads the dimensions from *first* on: `pads` has a number before each, then a number after each, as in ONNX.

    A tensor *value* is a scalar of the type of *x*.
    """
    n = len(pads) // 2
    if not any(pads):
        return x
    before = dict(zip(range(first, first + n), pads[:n], strict=True))
    after = dict(zip(range(first, first + n), pads[n:], strict=True))
    shape = sized(*[s + before.get(d, 0) + after.get(d, 0) for d, s in enumerate(x.shape)])

    def padded(t: Tensor, *i: Expr) -> Expr:
        at = [v - before.get(d, 0) for d, v in enumerate(i)]
        below = [before[d] <= i[d] for d in before if before[d]]
        above = [at[d] < t.shape[d] for d in after if after[d]]
        filled = value[()] if isinstance(value, Tensor) else const(value, t.dtype)
        return select(all_of(below + above), t[tuple(at)], filled)

    return as_stored(x, lambda t: compute(shape, lambda *i: padded(t, *i), name, dtype=t.dtype))


def window_size(size: Expr, kernel: Expr, stride: int, dilation: int) -> Expr:
    """Returns the number of windows along a padded dimension; raises `TypeMismatch` where not even one fits."""
    count = sized((size - dilation * (kernel - 1) - 1) // stride + 1)[0]
    check_count(count, size)
    return count


def window_sizes(sizes: Sequence[Expr], kernel: Sequence[Expr], strides: Ints, dilations: Ints) -> list[Expr]:
    """Returns the number of windows along each padded dimension, as `window_size` does."""
    return [window_size(s, k, st, d) for s, k, st, d in zip(sizes, kernel, strides, dilations, strict=True)]


def check_count(count: Expr, size: Expr) -> None:
    """Raises `TypeMismatch` where there is certainly no window along a dimension of *size*, padding included."""
    if prove(count < 1, size_bounds(count)):
        raise TypeMismatch(f"the window is larger than the dimension of {show_shape((size,))} that it moves along")


def add_bias(y: Tensor, bias: Tensor | None, at: Callable[[tuple[Expr, ...]], tuple[Expr, ...]]) -> Tensor:
    """Adds *bias*, read at the index that *at* makes of the result's."""
    if bias is None:
        return y
    check_shape("the bias of a convolution", bias.shape, at(y.shape))
    return compute(y.shape, lambda *i: y[i] + bias[at(i)], "bias", dtype=y.dtype)


def _check_weight(x: Expr, w: Expr, group: int, what: str) -> None:
    if not same_size(x, w * group):
        raise TypeMismatch(
            f"{what}: the input has {show_shape((x,))} channels, but the weight takes {show_shape((w,))} a group ({group})"
        )


@operator("conv2d", contraction=Contraction(1, along(0)))
def conv2d(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Ints = (1, 1),
    pads: Ints = (0, 0, 0, 0),
    dilations: Ints = (1, 1),
    group: int = 1,
) -> Tensor:
    """Convolution of x [N, C, *S] with w [OC, C/group, *K] to [N, OC, *S'], for any number of spatial dimensions."""
    check_window("conv2d", x.rank - 2, w.rank - 2, strides, pads, dilations)
    _check_weight(x.shape[1], w.shape[1], group, "conv2d")
    p = pad_spatial(x, pads)
    outs = window_sizes(p.shape[2:], w.shape[2:], strides, dilations)
    ic = reduce_axis(w.shape[1], "ic")
    ks = [reduce_axis(k, f"k{'yxz'[n] if len(outs) < 4 else n}") for n, k in enumerate(w.shape[2:])]
    per_group = w.shape[0] // group

    def contraction(*i: Expr) -> object:
        at = [o * s + k * d for o, k, s, d in zip(i[2:], ks, strides, dilations, strict=True)]
        c = ic if group == 1 else (i[1] // per_group) * w.shape[1] + ic
        return sum_(p[(i[0], c, *at)] * w[(i[1], ic, *ks)], [ic, *ks])

    y = compute((x.shape[0], w.shape[0], *outs), contraction, "conv2d", dtype=x.dtype)
    return add_bias(y, bias, lambda i: (i[1],))


@operator("conv2d_blocked")
def conv2d_blocked(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Ints = (1, 1),
    pads: Ints = (0, 0, 0, 0),
    dilations: Ints = (1, 1),
    group: int = 1,
) -> Tensor:
    """Convolution of x [N, C/c, *S, c] with w [OC/o, C/group/i, *K, i, o] to [N, OC/o, *S', o], for any number of dimensions.

    The blocks c and i are the same; bias is [OC/o, o].
    """
    check_window("conv2d_blocked", x.rank - 3, w.rank - 4, strides, pads, dilations)
    _check_weight(x.shape[1], w.shape[1], group, "conv2d_blocked")
    p = pad_spatial(x, pads)
    outs = window_sizes(p.shape[2:-1], w.shape[2:-2], strides, dilations)
    icb, ic = reduce_axis(w.shape[1], "icb"), reduce_axis(w.shape[-2], "ic")
    ks = _taps(w.shape[2:-2])
    per_group = w.shape[0] // group

    def contraction(n: Expr, ocb: Expr, *i: Expr) -> object:
        *places, oc = i
        c = icb if group == 1 else (ocb // per_group) * w.shape[1] + icb
        at = [o * s + k * d for o, k, s, d in zip(places, ks, strides, dilations, strict=True)]
        return sum_(p[(n, c, *at, ic)] * w[(ocb, icb, *ks, ic, oc)], [icb, *ks, ic])

    shape, names = (x.shape[0], w.shape[0], *outs, w.shape[-1]), ("n", "ocb", *_along("o", len(outs)), "oc")
    y = compute(shape, contraction, "conv2d_blocked", dtype=x.dtype, axis_names=names)
    return add_bias(y, bias, lambda i: (i[1], i[-1]))


def _taps(kernel: Sequence[Expr]) -> list[ReduceAxis]:
    """Returns the axes of a window, the last one along a row."""
    return [reduce_axis(size, name) for size, name in zip(kernel, _along("k", len(kernel)), strict=True)]


def _along(prefix: str, count: int) -> list[str]:
    """Returns names for axes along *count* spatial dimensions, the last one along a row."""
    return [f"{prefix}{d}" for d in ("z", "y", "x")[-count:]]


@operator("depthwise_conv2d_blocked")
def depthwise_conv2d_blocked(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Ints = (1, 1),
    pads: Ints = (0, 0, 0, 0),
    dilations: Ints = (1, 1),
) -> Tensor:
    """Convolution of each channel of x [N, C/c, *S, c] with its own w [C/c, *K, c]; bias [C/c, c]."""
    check_window("depthwise_conv2d_blocked", x.rank - 3, w.rank - 2, strides, pads, dilations)
    p = pad_spatial(x, pads)
    outs = window_sizes(p.shape[2:-1], w.shape[1:-1], strides, dilations)
    ks = _taps(w.shape[1:-1])

    def contraction(n: Expr, cb: Expr, *i: Expr) -> object:
        *places, c = i
        at = [o * s + k * d for o, k, s, d in zip(places, ks, strides, dilations, strict=True)]
        return sum_(p[(n, cb, *at, c)] * w[(cb, *ks, c)], ks)

    shape, names = (x.shape[0], x.shape[1], *outs, x.shape[-1]), ("n", "cb", *_along("o", len(outs)), "c")
    y = compute(shape, contraction, "depthwise_conv2d", dtype=x.dtype, axis_names=names)
    return add_bias(y, bias, lambda i: (i[1], i[-1]))


@operator("conv_transpose2d", contraction=Contraction(1, through_groups))
def conv_transpose2d(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Ints = (1, 1),
    pads: Ints = (0, 0, 0, 0),
    dilations: Ints = (1, 1),
    group: int = 1,
    output_padding: Ints = (0, 0),
) -> Tensor:
    """Transposed convolution of x [N, C, *S] with w [C, OC/group, *K] to [N, OC, *S'], for any number of spatial dimensions."""
    check_window("conv_transpose2d", x.rank - 2, w.rank - 2, strides, pads, dilations)
    if not same_size(x.shape[1], w.shape[0]):
        raise TypeMismatch(f"conv_transpose2d: {show_shape(x.shape)} has not the channels of {show_shape(w.shape)}")
    per_in, per_out = x.shape[1] // group, w.shape[1]
    ic = reduce_axis(per_in, "ic")
    ks = [reduce_axis(k, f"k{'yxz'[n]}") for n, k in enumerate(w.shape[2:])]
    outs = transposed_sizes(x.shape[2:], w.shape[2:], strides, pads, dilations, output_padding)

    def contraction(*i: Expr) -> object:
        oc = i[1]
        at = [o + p - k * d for o, p, k, d in zip(i[2:], pads, ks, dilations, strict=False)]
        inside = [
            c for v, size, s in zip(at, x.shape[2:], strides, strict=True) for c in (v >= 0, v < size * s, v % s <= 0)
        ]
        c = ic if group == 1 else (oc // per_out) * per_in + ic
        read = x[(i[0], c, *[v // s for v, s in zip(at, strides, strict=True)])]
        value = select(all_of(inside), read, const(0, x.dtype))
        return sum_(value * w[(c, oc if group == 1 else oc % per_out, *ks)], [ic, *ks])

    shape = (x.shape[0], sized(per_out * group)[0], *outs)
    y = compute(shape, contraction, "conv_transpose2d", dtype=x.dtype)
    return add_bias(y, bias, lambda i: (i[1],))


def transposed_sizes(
    sizes: Sequence[Expr], kernel: Sequence[Expr], strides: Ints, pads: Ints, dilations: Ints, extra: Ints
) -> tuple[Expr, ...]:
    """Returns the sizes of a transposed convolution's output; raises `TypeMismatch` where the pads leave nothing."""
    found = [
        multiplied(s - 1, strides[d]) + dilations[d] * (kernel[d] - 1) + 1 + extra[d] - pads[d] - pads[d + len(sizes)]
        for d, s in enumerate(sizes)
    ]
    counts = sized(*found)
    if any(prove(n < 1, size_bounds(n)) for n in counts):
        raise TypeMismatch(f"a transposed convolution to {show_shape(counts)}: the pads take away all there is")
    return counts
