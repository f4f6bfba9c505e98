"""Replaces calls by cheaper ones with the same result.

    y = transpose(transpose(x, perm=(0, 2, 1)), perm=(0, 2, 1))     becomes     y = x
    y = power(x, 2.0)                                               becomes     y = mul(x, x)
    a, b = split(x, axis=0, sizes=(2, 3))                           becomes     a = slice(x, ...); b = slice(x, ...)
    y = conv2d(pad(x, pads=(0, 0, 1, 1, 0, 0, 1, 1)), w)            becomes     y = conv2d(x, w, pads=(1, 1, 1, 1))

The one change of a result beyond rounding is that `x + 0` keeps a negative zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np

from weft.cost import LARGEST_POWER
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Deferred, Value
from weft.graph.fusion.node_facts import is_plain_map, is_rename, keeps_order
from weft.graph.rewriting.call_patterns import is_known, untransposed
from weft.graph.rewriting.rewriter import Inputs, Rule, rewrite_graph
from weft.ir import ONE, Const, Expr
from weft.support.dtypes import f32
from weft.te import is_narrow

Simplify: TypeAlias = Callable[[Graph, Node, Inputs], Value | None]


def simplify_calls(graph: Graph, *, exact: bool = False) -> Graph:
    """Returns *graph* simplified; with *exact*, without the rules that round differently."""
    return rewrite_graph(graph, _rule(exact))


def _rule(exact: bool) -> Rule:
    def apply(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if node.op == "split":
            return _split(new, node, inputs)
        rules = _RULES.get(node.op, ()) + (() if exact else _ROUNDING.get(node.op, ()))
        for rule in (*rules, _reshape_after_map):
            made = rule(new, node, inputs)
            if made is not None:
                return [made]
        return None

    return apply


def _same(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Drops an operator that gives back its only input."""
    x = inputs[0]
    return x if x is not None and x.type == node.output.type else None


def _only_one(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    return inputs[0] if len(inputs) == 1 else None


def _reshape(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Drops a reshape to the same shape, and merges it with one before it."""
    x = inputs[0]
    if x is None:
        return None
    made = reshaped(new, x, node.output.shape, node)
    return made if made is x or _is_reshape(x) else None


def _is_reshape(v: Value) -> bool:
    return v.producer is not None and v.producer.op == "reshape"


def reshaped(new: Graph, x: Value, shape: tuple[Expr, ...], node: Node) -> Value:
    """Returns *x* in another shape, under the name of *node*."""
    while _is_reshape(x) and x.producer is not None and x.producer.inputs[0] is not None:
        x = x.producer.inputs[0]
    return x if x.shape == shape else new.add("reshape", [x], shape=shape, source=node.source, name=node.output.name)


def _reshape_after_map(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Moves a map before the reshape of its operands, so that it fuses into their producer."""
    full = [v for v in inputs if v is not None and v.rank > 0]
    sources = {_source_shape(v) for v in full if not isinstance(v, Constant)}
    if len(sources) != 1 or None in sources or any(v.shape != node.output.shape for v in full):
        return None
    [shape] = sources
    if shape is None or len(node.outputs) != 1 or not is_plain_map(node):
        return None
    before = tuple([v if v is None or v.rank == 0 else reshaped(new, v, shape, node) for v in inputs])
    mapped = new.add(node.op, before, source=node.source, **node.keywords)
    return reshaped(new, mapped, node.output.shape, node)


def _source_shape(v: Value) -> tuple[Expr, ...] | None:
    """Returns the shape in which a reshaped value was computed; None where it was not."""
    source = v.producer.inputs[0] if v.producer is not None and v.producer.op == "reshape" else None
    return None if source is None or source.producer is None or is_rename(source.producer) else source.shape


def _transpose(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Merges two transpositions; one that moves only dimensions of extent one becomes a reshape."""
    x, perm = inputs[0], node.attribute("perm")
    if x is None:
        return None
    before = x.producer
    if before is not None and before.op == "transpose" and before.inputs[0] is not None:
        x, perm = before.inputs[0], tuple([before.attribute("perm")[p] for p in perm])
    if keeps_order(x, perm):
        return reshaped(new, x, node.output.shape, node)
    if x is inputs[0]:
        return None
    return new.add("transpose", [x], perm=perm, source=node.source, name=node.output.name)


def _gemm(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Takes a transposition of the right-hand matrix into the product."""
    a, b, *rest = inputs
    matrix, trans = (None, False) if b is None else untransposed(b)
    if not trans:
        return None
    attributes = {**node.keywords, "trans_b": not node.attribute("trans_b")}
    return new.add("gemm", [a, matrix, *rest], source=node.source, name=node.output.name, **attributes)


def _slice(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Drops a slice of everything, in order."""
    steps = node.attribute("steps")
    return _same(new, node, inputs) if steps is None or set(steps) <= {1} else None


def _pad(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    return None if any(node.attribute("pads")) else _same(new, node, inputs)


def _padded_before(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Takes zeros around the images of a convolution into its own padding, from before a transposition too."""
    padded, moved = _producer(inputs[0]), None
    if padded is not None and padded.op == "transpose":
        moved, padded = padded, _producer(padded.inputs[0])
    if padded is None or not _is_zero_pad(padded):
        return None
    perm = tuple(range(node.output.rank)) if moved is None else moved.attribute("perm")
    added = _spatial_pads(padded, perm)
    if added is None or not _is_within(node, added):
        return None
    images = padded.inputs[0]
    if moved is not None:
        images = new.add("transpose", [images], perm=perm, source=moved.source, name=moved.output.name)
    attributes = {**node.keywords, "pads": tuple([a + b for a, b in zip(node.attribute("pads"), added, strict=True)])}
    return new.add("conv2d", [images, *inputs[1:]], source=node.source, name=node.output.name, **attributes)


def _producer(v: Value | None) -> Node | None:
    return None if v is None else v.producer


def _is_zero_pad(node: Node) -> bool:
    is_of_zeros = node.op == "pad" and node.attribute("mode") == "constant" and not node.attribute("value")
    return is_of_zeros and min(node.attribute("pads")) >= 0


def _spatial_pads(padded: Node, perm: Sequence[int]) -> list[int] | None:
    """Returns how many pixels are added before images [N, C, *S], then behind; None where images or channels are."""
    pads = padded.attribute("pads")
    before, behind = ([pads[first + p] for p in perm] for first in (0, len(perm)))
    return None if any(before[:2]) or any(behind[:2]) else [*before[2:], *behind[2:]]


def _is_within(node: Node, added: Sequence[int]) -> bool:
    """Tells whether windows of a convolution reach over as many pixels as are *added* on each side: none has zeros alone."""
    kernel, dilations = node.inputs[1], node.attribute("dilations")
    taps = () if kernel is None else kernel.shape[2:]
    sides = zip(taps, dilations, added[: len(taps)], added[len(taps) :], strict=True)
    return all(isinstance(k, Const) and max(a, b) <= (_int(k) - 1) * d for k, d, a, b in sides)


def _tile(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    return _same(new, node, inputs) if set(node.attribute("repeats")) <= {1} else None


def _split(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
    """Makes each piece a slice, which fuses by itself."""
    axis, x = node.attribute("axis"), inputs[0]
    sizes = [v.shape[axis] for v in node.outputs]
    if x is None or not all(isinstance(s, Const) for s in sizes):
        return None
    pieces: list[Value] = []
    begin = 0
    for v, s in zip(node.outputs, sizes, strict=True):
        end = begin + _int(s)
        where = {"starts": (begin,), "ends": (end,), "axes": (axis,)}
        whole = v.type == x.type
        pieces.append(x if whole else new.add("slice", [x], source=node.source, name=v.name, **where))
        begin = end
    return pieces


def _gather(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Makes a gather at one known index a slice."""
    x, at = inputs
    if x is None or not isinstance(at, Constant) or at.size != 1:
        return None
    axis = node.attribute("axis") % x.rank
    size = x.shape[axis]
    if not isinstance(size, Const) or not -_int(size) <= at.array.item() < _int(size):
        return None
    begin = at.array.item() % _int(size)
    piece = new.add("slice", [x], source=node.source, starts=(begin,), ends=(begin + 1,), axes=(axis,))
    return reshaped(new, piece, node.output.shape, node)


def _constant_last(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Puts the constant operand of a commutative operator second, so that equal kernels look equal."""
    a, b = inputs
    if not isinstance(a, Constant) or isinstance(b, Constant):
        return None
    swapped = (b, a)
    for rule in _RULES[node.op]:
        if rule is not _constant_last and (made := rule(new, node, swapped)) is not None:
            return made
    return new.append(
        Node(node.operator, swapped, node.attributes, [node.output.type], [node.output.name], node.source)
    ).output


def _neutral(element: float) -> Simplify:
    """Returns the rule that drops an operator whose second operand is *element* throughout."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> Value | None:
        known = _all_equal(inputs[1])
        return _same(new, node, inputs) if known is not None and known == element else None

    return rule


def _all_equal(v: Value | None) -> float | None:
    """Returns the value of all elements of a constant or a filled tensor; None where they differ or are not known."""
    if v is not None and v.producer is not None and v.producer.op == "full":
        return float(v.producer.attribute("value") or 0)
    if not is_known(v) or isinstance(v, Deferred) or v.size == 0:
        return None
    first = v.array.flat[0]
    return float(first) if v.size == 1 or bool((v.array == first).all()) else None


def _extreme_of_equals(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Makes the largest, or the smallest, of equal elements one of them."""
    return _filled(new, node, _all_equal(inputs[0]))


def _comparison_of_equals(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Compares two tensors, of each of which all elements are equal, once."""
    a, b = _all_equal(inputs[0]), _all_equal(inputs[1])
    return None if a is None or b is None else _filled(new, node, a == b)


def _filled(new: Graph, node: Node, element: float | None) -> Value | None:
    y = node.output
    if element is None or not (y.dtype.is_float or y.dtype.is_bool):
        return None
    value = bool(element) if y.dtype.is_bool else element
    return new.add("full", [], shape=y.shape, value=value, dtype=y.dtype, source=node.source, name=y.name)


def _one_branch(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Takes the one operand of a choice that is taken throughout."""
    chosen = _all_equal(inputs[0])
    taken = None if chosen is None else inputs[1 if chosen else 2]
    return taken if taken is not None and taken.type == node.output.type else None


def _power(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Multiplies out small powers."""
    x, exponent = inputs[0], _all_equal(inputs[1])
    if x is None or exponent is None or x.type != node.output.type or not exponent.is_integer():
        return None
    if not 1 <= exponent <= LARGEST_POWER:
        return None
    if is_narrow(x.dtype) and exponent > 2:  # a product of more factors would be rounded at each
        wide = new.add("cast", [x], dtype=f32, source=node.source)
        return new.add("cast", [_multiplied_out(new, wide, int(exponent), node)], dtype=x.dtype, source=node.source)
    return _multiplied_out(new, x, int(exponent), node)


def _multiplied_out(new: Graph, x: Value, exponent: int, node: Node) -> Value:
    y = x
    for _ in range(exponent - 1):
        y = new.add("mul", [y, x], source=node.source)
    return y


def _root(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Writes the power one half as a square root."""
    x = inputs[0]
    half = _all_equal(inputs[1]) == 0.5 and x is not None and x.type == node.output.type
    return new.add("sqrt", [x], source=node.source, name=node.output.name) if half else None


def _division(exact: bool) -> Simplify:
    """Returns the rule that multiplies by the reciprocal of a constant; *exact* only where that is a power of two.

    The reciprocal of a 16-bit float would be rounded too visibly for anything else. One number is divided as the model says: that
    costs nothing, and it may be the scale of a quantization, by whose last bit integers differ.
    """

    def rule(new: Graph, node: Node, inputs: Inputs) -> Value | None:
        x, by = inputs
        if not is_known(by) or not by.dtype.is_float or all(s is ONE for s in node.output.shape):
            return None
        with np.errstate(divide="ignore", over="ignore"):
            reciprocal = (1.0 / by.array.astype(np.float64)).astype(by.array.dtype)
        safe = np.isfinite(reciprocal).all() and (reciprocal != 0).all()
        if not safe or (
            (exact or is_narrow(by.dtype)) and not (np.abs(np.frexp(by.array.astype(np.float64))[0]) == 0.5).all()
        ):
            return None
        constant = Constant(f"{by.name}_inverse", np.asarray(reciprocal))
        return new.add("mul", [x, constant], source=node.source, name=node.output.name)

    return rule


def _sizes(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Computes the sizes of a tensor that are known."""
    x = inputs[0]
    if x is None:
        return None
    sizes = [x.shape[a] for a in node.attribute("axes")]
    known = [_int(s) for s in sizes if isinstance(s, Const)]
    return Constant(node.output.name, np.array(known, np.int64)) if len(known) == len(sizes) else None


def _tanh_of_softplus(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Makes one operator of a softplus and its hyperbolic tangent, as in a Mish: it has one exponential, and no logarithm."""
    x = inputs[0]
    if x is None or x.producer is None or x.producer.op != "softplus":
        return None
    return new.add("softplus_tanh", x.producer.inputs, source=node.source, name=node.output.name)


def _repeated(new: Graph, node: Node, inputs: Inputs) -> Value | None:
    """Drops an operator right after itself that changes nothing the second time."""
    x = inputs[0]
    return x if x is not None and x.producer is not None and x.producer.op == node.op else None


def _int(e: Expr) -> int:
    assert isinstance(e, Const)  # checked by the rules
    return int(e.value)


_RULES: Final[dict[str, tuple[Simplify, ...]]] = {
    "identity": (_same,),
    "cast": (_same,),
    "expand": (_same,),
    "concat": (_only_one,),
    "reshape": (_reshape,),
    "transpose": (_transpose,),
    "gemm": (_gemm,),
    "slice": (_slice,),
    "pad": (_pad,),
    "conv2d": (_padded_before,),
    "tile": (_tile,),
    "gather": (_gather,),
    "size_of": (_sizes,),
    "add": (_neutral(0.0), _constant_last),
    "sub": (_neutral(0.0),),
    "mul": (_neutral(1.0), _constant_last),
    "maximum": (_constant_last,),
    "minimum": (_constant_last,),
    "div": (_neutral(1.0), _division(exact=True)),
    "power": (_power,),
    "where": (_one_branch,),
    "equal": (_comparison_of_equals,),
    "reduce_max": (_extreme_of_equals,),
    "reduce_min": (_extreme_of_equals,),
    "relu": (_repeated,),
    "abs": (_repeated,),
}
_ROUNDING: Final[dict[str, tuple[Simplify, ...]]] = {
    "div": (_division(exact=False),),
    "power": (_root,),
    "tanh": (_tanh_of_softplus,),
}
