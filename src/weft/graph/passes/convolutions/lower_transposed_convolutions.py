"""Makes transposed convolutions ordinary ones that compute all phases of the stride as channels, which are then interleaved.

    y = conv_transpose2d(x, w, b)     becomes     y = interleave_phases(conv2d(x, phase_weight(w), b repeated))

At stride 1 there is one phase and nothing to interleave; of a single place, the taps are the columns of a matrix product.
Where the channels of each phase fill vectors by themselves, the transposed convolution is kept: `conv_transpose2d_blocked` then
needs no interleaving, and computes none of the positions that only some phases have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from weft.cost import FALLBACK_SIZE, Candidate, Planner, TransposedPhases, subject_of, transposed_plans
from weft.graph.core.evaluator import Evaluator
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.layout.assign_layouts import is_packable
from weft.graph.passes.fold_constants import rewrite_and_fold
from weft.graph.rewriting.rewriter import Inputs
from weft.ir import ONE, Const, Expr, as_expr
from weft.targets import Target


def lower_transposed_convolutions(
    graph: Graph, planner: Planner, evaluator: Evaluator, *, blocks: bool = True
) -> Graph:
    """Returns *graph* with ordinary convolutions for the transposed ones, but those that are better computed in *blocks*.

    Their weights, where they are known, are computed by *evaluator*.
    """

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if node.op != "conv_transpose2d":
            return None
        if _has_one_place(node):
            return [_product(new, node, inputs)]
        if blocks and _has_blocked_form(node):
            kind = TransposedPhases
            if planner.decide(subject_of(node.output.name), kind, lambda machine: _plans(node, machine)).apart:
                return None
        return [_convolution(new, node, inputs)]

    return rewrite_and_fold(graph, evaluator, rule)


def _has_one_place(node: Node) -> bool:
    """Tells whether each output is that of one tap and one place: the input has no other, and the output no more than taps."""
    x, w = node.inputs[0], node.inputs[1]
    assert x is not None and w is not None  # noqa: PT018  (a convolution has both)
    single = all(s is ONE for s in x.shape[2:]) and node.attribute("group") == 1
    return single and node.output.shape[2:] == w.shape[2:] and not any(node.attribute("pads"))


def _product(new: Graph, node: Node, inputs: Inputs) -> Value:
    """Returns images times weights."""
    x, w, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    assert x is not None and w is not None  # noqa: PT018
    columns = (w.shape[0], _product_of(w.shape[1:]))
    rows = new.add("reshape", [x], shape=x.shape[:2])
    matrix = new.add("reshape", [w], shape=columns, name=f"{w.name}_matrix")
    wide = None if bias is None else _repeated(new, bias, (w.shape[1], ONE), (w.shape[1], _product_of(w.shape[2:])))
    y = new.add("gemm", [rows, matrix, wide], source=node.source)
    return new.add("reshape", [y], shape=node.output.shape, source=node.source, name=node.output.name)


def _convolution(new: Graph, node: Node, inputs: Inputs) -> Value:
    """Returns the convolution to all phases, interleaved."""
    x, w, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    assert x is not None and w is not None  # noqa: PT018
    strides, group, phases = node.attribute("strides"), node.attribute("group"), prod(node.attribute("strides"))
    geometry = _geometry(node, [_int(k) for k in w.shape[2:]])
    weight = new.add(
        "phase_weight", [w], strides=strides, dilations=geometry.filled, group=group, name=f"{w.name}_phases"
    )
    wide = None
    if bias is not None:
        each = as_expr(_int(w.shape[1]))
        wide = _repeated(new, bias, (as_expr(group), ONE, each), (as_expr(group), as_expr(phases), each))
    y = new.add(
        "conv2d",
        [x, weight, wide],
        source=node.source,
        strides=(1,) * len(strides),
        dilations=geometry.dilations,
        group=group,
        pads=geometry.pads,
    )
    if phases == 1 and not any(geometry.offsets) and y.shape == node.output.shape:
        return y
    return new.add(
        "interleave_phases",
        [y],
        source=node.source,
        name=node.output.name,
        strides=strides,
        offsets=geometry.offsets,
        sizes=node.output.shape[2:],
        group=group,
    )


@dataclass(frozen=True)
class _Geometry:
    """The ordinary convolution to all phases of a transposed one, in each spatial dimension.

    The weight is dilated by *filled* with explicit zeros, or the convolution has *dilations*; its result with *pads*,
    interleaved, holds the output from *offsets* on.
    """

    filled: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    offsets: tuple[int, ...]


def _geometry(node: Node, kernel: Sequence[int]) -> _Geometry:
    """Returns the convolution to all phases of *node*, whose weight has as many taps as *kernel*."""
    strides, pads, extra = (node.attribute(a) for a in ("strides", "pads", "output_padding"))
    dims = range(len(strides))
    filled = tuple(d if s > 1 else 1 for s, d in zip(strides, node.attribute("dilations"), strict=True))
    dilations = tuple(1 if s > 1 else d for s, d in zip(strides, node.attribute("dilations"), strict=True))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, filled, strict=True)]
    reach = [d * (-(-k // s) - 1) for d, k, s in zip(dilations, spans, strides, strict=True)]
    skipped = [min(pads[d] // strides[d], reach[d]) for d in dims]
    before = [reach[d] - skipped[d] for d in dims]
    last = [(dilations[d] * (spans[d] - 1) + extra[d] - pads[d + len(dims)]) // strides[d] for d in dims]
    offsets = tuple(pads[d] - skipped[d] * strides[d] for d in dims)
    return _Geometry(filled, dilations, (*before, *[max(n, 0) for n in last]), offsets)


def _repeated(new: Graph, bias: Value, column: tuple[Expr, ...], shape: tuple[Expr, ...]) -> Value:
    """Returns the bias repeated along the dimension of *shape* in which *column* has one element, as a vector."""
    made = new.add("expand", [new.add("reshape", [bias], shape=column)], shape=shape)
    return new.add("reshape", [made], shape=(_product_of(shape),), name=f"{bias.name}_repeated")


def _has_blocked_form(node: Node) -> bool:
    """Tells whether there are several phases, and a form of the transposed convolution on channels in blocks."""
    x = node.inputs[0]
    if x is None or not is_packable(node) or x.rank != 4 or not isinstance(x.shape[1], Const):
        return False
    strides: Sequence[int] = node.attribute("strides")
    return prod(strides) > 1 and node.attribute("group") == 1 and set(node.attribute("dilations")) == {1}


def _plans(node: Node, target: Target) -> list[Candidate[TransposedPhases]]:
    """Returns the choices for a transposed convolution that has a blocked form."""
    w, strides = node.inputs[1], node.attribute("strides")
    assert w is not None  # _has_blocked_form asks for it
    inputs, channels, *kernel = [_int(s) for s in w.shape]
    taps = prod(-(-k // s) for k, s in zip(kernel, strides, strict=True))
    sizes = [_size(s) for s in node.output.shape[2:]]
    return transposed_plans(sizes, strides, channels, taps * inputs, w.dtype.bits, target)


def _product_of(shape: Sequence[Expr]) -> Expr:
    return as_expr(prod(_int(s) for s in shape))


def _size(e: Expr) -> int:
    return int(e.value) if isinstance(e, Const) else FALLBACK_SIZE


def _int(e: Expr) -> int:
    assert isinstance(e, Const)  # channels and kernels are known
    return int(e.value)
