"""Computes products and convolutions of dequantised tensors in integers, and scales their sums.

    conv2d((x - zx) * sx, (w - zw) * sw, b)     becomes     cast(conv2d(x - zx, w - zw, b / (sx * sw))) * (sx * sw)

Integers are added without error, so the result is the exact one, rounded once by the scale (Jacob et al., "Quantization and
training of neural networks for efficient integer-arithmetic-only inference", CVPR 2018, section 2.2). A bias that is a whole
number of steps joins the sums. The scale that a sum is quantised by is divided out of its own at compile time, and operators
that only move or choose elements are applied to the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final, TypeAlias

import numpy as np

from weft.cost import WHOLE_STEPS
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.passes.quantized.quantized_patterns import (
    Dequantized,
    call_of,
    centred,
    dequantize,
    dequantized,
    known,
    operand_of,
    quantized_by,
)
from weft.graph.rewriting.call_patterns import is_known
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.support.dtypes import f32, i32, u8

MOST_SUMMED: Final = i32.int_range[1] // u8.int_range[1] ** 2
"""Products of bytes whose sum is certainly in the range of 32 bits."""

MOST_EXACT: Final = int(1 / np.finfo(np.float32).eps) // u8.int_range[1] ** 2
"""Products of bytes, less their zero points, that float32 certainly adds without error."""


def fold_dequantization(graph: Graph) -> Graph:
    """Returns *graph* with contractions of dequantised tensors computed in integers."""

    def fold(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        rule = _RULES.get(node.op)
        made = None if rule is None or len(node.outputs) != 1 else rule(new, node, inputs)
        return None if made is None else [made]

    return rewrite_graph(graph, fold)


def _convolution(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Computes a convolution over images in integers."""
    x, w, *rest = inputs
    a, b = dequantized(x), dequantized(w)
    if a is None or b is None or not a.is_uniform or x is None or w is None or x.rank != 4:
        return None
    scale = _lined_up(new, b.scale, 0, (node.output.shape[1], 1, 1), w)
    most = MOST_SUMMED if node.attribute("group") == 1 else MOST_EXACT
    if scale is None or not may_sum(w, first=1, most=most):
        return None

    def sums(bias: Value | None) -> Value:
        operands = [a.integers.value, b.integers.value, bias]
        return new.add("conv2d", operands, source=node.source, **node.keywords)

    return _scaled(new, node, sums, new.add("mul", [a.scale, scale]), rest[0] if rest else None, per_channel=True)


def _gemm(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Computes a product of two matrices, plus a bias, in integers."""
    a, b, *rest = inputs
    plain = node.attribute("alpha") == node.attribute("beta") == 1.0 and not node.attribute("trans_a")
    x, y = dequantized(a), dequantized(b)
    if not plain or x is None or y is None or b is None or not x.is_uniform:
        return None
    trans = bool(node.attribute("trans_b"))
    scale = _lined_up(new, y.scale, 0 if trans else 1, (node.output.shape[1],), b)
    if scale is None or not may_sum(b, first=0, axes=(1 if trans else 0,)):
        return None
    right = _transposed(new, y, node) if trans else y.integers.value
    return _product(new, node, (x, right), new.add("mul", [x.scale, scale]), rest[0] if rest else None)


def _transposed(new: Graph, y: Dequantized, node: Node) -> Value:
    """Returns the integers of a matrix, transposed as bytes; a zero point for each column becomes one for each row."""
    q, zero = y.integers.q, y.integers.zero
    wide = new.add("cast", [new.add("transpose", [q], perm=(1, 0), source=node.source)], dtype=i32)
    if zero is None:
        return wide
    turned = new.add("transpose", [zero], perm=(1, 0)) if zero.rank == 2 else zero
    return new.add("sub", [wide, turned])


def _matmul(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Computes a product of matrices in integers."""
    a, b = inputs
    x, y = dequantized(a), dequantized(b)
    if x is None or y is None or b is None or b.rank < 2 or not x.is_uniform:
        return None
    scale = _lined_up(new, y.scale, b.rank - 1, (node.output.shape[-1],), b)
    if scale is None or not may_sum(b, first=0, axes=(b.rank - 2,)):
        return None
    return _product(new, node, (x, y.integers.value), new.add("mul", [x.scale, scale]), None)


def _product(new: Graph, node: Node, factors: tuple[Dequantized, Value], scale: Value, bias: Value | None) -> Value:
    def sums(whole: Value | None) -> Value:
        made = new.add("matmul", [factors[0].integers.value, factors[1]], source=node.source)
        return made if whole is None else new.add("add", [made, whole], source=node.source)

    return _scaled(new, node, sums, scale, bias, per_channel=False)


def _scaled(
    new: Graph,
    node: Node,
    sums: Callable[[Value | None], Value],
    scale: Value,
    bias: Value | None,
    *,
    per_channel: bool,
) -> Value:
    """Returns *sums* of integers times *scale*, plus *bias*: in whole steps of the scale if it is a constant of such."""
    whole = None if bias is None else _in_steps(new, bias, scale)
    exact = new.add("cast", [sums(whole)], dtype=f32, source=node.source)
    last = node.output.name if bias is None or whole is not None else ""
    made = new.add("mul", [exact, scale], source=node.source, name=last)
    if bias is None or whole is not None:
        return made
    shape = (*bias.shape, 1, 1) if per_channel else bias.shape
    added = new.add("reshape", [bias], shape=shape) if per_channel else bias
    return new.add("add", [made, added], source=node.source, name=node.output.name)


def _in_steps(new: Graph, bias: Value, scale: Value) -> Value | None:
    """Returns a constant bias as integers in units of *scale*; None where it is not known, or no whole number of them."""
    factors = call_of("mul", scale)
    constants = [f for f in factors if is_known(f)]
    if not is_known(bias) or len(constants) < len(factors) or bias.rank != 1:
        return None
    step = np.asarray(1.0)
    for f in constants:
        step = step * f.array.astype(np.float64).reshape(-1)
    steps = bias.array.astype(np.float64) / step
    whole = np.round(steps)
    misses = np.abs(steps - whole) > WHOLE_STEPS * np.maximum(1.0, np.abs(whole))
    if misses.any() or np.abs(whole).max(initial=0) >= 1 << 30:
        return None
    return new.constant(whole.astype(np.int32), f"{bias.name}_steps")


def _lined_up(new: Graph, scale: Value, axis: int, shape: Sequence[object], of: Value) -> Value | None:
    """Returns the scale of a weight, one for all or one for each index of *axis*, in *shape*; None for any other scale."""
    if scale.rank == 0:
        return scale
    sizes = [s for s in scale.static_shape or () if s != 1]
    if scale.static_shape is None or len(sizes) > 1:
        return None
    from_last = of.rank - axis
    if sizes and (scale.rank < from_last or scale.static_shape[scale.rank - from_last] != sizes[0]):
        return None
    return new.add("reshape", [scale], shape=tuple(shape) if sizes else ())


def may_sum(w: Value, first: int, axes: Sequence[int] | None = None, most: int = MOST_SUMMED) -> bool:
    """Tells whether *w* has no more than *most* elements along *axes*, by default all from *first* on."""
    sizes = w.static_shape
    if sizes is None:
        return False
    return prod(sizes[first:] if axes is None else [sizes[a] for a in axes]) <= most


def _moved(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Moves or chooses bytes, and dequantises the result."""
    x = inputs[0]
    found = dequantized(x)
    if found is None or not found.is_uniform or not (known(found.scale) or 0.0) > 0:
        return None
    made = new.add(node.op, [found.integers.q, *inputs[1:]], source=node.source, **node.keywords)
    return dequantize(new, made, found, node.source)


def _requantized(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Divides the scale of a sum of integers by the one that it is quantised by."""
    x, by = inputs
    rectified = operand_of("relu", x)
    exact, scale = call_of("mul", rectified or x) or (None, None)
    summed = operand_of("cast", exact)
    if exact is None or summed is None or summed.dtype is not i32 or centred(summed) is not None:
        return None
    if exact.dtype is not f32 or by is None or not (known(by) or 0.0) > 0:
        return None
    ratio = new.add("div", [scale, by], source=node.source)
    if rectified is None:
        return new.add("mul", [exact, ratio], source=node.source, name=node.output.name)
    return new.add("relu", [new.add("mul", [exact, ratio])], source=node.source, name=node.output.name)


def _quantized_again(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Returns the bytes that were dequantised, where they are quantised again by the same scale and zero point."""
    found = quantized_by(inputs[0], node.output.dtype)
    x = None if found is None else dequantized(found[0])
    if found is None or x is None or x.integers.q.dtype is not node.output.dtype:
        return None
    zero = 0.0 if x.integers.zero is None else known(x.integers.zero)
    scale = known(x.scale)
    same = zero is not None and scale is not None and known(found[1]) == scale and known(found[2]) == zero
    return x.integers.q if same else None


_Rule: TypeAlias = Callable[[Graph, Node, Inputs], Value | None]
_RULES: Final[dict[str, _Rule]] = {
    "conv2d": _convolution,
    "gemm": _gemm,
    "matmul": _matmul,
    "max_pool2d": _moved,
    "reshape": _moved,
    "transpose": _moved,
    "div": _requantized,
    "cast": _quantized_again,
}
