"""Makes convolutions, for grids, products of matrices: of weights, and of patches of the image, computed where they are read.

    y = relu(conv2d(x, w, b))     becomes     y = reshape(relu(conv2d_implicit(x, w', b)))

with w [OC, IC, *K] as w' [K1 * K2 ... * IC, OC], and the result as [N, OC, places]: neighbouring threads compute neighbouring
places, whatever the width of a row. Channels in blocks, phases of strides, and Winograd's transforms have their use where a core
has vectors; threads take elements one by one, and each stage by itself would be a launch. The choice is by
`cost.graph.implicit_products`.
"""

from __future__ import annotations

from math import prod
from typing import Any

from weft.cost import ImplicitProduct, Planner, filled_channels, filled_terms, implicit_product_plans, subject_of
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.passes.rounded.rounded_values import FACTORS, rounded
from weft.graph.rewriting.merged_axes import MergedAxes, Shape
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE, Const, Expr
from weft.ops import product
from weft.support.dtypes import DType, f32


def choose_implicit_products(graph: Graph, planner: Planner, precision: str = "model") -> Graph:
    """Returns *graph* with products for its convolutions by constant weights in one group, where *planner* decides so.

    Where *precision* is "bf16" or "tf32", factors of float32 are rounded to that if fragments of such are faster.
    """
    return rewrite_graph(graph, _Places(planner, FACTORS.get(precision, f32)).rewrite)


class _Places(MergedAxes):
    """Convolutions and maps with a single axis of places."""

    def __init__(self, planner: Planner, factors: DType) -> None:
        super().__init__()
        self.planner = planner
        self.factors = factors

    def computed(self, new: Graph, node: Node, inputs: Inputs) -> Value | None:
        """Returns a convolution as an implicit product."""
        x, w = (*inputs, None, None)[:2]
        if x is None or not isinstance(w, Constant) or not _is_product(node, w):
            return None
        kernel = w.extents[2:]
        places, terms = prod([_size(s) for s in node.output.shape[2:]]), prod(w.extents[1:])
        images, made = _size(x.shape[0]), w.extents[0]
        factors = self.factors if x.dtype is w.dtype is f32 else f32
        decided = self.planner.decide(
            subject_of(node.output.name),
            ImplicitProduct,
            lambda machine: implicit_product_plans(made, places, images, terms, machine, factors, w.extents[1]),
        )
        if not decided.product:
            return None
        kind = factors if decided.rounded else f32
        window: dict[str, Any] = {a: node.attribute(a) for a in ("strides", "pads", "dilations")}
        if (channels := filled_channels(w.extents[1], kind)) != w.extents[1]:
            window["channels"] = channels
        if prod(kernel) == 1 and set(window["strides"]) == {1} and not any(window["pads"]):
            image = self.merged(new, x, (*x.shape[:2], product(x.shape[2:])))
            kernel, window = (1,), {"strides": (1,), "pads": (0, 0), "dilations": (1,)}
        else:
            image = x
        if decided.merged:
            window["merged"] = True
        if decided.rounded:
            window["trans"] = True
        return new.add(
            "conv2d_implicit", [image, _factor(new, w, kind), *inputs[2:]], source=node.source, kernel=kernel, **window
        )

    def merged_shape(self, shape: Shape, whole: Shape) -> Shape | None:
        """Returns the shape of images whose places are one axis, or of an operand that all places share."""
        if not shape:
            return shape
        aligned = (*[ONE] * (len(whole) - len(shape)), *shape)
        if aligned[2:] == whole[2:]:
            return *aligned[:2], product(whole[2:])
        return (*aligned[:2], ONE) if all(s is ONE for s in aligned[2:]) else None


def _factor(new: Graph, w: Constant, factors: DType) -> Value:
    """Returns a weight as a matrix, rounded ones with the terms of each output channel side by side."""
    matrix = _matrix(new, w, factors)
    if factors is f32:
        return matrix
    return rounded(new, new.add("transpose", [matrix], perm=(1, 0), name=f"{w.name}_rows"), factors, w.name)


def _matrix(new: Graph, w: Constant, factors: DType) -> Value:
    """Returns a weight [OC, C, *K] as [K1 * K2 ... * C, OC], with rows of zeros that make taps, and steps, whole."""
    made, read = w.extents[:2]
    turned: Value = new.add("transpose", [w], perm=(*range(2, w.rank), 1, 0))
    if more := filled_channels(read, factors) - read:
        ends = (*[0] * (w.rank - 2), more, 0)
        turned = new.add("pad", [turned], pads=(*[0] * w.rank, *ends), name=f"{w.name}_channels")
    terms = prod(w.extents[2:]) * (read + more)
    matrix: Value = new.add("reshape", [turned], shape=(terms, made), name=f"{w.name}_matrix")
    if more := filled_terms(prod(w.extents[1:]), read, factors) - terms:
        matrix = new.add("pad", [matrix], pads=(0, 0, more, 0), name=f"{w.name}_steps")
    return matrix


def _is_product(node: Node, w: Constant) -> bool:
    """Tells whether *node* is a convolution in one group over places of known number, more than one."""
    sizes = node.output.shape[2:]
    known = all(isinstance(s, Const) for s in (*sizes, *w.shape))
    return node.op == "conv2d" and node.attribute("group") == 1 and known and any(s is not ONE for s in sizes)


def _size(e: Expr) -> int:
    return int(e.value) if isinstance(e, Const) else 1
