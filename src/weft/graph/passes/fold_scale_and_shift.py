"""Folds a scale and a shift for each output channel into the weights and the bias of the contraction before it.

    y = conv2d(x, w, b); z = batch_norm(y, ...)     becomes     z = conv2d(x, w * scale, b * scale + shift)

Batch normalization, and `mul`, `div`, `add`, `sub` with a constant, are such scales and shifts. The new weights are computed
in double and rounded once (Jacob et al., "Quantization and training of neural networks", CVPR 2018, section 3.2, fold them
alike). A batch normalization with no contraction before it becomes one multiplication and one addition; so does one of a
convolution by statistics that are inputs, since channels in blocks are multiplied and added to as they lie.

Weights of 16 bits would be rounded visibly, or overflow: they are scaled only where that is exact. A batch normalization of such
values becomes one `scale_and_shift` by float32 constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.cost import SCALED_PIECE
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Array, Constant, Deferred, Value
from weft.graph.rewriting.call_patterns import is_known
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE, Add, Binary, Const, Div, Mul, Sub, as_expr
from weft.te import is_narrow

WEIGHT, BIAS = 1, 2
"""Where a contraction takes its weight and its bias."""


@dataclass(frozen=True)
class Affine:
    """`scale * y + shift` of the value *y*; both are float64, of one element or one for each channel."""

    y: Value
    scale: Array
    shift: Array


def fold_scale_and_shift(graph: Graph) -> Graph:
    """Returns *graph* with scales and shifts in the weights, where these are constant and nothing else uses them."""
    users = graph.users()

    def fold(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        found = _affine(node, inputs)
        if found is None:
            return [_by_vectors(new, node, inputs)] if _follows_convolution(node) else None
        before = next(v for v in node.inputs if v is not None and not isinstance(v, Constant))
        alone = len(users[before]) == 1 and before not in graph.outputs
        made = _into_contraction(new, node, found, users) if alone else None
        if made is None and node.op == "batch_norm":
            made = _as_arithmetic(new, node, found)
        return None if made is None else [made]

    return rewrite_graph(graph, fold)


def _affine(node: Node, inputs: Inputs) -> Affine | None:
    """Returns *node* as a scale and a shift of a value by constants; None where it is another function."""
    if node.op == "batch_norm":
        return _of_batch_norm(node, inputs)
    arithmetic = node.operator.arithmetic
    if arithmetic not in _OF_ARITHMETIC or not node.output.dtype.is_float:
        return None
    a, b = inputs
    first = isinstance(a, Constant)
    constant, y = (a, b) if first else (b, a)
    if not is_known(constant) or y is None or isinstance(y, Constant):
        return None
    channel = _per_channel(constant, y)
    if channel is None or (first and arithmetic is Div):
        return None
    sign = np.float64(-1.0 if first and arithmetic is Sub else 1.0)
    scale, shift = _OF_ARITHMETIC[arithmetic](channel)
    return Affine(y, scale * sign, shift * sign)


_OF_ARITHMETIC: Final[dict[type[Binary] | None, Callable[[Array], tuple[Array, Array]]]] = {
    Mul: lambda c: (c, np.zeros(1)),
    Div: lambda c: (1.0 / c, np.zeros(1)),
    Add: lambda c: (np.ones(1), c),
    Sub: lambda c: (np.ones(1), -c),
}


def _of_batch_norm(node: Node, inputs: Inputs) -> Affine | None:
    y, *statistics = inputs
    if y is None or not all(is_known(v) for v in statistics):
        return None
    gamma, beta, mean, variance = [_double(v) for v in statistics]
    scale = gamma / np.sqrt(variance + node.attribute("epsilon"))
    return Affine(y, scale, beta - mean * scale)


def _double(v: Value | None) -> Array:
    assert isinstance(v, Constant)  # asked for by is_known
    return v.array.astype(np.float64)


def _channel_axis(producer: Node | None) -> int:
    """Returns the dimension of the output channels of the contraction *producer*; 1 for anything else."""
    made_by = None if producer is None else producer.operator.contraction
    return 1 if made_by is None else made_by.channel_axis


def _per_channel(constant: Value | None, y: Value) -> Array | None:
    """Returns the values of a constant that differs along the channels of *y* only, or not at all; else None."""
    assert isinstance(constant, Constant)
    if constant.size == 1:
        return _double(constant).reshape(1)
    if constant.rank > y.rank or y.rank < 2:
        return None
    axis = _channel_axis(y.producer) % y.rank
    shape = (1,) * (y.rank - constant.rank) + constant.extents
    others = [n for d, n in enumerate(shape) if d != axis]
    if set(others) - {1} or y.shape[axis] is not as_expr(constant.size):
        return None
    return _double(constant).reshape(-1)


def _into_contraction(new: Graph, node: Node, affine: Affine, users: dict[Value, list[Node]]) -> Value | None:
    """Returns the output of the contraction that makes the value scaled, with *affine* in its weight and bias."""
    made = affine.y.producer
    if made is None or made.operator.contraction is None:
        return None
    weight = made.inputs[WEIGHT]
    bias = _bias_of(made)
    if node.op == "batch_norm" and _channel_axis(made) % affine.y.rank != 1:
        return None
    scales = bool((affine.scale != 1.0).any())
    if not isinstance(weight, Constant) or bias is None or (scales and len(users.get(weight, ())) > 1):
        return None
    if is_narrow(weight.dtype) and not weight.is_fixed:  # its elements tell whether the result needs rounding
        return None
    vector = bias * affine.scale + affine.shift
    if scales:
        weight = _scaled(made, weight, affine.scale)
    if is_narrow(weight.dtype) and not _is_exact(made, weight, affine, vector):
        return None
    if made.op == "matmul":
        return _after_matmul(new, node, affine, weight) if scales else None
    return _with_bias(new, node, made, weight, vector)


def _is_exact(made: Node, weight: Constant, affine: Affine, bias: Array) -> bool:
    """Tells whether the *weight* of *made* times a scale, and the new *bias*, need no rounding."""
    if (np.abs(np.frexp(affine.scale)[0]) != 0.5).any():  # else only exponents change, unless they leave their range
        return False
    view, factor = _lined_up(made, _double(made.inputs[WEIGHT]), affine.scale)
    with np.errstate(over="ignore"):
        scaled, held = (view * factor).reshape(weight.extents), _double(weight)
        return np.array_equal(scaled, held) and np.array_equal(bias, bias.astype(weight.dtype.numpy).astype(np.float64))


def _bias_of(made: Node) -> Array | None:
    """Returns the bias of a contraction as a float64 vector, zero where it has none; None where it is not a known vector."""
    bias = made.inputs[BIAS] if len(made.inputs) > BIAS else None
    if bias is None:
        return np.zeros(1)
    if not is_known(bias) or set(bias.extents[:-1]) - {1}:
        return None
    return _double(bias).reshape(-1) * (made.attribute("beta") if made.op == "gemm" else 1.0)


def _after_matmul(new: Graph, node: Node, affine: Affine, weight: Constant) -> Value:
    """Multiplies with the scaled weight, and adds the shift, since a matrix product has no bias."""
    made = affine.y.producer
    assert made is not None  # checked by _into_contraction
    y = new.append(made.with_inputs((made.inputs[0], weight))).output
    if not affine.shift.any():
        return y
    return new.add("add", [y, Constant(f"{weight.name}_shift", affine.shift.astype(y.dtype.numpy))], source=node.source)


def _with_bias(new: Graph, node: Node, made: Node, weight: Constant, bias: Array) -> Value | None:
    """Repeats the contraction *made* with other weights, under the name of *node*, whose value it now computes."""
    size = made.output.shape[_channel_axis(made)]
    if not isinstance(size, Const):
        return None
    vector = Constant(f"{weight.name}_bias", np.broadcast_to(bias, (int(size.value),)).astype(weight.dtype.numpy))
    attributes = {**made.keywords, **({"beta": 1.0} if made.op == "gemm" else {})}
    source = ", ".join(s for s in (made.source, node.source) if s)
    return new.add(made.op, [made.inputs[0], weight, vector], source=source, name=node.output.name, **attributes)


def _as_arithmetic(new: Graph, node: Node, affine: Affine) -> Value:
    """Writes a batch normalization as a multiplication and an addition, of 16-bit floats as one operator."""
    shape = (-1, *[1] * (affine.y.rank - 2))
    if is_narrow(affine.y.dtype):
        wide = [new.constant(a.astype(np.float32).reshape(shape)) for a in (affine.scale, affine.shift)]
        return new.add("scale_and_shift", [affine.y, *wide], source=node.source, name=node.output.name)
    scale, shift = (a.astype(affine.y.dtype.numpy).reshape(shape) for a in (affine.scale, affine.shift))
    y = new.add("mul", [affine.y, new.constant(scale)], source=node.source)
    return new.add("add", [y, new.constant(shift)], source=node.source, name=node.output.name)


def _follows_convolution(node: Node) -> bool:
    """Tells whether *node* is a batch normalization of what a convolution computes."""
    made = node.inputs[0].producer if node.op == "batch_norm" and node.inputs[0] is not None else None
    return made is not None and made.operator.is_convolution and not is_narrow(node.output.dtype)


def _by_vectors(new: Graph, node: Node, inputs: Inputs) -> Value:
    """Writes a batch normalization by statistics that are no constants as a multiplication and an addition."""
    y, gamma, beta, mean, variance = inputs
    assert y is not None  # all operands are there
    spread = new.add("sqrt", [new.add("add", [variance, _scalar(new, y, node.attribute("epsilon"))])])
    scale = new.add("div", [gamma, spread], source=node.source)
    shift = new.add("sub", [beta, new.add("mul", [mean, scale])], source=node.source)
    channels = (y.shape[1], *[ONE] * (y.rank - 2))
    scale, shift = (new.add("reshape", [v], shape=channels) for v in (scale, shift))
    made = new.add("mul", [y, scale], source=node.source)
    return new.add("add", [made, shift], source=node.source, name=node.output.name)


def _scalar(new: Graph, like: Value, number: float) -> Value:
    return new.constant(np.asarray(number, like.dtype.numpy))


def _scaled(made: Node, weight: Constant, scale: Array) -> Constant:
    """Returns a contraction's weight times *scale*."""
    return Deferred(
        weight.name, weight.type, lambda out: _scale(made, weight.array, scale, out), is_fixed=weight.is_fixed
    )


def _scale(made: Node, w: Array, scale: Array, out: Array) -> None:
    """Writes a weight times *scale*, computed in double and rounded once, a piece that fits a cache at a time."""
    view, factor = _lined_up(made, w, scale)
    scaled = out.reshape(view.shape)
    rows = max(1, SCALED_PIECE * len(view) // max(1, view.size))
    for begin in range(0, len(view), rows):
        piece = slice(begin, begin + rows)
        scaled[piece] = view[piece].astype(np.float64) * (factor[piece] if len(factor) > 1 else factor)


def _lined_up(made: Node, w: Array, scale: Array) -> tuple[Array, Array]:
    """Returns the weight of the contraction *made*, and factors for its output channels, in shapes that broadcast."""
    contraction = made.operator.contraction
    assert contraction is not None  # asked for by _into_contraction
    return contraction.line_up(made.attribute, w, scale)
