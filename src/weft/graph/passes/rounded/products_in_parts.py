"""Products of float32 by constant matrices as products of parts in bf16, where matrix registers make that faster.

    y = matmul(x, W)     becomes     y = matmul_in_parts(split_in_parts(x), pack_matrix_parts(W))

Weights are split while compiling, and take half as much memory again; activations once for all products that read them. Of long
reductions, blocks of terms are summed one after another, so that those of all rows stay in cache (K blocking). Results are as
near as those in float32 (docs/design/0084).
"""

from __future__ import annotations

from functools import partial

from weft.cost import (
    FEWEST_OPEN_ROWS,
    STEP_TERMS,
    FactorsInParts,
    FloatProduct,
    Planner,
    factors_in_parts_plans,
    multiplies_parts,
    subject_of,
)
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Parameter, Value
from weft.ir import Const, prove
from weft.ops import size_bounds
from weft.support.dtypes import f32
from weft.targets.instructions import TILE_LANES


class ProductsInParts:
    """The parts of each left factor, and those of each matrix, made once for all of their users."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.split: dict[Value, Value] = {}
        self.panels: dict[tuple[Value, bool], Value] = {}

    def product(self, new: Graph, node: Node, a: Value, b: Value, trans: bool) -> Value | None:
        """Returns the product of *a* and *b* in parts; None where float32 is faster, or sizes are not known."""
        problem = _problem(node, a, b)
        if problem is None or not self.planner.offers(FactorsInParts, multiplies_parts):
            return None
        plans = partial(factors_in_parts_plans, problem)
        blocks = self.planner.decide(subject_of(node.output.name), FactorsInParts, plans).blocks
        given, made = self._factors(new, a, b, trans=trans) if blocks else [], None
        for block in range(blocks):
            sums = new.add(
                "matmul_in_parts", given, source=node.source, columns=problem.columns, block=block, blocks=blocks
            )
            made = sums if made is None else new.add("add", [sums, made], source=node.source)
        return made

    def _factors(self, new: Graph, a: Value, b: Value, *, trans: bool) -> list[Value]:
        """Returns the parts of *a*, and the panels of those of *b*."""
        if a not in self.split:
            self.split[a] = new.add("split_in_parts", [a], name=f"{a.name}_parts", block=STEP_TERMS)
        if (b, trans) not in self.panels:
            self.panels[b, trans] = new.add(
                "pack_matrix_parts", [b], name=f"{b.name}_parts", block=TILE_LANES, depth=STEP_TERMS, trans=trans
            )
        return [self.split[a], self.panels[b, trans]]


def _problem(node: Node, a: Value, b: Value) -> FloatProduct | None:
    """Returns a product of float32 by a constant, of known sizes but for its rows, which are many; None for any other."""
    rows, columns = node.output.shape[-2:] if node.output.rank > 1 else (None, None)
    is_fixed = isinstance(b, Constant) and not isinstance(b, Parameter)
    if a.dtype is not f32 or b.dtype is not f32 or a.rank < 2 or not is_fixed or rows is None:
        return None
    depth = a.shape[-1]
    if not isinstance(depth, Const) or not isinstance(columns, Const):
        return None
    if isinstance(rows, Const):
        return FloatProduct(int(rows.value), int(depth.value), int(columns.value))
    are_many = prove(rows >= FEWEST_OPEN_ROWS, size_bounds(rows))
    return FloatProduct(None, int(depth.value), int(columns.value)) if are_many else None
