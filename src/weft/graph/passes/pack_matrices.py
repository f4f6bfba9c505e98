"""Multiplies by matrices in panels: the right-hand side of each product is packed, constant ones at compile time.

    y = gemm(x, W, b, trans_b=True)     becomes     y = matmul_packed(x, pack_matrix(W, trans=True), b)

A panel is as wide as the vector registers that one row of a micro-kernel's result takes (Goto and van de Geijn, "Anatomy of
high-performance matrix multiplication", 2008). A constant that other operators read too (an embedding that is also the last
weight) is held in panels alone, and they read it through `unpack_matrix`, which fuses into them.

Few rows are not worth panels. If their right-hand side is the transpose of something (the keys of attention, the weight of a
linear layer), they are multiplied with that as it lies, each element an inner product; of parameters, which panels would be held
beside, too. If they are some more, but fewer than its columns, they are what is packed, and the transposed product is computed:

    y = gemm(x, w, trans_b=True)        becomes     y = transpose(matmul_packed(w, pack_matrix(x, trans=True)))
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np

from weft.cost import (
    WIDENING_OPERATIONS,
    GridOperand,
    Panel,
    PanelProblem,
    Planner,
    RightOperand,
    RightProblem,
    TakenApart,
    TurnedWeight,
    grid_operand_plans,
    panel_plans,
    right_operand_plans,
    subject_of,
    taken_apart_plans,
    turned_weight_plans,
)
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Deferred, Parameter, Value
from weft.graph.fusion.node_facts import facts_of, is_rename
from weft.graph.passes.quantized.quantized_patterns import product_rows
from weft.graph.passes.rounded.narrowed_factors import NarrowedFactors
from weft.graph.passes.rounded.products_in_parts import ProductsInParts
from weft.graph.passes.rounded.tf32_factors import Tf32Factors
from weft.graph.rewriting.call_patterns import is_known
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ONE, Const, Expr
from weft.support.dtypes import DType, bf16, f32
from weft.te import is_narrow

_Rounding: TypeAlias = NarrowedFactors | ProductsInParts | Tf32Factors
"""What makes products on factors of fewer bits."""


def pack_matrices(graph: Graph, planner: Planner, precision: str = "model", *, in_parts: bool = False) -> Graph:
    """Returns *graph* with its matrix products on packed right-hand sides, where these are constant or used often enough.

    Where *precision* is "bf16" or "tf32", factors of float32 are rounded to that if their products are faster then. Factors in
    bf16 are multiplied as they are where that is faster, unless it is "strict". If *in_parts*, those of float32 may be split.
    """
    return rewrite_graph(graph, _Packing(graph, planner, precision, in_parts=in_parts).rewrite)


class _Packing:
    """The panels of each matrix, made once for all of its users."""

    def __init__(self, graph: Graph, planner: Planner, precision: str, *, in_parts: bool) -> None:
        self.planner = planner
        self.narrow = NarrowedFactors(planner) if precision == "bf16" and not planner.is_grid else None
        self.in_bf16 = None if precision == "strict" or planner.is_grid else NarrowedFactors(planner)
        self.in_parts = ProductsInParts(planner) if in_parts and not planner.is_grid else None
        self.on_grid = _rounded_on_grid(planner, precision)
        self.uses = Counter(v for n in graph.nodes for v in n.inputs)
        self.panels: dict[tuple[Value, bool], Value] = {}
        self.rows = {} if planner.is_grid else _rows_by_constant(graph)
        self.kept: dict[Node, bool] = {}
        self.packed = {
            n.inputs[1]: _is_transposed(n)
            for n in graph.nodes
            if isinstance(_right(n), Constant) and self._form(n, is_transposed=_is_transposed(n)) == "panels"
        }

    def rewrite(self, new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        """Returns the product on panels that stands for *node*, or *node* on unpacked ones; None where nothing changes."""
        if self.on_grid is not None and _has_panels(node) and (made := self._rounded(new, node, inputs, self.on_grid)):
            return [made]
        if self._is_turned(node):
            return [self._by_turned(new, node, inputs)]
        before = _before_transposition(node, inputs)
        form = self._form(node, is_transposed=before is not None or _is_transposed(node))
        if form == "panels":
            return [self.product(new, node, inputs)]
        if form == "untransposed" and before is not None:
            equation = _rows_by_rows(node.output.rank, before[1])
            return [
                new.add("einsum", [inputs[0], before[0]], equation=equation, source=node.source, name=node.output.name)
            ]
        if form == "swapped":
            return [self._swapped(new, node, inputs if before is None else (inputs[0], before[0]))]
        if not any(v in self.packed for v in inputs):
            return None
        return new.append(node.with_inputs(tuple([self._unpacked(new, v) for v in inputs]))).outputs

    def _is_kept(self, node: Node) -> bool:
        """Tells whether a product on a grid reads its right-hand matrix of floats as it is."""
        if not self.planner.is_grid or not node.output.dtype.is_float:
            return False
        if node not in self.kept:
            subject = subject_of(node.output.name)
            self.kept[node] = not self.planner.decide(subject, GridOperand, lambda _: grid_operand_plans()).panels
        return self.kept[node]

    def _is_turned(self, node: Node) -> bool:
        """Tells whether one row on a grid is multiplied by the transpose of a constant matrix that nothing else reads."""
        b = _right(node)
        if (
            not self.planner.is_grid
            or not isinstance(b, Constant)
            or b.rank != 2
            or _is_transposed(node)
            or self.uses[b] > 1
        ):
            return False
        depth, columns = b.static_shape or (0, 0)
        if (
            node.output.static_shape is None
            or prod(node.output.static_shape) != columns
            or not node.output.dtype.is_float
        ):
            return False
        plans = partial(turned_weight_plans, depth, columns, b.dtype.bits)
        return self.planner.decide(subject_of(node.output.name), TurnedWeight, plans).turned

    def _by_turned(self, new: Graph, node: Node, inputs: Inputs) -> Value:
        """Returns a product of one row by the transpose of its matrix."""
        a, b, *rest = inputs
        assert b is not None  # a product has two operands
        turned = new.add("transpose", [b], perm=(1, 0), name=f"{b.name}_by_columns")
        if node.op == "gemm":
            made = new.add("gemm", [a, turned, *rest], **{**node.keywords, "trans_b": True}, source=node.source)
        else:
            rows = string.ascii_lowercase[: node.output.rank - 1]
            equation = f"{rows}y,zy->{rows}z"
            made = new.add("einsum", [a, turned], equation=equation, source=node.source)
        return made

    def product(self, new: Graph, node: Node, inputs: Inputs) -> Value:
        """Returns a product of *inputs* by panels, with the addend of a Gemm."""
        narrow = self.in_bf16 if node.output.dtype is bf16 else self.narrow or self.in_parts
        if narrow is not None and (made := self._rounded(new, node, inputs, narrow)) is not None:
            return made
        a, b = _factors(new, node, inputs)
        alpha, beta, c = _terms(node, inputs[2:])
        simple = c is not None and _is_bias(node, alpha, beta, c)
        panels = self._panels(new, b, _is_transposed(node))
        columns = _columns(node.output.shape[-1])
        name = node.output.name if simple or (c is None and alpha == 1.0) else ""
        apart = isinstance(b, Constant) and self._is_apart(node, b.dtype)
        y = _on_panels(new, node, (a, panels, c if simple else None), name, columns, apart=apart)
        y = _scaled(new, y, alpha)
        return y if c is None or simple else new.add("add", [y, _scaled(new, c, beta)], source=node.source)

    def _is_apart(self, node: Node, dtype: DType) -> bool:
        """Decides whether a weight of bf16 is converted to float32 by whole panels, before all rows are multiplied by each."""
        if dtype is not bf16 or self.planner.is_grid:
            return False  # loads convert other halves
        plans = partial(taken_apart_plans, product_rows(node), operations=WIDENING_OPERATIONS)
        return self.planner.decide(subject_of(node.output.name), TakenApart, plans).by_panels

    def _swapped(self, new: Graph, node: Node, inputs: Inputs) -> Value:
        """Returns the transposition of a matrix, the second of *inputs* as it lies, times the first one in panels."""
        a, w = _factors(new, node, inputs)
        alpha, beta, c = _terms(node, inputs[2:])
        rows = _columns(a.shape[-2])
        y = new.add("matmul_packed", [w, self._panels(new, a, trans=True)], source=node.source, columns=rows)
        perm = (*range(y.rank - 2), y.rank - 1, y.rank - 2)
        y = _scaled(new, new.add("transpose", [y], perm=perm, source=node.source), alpha)
        return y if c is None else new.add("add", [y, _scaled(new, c, beta)], source=node.source, name=node.output.name)

    def _rounded(self, new: Graph, node: Node, inputs: Inputs, factors: _Rounding) -> Value | None:
        """Returns a product on rounded factors, with the addend of a Gemm, rounded once; None where float32 is faster."""
        a, b = _factors(new, node, inputs)
        made = factors.product(new, node, a, b, _is_transposed(node))
        if made is None:
            return None
        alpha, beta, c = _terms(node, inputs[2:])
        y, dtype = _scaled(new, made, alpha), node.output.dtype
        if c is not None:
            c = c if c.dtype is y.dtype else new.add("cast", [c], dtype=y.dtype)
            name = node.output.name if y.dtype is dtype else ""
            y = new.add("add", [y, _scaled(new, c, beta)], source=node.source, name=name)
        return y if y.dtype is dtype else new.add("cast", [y], dtype=dtype, source=node.source, name=node.output.name)

    def _form(self, node: Node, *, is_transposed: bool) -> str:
        """Returns the form in which *node* reads its right-hand matrix; "rows" where there is no choice."""
        a, b = node.inputs[0] if node.inputs else None, _right(node)
        panels = _has_panels(node)
        if a is None or b is None or (not panels and not is_transposed):
            return "rows"
        if panels and self._is_kept(node):
            return "untransposed" if is_transposed else "rows"
        problem = _problem(node, a, b, is_transposed=is_transposed)
        forms = self._forms(node, b, problem, is_transposed=is_transposed)
        if forms is None:
            return "panels" if panels else "rows"
        plans = partial(right_operand_plans, forms, problem)
        return self.planner.decide(subject_of(node.output.name), RightOperand, plans).form

    def _forms(self, node: Node, b: Value, p: RightProblem, *, is_transposed: bool) -> set[str] | None:
        """Returns the forms in which *node* can read its right-hand matrix *b*; None for a constant: it is packed if it can be.

        Parameters are constants that are held beside what is made of them, and may be read as they lie.
        """
        forms = {*["panels"] * _has_panels(node), *_unpacked_forms(node, is_transposed=is_transposed)}
        if "panels" in forms and is_transposed and self.narrow is None and _is_swappable(b, p):
            forms.add("swapped")
        may_lie = isinstance(b, Parameter) and forms >= {"panels", "untransposed"}
        return forms if may_lie or not isinstance(b, Constant) else None

    def _panels(self, new: Graph, b: Value, trans: bool) -> Value:
        key = (b, trans)
        if key not in self.panels:
            depth, columns = (_known(e) for e in (b.shape[-2:] if not trans else b.shape[-2:][::-1]))
            plans = partial(panel_plans, PanelProblem(columns, b.dtype.bits, self.rows.get(b), depth))
            block = self.planner.decide(subject_of(b.name), Panel, plans).columns
            self.panels[key] = new.add("pack_matrix", [b], name=f"{b.name}_packed", block=block, trans=trans)
        return self.panels[key]

    def _unpacked(self, new: Graph, v: Value | None) -> Value | None:
        """Returns a constant that is held in panels as others read it."""
        if v is None or v not in self.packed or v.rank != 2:
            return v
        trans = self.packed[v]
        columns = _columns(v.shape[-2 if trans else -1])
        return new.add("unpack_matrix", [self._panels(new, v, trans)], columns=columns, trans=trans)


def _rounded_on_grid(planner: Planner, precision: str) -> NarrowedFactors | Tf32Factors | None:
    """Returns the rounding of the factors of products on a grid, where *precision* asks for one."""
    if not planner.is_grid or precision not in ("bf16", "tf32"):
        return None
    return NarrowedFactors(planner) if precision == "bf16" else Tf32Factors(planner)


def _factors(new: Graph, node: Node, inputs: Inputs) -> tuple[Value, Value]:
    """Returns the factors of a product, the left one with the terms of each row side by side."""
    a, b = inputs[:2]
    assert a is not None  # a product has two operands
    assert b is not None
    if node.op == "gemm" and node.attribute("trans_a"):
        a = new.add("transpose", [a], perm=(1, 0))
    return a, b


def _on_panels(
    new: Graph, node: Node, operands: Inputs, name: str, columns: int | Expr, *, apart: bool = False
) -> Value:
    """Returns a product on panels; halves on the left, each used for all columns, are converted to float32 beforehand.

    Those of the panels are where they are multiplied, or, *apart*, by whole panels.
    """
    a, panels, bias = operands
    dtype = node.output.dtype
    if not is_narrow(dtype):
        return new.add("matmul_packed", operands, source=node.source, name=name, columns=columns)
    wide = [v if v is None else new.add("cast", [v], dtype=f32, source=node.source) for v in (a, bias)]
    made = new.add("matmul_packed", [wide[0], panels, wide[1]], source=node.source, columns=columns, by_panels=apart)
    return new.add("cast", [made], dtype=dtype, source=node.source, name=name)


def _has_panels(node: Node) -> bool:
    """Tells whether the right-hand matrix of a product may be packed: a constant one of known width, or one of many rows.

    One of unknown width may be narrow, so that it is packed only if that replaces another copy, and so is one that a constant is
    multiplied with: it may be an image, whose rows are long.
    """
    a, b = node.inputs[0] if node.inputs else None, _right(node)
    if a is None or b is None or b.rank < 2 or a.rank < 1:
        return False
    columns = node.output.shape[-1]
    if columns is ONE or (not isinstance(columns, Const) and not _is_rearranged(b)):
        return False
    if is_narrow(node.output.dtype) and not _is_bias(node, *_terms(node, node.inputs[2:])):
        return False  # product and sum would be rounded apart
    return isinstance(b, Constant) or (a.rank > 1 and (not isinstance(a, Constant) or _is_rearranged(b)))


def _right(node: Node) -> Value | None:
    """Returns the right-hand matrix of a product; None where *node* is something else."""
    return node.inputs[1] if node.op in ("matmul", "gemm") else None


def _terms(node: Node, added: Sequence[Value | None]) -> tuple[float, float, Value | None]:
    """Returns the factors of a product and of the addend *added*, and that; None where it is zero."""
    if node.op != "gemm":
        return 1.0, 1.0, None
    c = added[0] if added and not _is_zero(added[0]) else None
    return node.attribute("alpha"), node.attribute("beta"), c


def _is_bias(node: Node, alpha: float, beta: float, c: Value | None) -> bool:
    """Tells whether *c*, if there is any, is added as a bias, and nothing is scaled."""
    if c is None:
        return alpha == 1.0
    return alpha == beta == 1.0 and c.shape == node.output.shape[-1:]


def _is_transposed(node: Node) -> bool:
    return node.op == "gemm" and bool(node.attribute("trans_b"))


def _before_transposition(node: Node, inputs: Inputs) -> tuple[Value, tuple[int, ...]] | None:
    """Returns the operand and the permutation of a transposed right-hand side, if the operand has the depth side by side.

    Few rows are multiplied with such rows as they are, each product summed along both: a transposed copy would take longer.
    """
    a, b = inputs[:2] if node.op == "matmul" else (None, None)
    if a is None or b is None or b.producer is None or b.producer.op != "transpose":
        return None
    if a.rank < 2 or b.rank not in (2, a.rank):
        return None
    before, perm = b.producer.inputs[0], b.producer.attribute("perm")
    if before is None or perm is None or perm[-2] != b.rank - 1:
        return None
    return before, tuple(perm)


def _rows_by_rows(rank: int, perm: tuple[int, ...]) -> str:
    """Returns the equation of a product whose right-hand side was transposed by *perm*."""
    batch = string.ascii_lowercase[: rank - 2]
    right = dict(zip(perm, f"{batch}yz"[-len(perm) :], strict=True))
    return f"{batch}xy,{''.join([right[n] for n in range(len(perm))])}->{batch}xz"


def _is_rearranged(v: Value) -> bool:
    """Tells whether *v* is written only to have its elements in another order."""
    return v.producer is not None and facts_of(v.producer).is_rearrangement and not is_rename(v.producer)


def _columns(e: Expr) -> int | Expr:
    return int(e.value) if isinstance(e, Const) else e


def _unpacked_forms(node: Node, *, is_transposed: bool) -> list[str]:
    """Returns the forms in which *node* can read its right-hand matrix without panels."""
    if not is_transposed:
        return ["rows"]
    return ["untransposed"] if _is_transposed(node) else ["untransposed", "rows"]  # by a transposed copy


def _is_swappable(b: Value, p: RightProblem) -> bool:
    """Tells whether the transposed product may be computed: of a matrix that may change between calls, all sizes known."""
    is_fixed = isinstance(b, Constant) and not isinstance(b, Parameter)
    return p.is_known and b.rank == 2 and not is_fixed and not is_narrow(b.dtype)


def _problem(node: Node, a: Value, b: Value, *, is_transposed: bool) -> RightProblem:
    """Returns the sizes of the product *node* of *a* by *b* that the choice of a form depends on."""
    rows, columns = (_known(e) for e in (ONE, *node.output.shape)[-2:])
    depth = _known(a.shape[-1])
    return RightProblem(
        rows,
        depth,
        columns,
        bits=b.dtype.bits,
        rearranged=is_transposed or _is_rearranged(b),
        is_parameter=isinstance(b, Parameter),
    )


def _rows_by_constant(graph: Graph) -> dict[Value, int]:
    """Returns the most rows that each constant matrix is multiplied by, for those of which all products have a known number."""
    found: dict[Value, list[int | None]] = {}
    for node in graph.nodes:
        b = _right(node)
        if isinstance(b, Constant) and b.rank == 2:
            found.setdefault(b, []).append(product_rows(node))
    return {b: max([r for r in rows if r is not None]) for b, rows in found.items() if None not in rows}


def _known(e: Expr) -> int | None:
    return int(e.value) if isinstance(e, Const) else None


def _is_zero(v: Value | None) -> bool:
    return v is None or (is_known(v) and not isinstance(v, Deferred) and not v.array.any())


def _scaled(new: Graph, v: Value, factor: float) -> Value:
    if factor == 1.0:
        return v
    return new.add("mul", [v, new.constant(np.asarray(factor, v.dtype.numpy))])
