"""Products on factors in bf16, which are summed in float32: of models in bf16, and for `precision="bf16"` of rounded ones.

    y = matmul(x, W)     becomes     y = matmul_grouped(cast(x, bf16), pack_matrix_groups(cast(W, bf16)))

Weights are rounded while compiling; activations once for all products that read them, in the kernel that makes them where it
makes nothing else. bf16 has the range of float32 and 8 significant bits: nothing needs a scale.
"""

from __future__ import annotations

from functools import partial

from weft.cost import (
    FloatProduct,
    NarrowFactors,
    Planner,
    RoundedFactors,
    narrow_factor_plans,
    rounded_factor_plans,
    subject_of,
)
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.passes.rounded.rounded_values import RoundedValues
from weft.ir import ONE, Const
from weft.support.dtypes import bf16, f16, f32
from weft.targets.instructions import group_of


class NarrowedFactors:
    """The rounded twin of each value, and the panels of each matrix, made once for all of their users."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.rounded = RoundedValues(bf16)
        self.panels: dict[tuple[Value, bool, int], Value] = {}

    def product(self, new: Graph, node: Node, a: Value, b: Value, trans: bool) -> Value | None:
        """Returns the product of *a* and *b* on rounded factors; None where float32 is faster, or sizes are not known."""
        depth, columns = a.shape[-1], node.output.shape[-1]
        if a.dtype not in (f32, f16, bf16) or not isinstance(depth, Const) or not isinstance(columns, Const):
            return None
        rows = node.output.shape[-2] if a.rank > 1 else ONE
        known = int(rows.value) if isinstance(rows, Const) else None
        problem = FloatProduct(known, int(depth.value), int(columns.value), isinstance(b, Constant))
        subject = subject_of(node.output.name)
        if self.planner.is_grid:
            return self._on_grid(new, node, (a, b), problem, trans=trans)
        panel = self.planner.decide(subject, NarrowFactors, lambda m: narrow_factor_plans(problem, m)).panel
        if not panel:
            return None
        key = b, trans, panel
        if key not in self.panels:
            packed, name = self.rounded.of(new, b), f"{b.name}_packed"
            self.panels[key] = new.add(
                "pack_matrix_groups", [packed], name=name, block=panel, group=group_of(bf16), trans=trans
            )
        operands = [self.rounded.of(new, a), self.panels[key]]
        return new.add("matmul_grouped", operands, columns=problem.columns, source=node.source)

    def _on_grid(
        self, new: Graph, node: Node, factors: tuple[Value, Value], problem: FloatProduct, *, trans: bool
    ) -> Value | None:
        """Returns the product on rounded factors as they lie; None where float32 is faster."""
        a, b = factors
        subject = subject_of(node.output.name)
        is_vector = problem.rows == 1 and isinstance(b, Constant) and all(n is ONE for n in node.output.shape[:-1])
        if problem.rows == 1 and not is_vector:
            return None
        plans = partial(rounded_factor_plans, problem)
        if a.rank < 2 or b.rank != 2 or not self.planner.decide(subject, RoundedFactors, plans).rounded:
            return None
        if is_vector:  # the time is that of reading the matrix, by columns; the vector stays as it is
            by_columns = b if trans else new.add("transpose", [b], perm=(1, 0), name=f"{b.name}_by_columns")
            return new.add("matmul_summed", [a, self.rounded.of(new, by_columns)], trans=True, source=node.source)
        return new.add(
            "matmul_summed", [self.rounded.of(new, a), self.rounded.of(new, b)], trans=trans, source=node.source
        )
