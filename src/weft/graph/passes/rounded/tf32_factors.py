"""Products of float32 on factors rounded to tf32, summed in float32: for `precision="tf32"`, on grids that multiply such.

    y = matmul(x, W)     becomes     y = matmul_tf32(round_tf32(x), transpose(round_tf32(W)))

Weights are rounded, and turned, while compiling. tf32 has the range of float32, and 11 significant bits: nothing needs a scale.
"""

from __future__ import annotations

from functools import partial

from weft.cost import FloatProduct, Planner, RoundedFactors, rounded_factor_plans, subject_of
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.passes.rounded.rounded_values import RoundedValues
from weft.ir import Const
from weft.support.dtypes import f32, u32


class Tf32Factors:
    """The rounded twin of each value, and of its transpose, made once for all of their users."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.rounded = RoundedValues(u32)
        self.columns: dict[Value, Value] = {}

    def product(self, new: Graph, node: Node, a: Value, b: Value, trans: bool) -> Value | None:
        """Returns the product of *a* and *b* on rounded factors; None where float32 is faster, or sizes are not known."""
        if a.dtype is not f32 or a.rank < 2 or b.rank != 2:
            return None
        sizes = node.output.shape[-2], a.shape[-1], node.output.shape[-1]
        rows, depth, columns = [int(n.value) if isinstance(n, Const) else 0 for n in sizes]
        if not rows or not depth or not columns:
            return None
        plans = partial(rounded_factor_plans, FloatProduct(rows, depth, columns, isinstance(b, Constant)), factors=u32)
        if not self.planner.decide(subject_of(node.output.name), RoundedFactors, plans).rounded:
            return None
        right = self.rounded.of(new, b) if trans else self._by_columns(new, b)
        return new.add("matmul_tf32", [self.rounded.of(new, a), right], source=node.source)

    def _by_columns(self, new: Graph, b: Value) -> Value:
        """Returns a rounded right factor with the terms of each column side by side."""
        if b not in self.columns:
            name = f"{b.name}_by_columns"
            self.columns[b] = new.add("transpose", [self.rounded.of(new, b)], perm=(1, 0), name=name)
        return self.columns[b]
