"""Windows over images of symbolic sizes, of which there are ceil(size / stride) ("SAME" padding).

How much is added, and how much of it before an image, depends on the remainder of its size by the stride; so the padded image is
read by indices that are computed when the model runs: pixel k of it is pixel k - before of the image, or padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.windows import Window, same_pads
from weft.ir import Const, Expr
from weft.ops import simplify_size
from weft.support.dtypes import i64


def same_padded(
    b: Builder,
    x: Operand,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    around: float = 0.0,
    *,
    lower: bool = False,
) -> tuple[Operand, list[int]]:
    """Returns images [N, C, *sizes], padded with *around* along symbolic sizes that have strides, and the pads that are left.

    The odd one goes after, or (*lower*) before.
    """
    late = [k for k, s in enumerate(strides) if s > 1 and not isinstance(x.shape[2 + k], Const)]
    steps = [1 if k in late else s for k, s in enumerate(strides)]
    pads = same_pads(b, kernel, steps, dilations, x.shape[2:], lower=lower)
    for k in late:
        pads[k] = pads[len(kernel) + k] = 0
        x = _padded(b, x, 2 + k, dilations[k] * (kernel[k] - 1) + 1, strides[k], around, lower=lower)
    return x, pads


def _padded(b: Builder, x: Operand, axis: int, reach: int, stride: int, around: float, *, lower: bool) -> Operand:
    """Returns *x* padded along one dimension so that windows of *reach* elements, *stride* apart, fill it."""
    size = x.shape[axis]
    whole: Expr = simplify_size(((size + (stride - 1)) // stride - 1) * stride + reach)
    zero = b.scalar(0, i64)
    missing = b.add("maximum", b.add("sub", b.size(whole), b.size(size)), zero)
    before = b.add("div", b.add("add", missing, b.scalar(int(lower), i64)), b.scalar(2, i64))
    at = b.add("sub", b.add("range", start=0, size=whole, step=1), before)
    inside = b.add("logical_and", b.add("less_equal", zero, at), b.add("less", at, b.size(size)))
    near = b.add("maximum", b.add("minimum", at, b.size(size - 1)), zero)
    inside = b.reshape(inside, (whole, *[1] * (x.rank - axis - 1)))
    return b.add("where", inside, b.add("gather", x, near, axis=axis), b.scalar(around, x.dtype))


def same_pool(
    b: Builder,
    op: str,
    x: Operand,
    kernel: list[int],
    strides: list[int],
    around: float,
    dilations: list[int] | None = None,
    *,
    lower: bool = False,
) -> Operand:
    """Returns the pool *op* of images [N, C, *sizes] of any sizes; elements of the padding, the number *around*, do not count."""
    apart = dilations or [1] * len(kernel)
    is_mean = op == "avg_pool2d"
    made, pads = same_padded(b, x, kernel, strides, apart, 0.0 if is_mean else around, lower=lower)
    attributes: dict[str, Any] = Window(kernel, strides, apart, pads).attributes
    y = b.add(op, made, **attributes)
    if not is_mean or made is x:
        return y
    one = b.add("full", shape=(1, 1, *x.shape[2:]), value=1, dtype=x.dtype)
    share = b.add(op, same_padded(b, one, kernel, strides, apart, lower=lower)[0], **attributes)
    return b.add("div", y, share)
