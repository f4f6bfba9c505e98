"""Products of one tensor by several constant matrices become one product by the matrices side by side (horizontal fusion).

    q = matmul(x, Q) + a                 y = matmul(x, concat(Q, K, V)) + concat(a, b, c)
    k = matmul(x, K) + b      ->         q = y[..., :n]
    v = matmul(x, V) + c                 k = y[..., n:m] ...

One launch with many blocks of threads takes less than several with few (the queries, keys and values of attention, say). The
slices are computed by whatever reads them. A reshape of a slice that splits its columns (into heads) becomes a slice of heads,
since a slice that is reshaped would be copied.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from weft.cost import CombineProducts, Planner, combine_product_plans, subject_of
from weft.graph.core.evaluator import Evaluator
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.passes.fold_constants import rewrite_and_fold
from weft.graph.rewriting.rewriter import Inputs
from weft.ir import Const
from weft.support.dtypes import DType, f32


def combine_products(graph: Graph, evaluator: Evaluator, planner: Planner, factors: DType = f32) -> Graph:
    """Returns *graph* with products of the same tensor on a grid combined, where *planner* decides so.

    Factors of float32 may be rounded to *factors* later.
    """
    if not planner.is_grid:
        return graph
    groups = [g for g in _groups(graph) if _pays(g, planner, factors)]
    return rewrite_and_fold(graph, evaluator, _Combining(groups).rewrite) if groups else graph


@dataclass(frozen=True)
class _Group:
    """Products of one tensor, in order, and the additions of biases that are all that read them, if each has one."""

    products: tuple[Node, ...]
    additions: tuple[Node, ...]

    @property
    def columns(self) -> list[int]:
        """The columns of each matrix."""
        return [int(_matrix(n).array.shape[-1]) for n in self.products]

    def begin(self, n: int) -> int:
        """Returns the first column of product number *n*."""
        return sum(self.columns[:n])


def _groups(graph: Graph) -> list[_Group]:
    """Returns the products of each tensor by constant matrices that nothing else reads."""
    uses = Counter(v for n in graph.nodes for v in n.inputs)
    users: dict[Value, list[Node]] = defaultdict(list)
    of: dict[tuple[Value | None, int], list[Node]] = defaultdict(list)
    for n in graph.nodes:
        for v in n.inputs:
            if v is not None:
                users[v].append(n)
        right = n.inputs[1] if n.op == "matmul" else None
        if isinstance(right, Constant) and right.rank == 2 and uses[right] == 1 and n.output not in graph.roots:
            of[n.inputs[0], right.dtype.bits].append(n)
    made = []
    for products in of.values():
        additions = [a for n in products if (a := _addition(n, users[n.output], graph)) is not None]
        if len(products) > 1:
            made.append(_Group(tuple(products), tuple(additions) if len(additions) == len(products) else ()))
    return made


def _addition(product: Node, users: Sequence[Node], graph: Graph) -> Node | None:
    """Returns the addition of a constant for each column that is all that reads a product."""
    if len(users) != 1 or users[0].op != "add" or users[0].output in graph.roots:
        return None
    bias = _bias(users[0])
    columns = product.output.shape[-1:]
    is_row = bias is not None and bias.shape[-1:] == columns and prod(bias.array.shape) == bias.array.shape[-1]
    return users[0] if is_row and users[0].output.shape == product.output.shape else None


def _bias(addition: Node) -> Constant | None:
    return next((v for v in addition.inputs if isinstance(v, Constant) and v.rank > 0), None)


def _matrix(product: Node) -> Constant:
    right = product.inputs[1]
    assert isinstance(right, Constant)  # such are grouped
    return right


def _pays(group: _Group, planner: Planner, factors: DType) -> bool:
    """Tells whether one product is faster than several."""
    first = group.products[0]
    shape = first.output.static_shape
    depth = int(_matrix(first).array.shape[0])
    rows = None if shape is None else prod(shape[:-1])
    plans = partial(combine_product_plans, rows, depth, group.columns, factors=factors)
    return planner.decide(subject_of(first.output.name), CombineProducts, plans).combine


class _Combining:
    """The products of each group, made once for all that read a part."""

    def __init__(self, groups: Sequence[_Group]) -> None:
        self.product = {n: (g, i) for g in groups for i, n in enumerate(g.products)}
        self.addition = {n: (g, i) for g in groups for i, n in enumerate(g.additions)}
        self.whole: dict[_Group, Value] = {}
        self.part: dict[Value, tuple[Value, int]] = {}  # a slice of a whole, and its first column
        self.heads: dict[tuple[Value, int], Value] = {}

    def rewrite(self, new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        """Returns the part of a product that stands for *node*."""
        if node in self.product:
            group, n = self.product[node]
            if group not in self.whole:
                self.whole[group] = self._combined(new, group, inputs[0])
            return [self._part(new, node, group, n)]
        if node in self.addition:
            return [self._part(new, node, *self.addition[node])]
        if node.op == "reshape" and inputs[0] in self.part:
            return self._split(new, node, *self.part[inputs[0]])
        return None

    def _combined(self, new: Graph, group: _Group, x: Value | None) -> Value:
        """Returns the product by all matrices, with the biases if each product has one."""
        name = f"{_matrix(group.products[0]).name}_combined"
        matrix = new.add("concat", [_matrix(n) for n in group.products], axis=1, name=name)
        y = new.add("matmul", [x, matrix], source=group.products[0].source)
        if not group.additions:
            return y
        biases = [new.add("reshape", [_bias(a)], shape=a.output.shape[-1:]) for a in group.additions]
        return new.add("add", [y, new.add("concat", biases, axis=0)], source=group.products[0].source)

    def _part(self, new: Graph, node: Node, group: _Group, n: int) -> Value:
        """Returns the columns of product number *n*."""
        whole, begin = self.whole[group], group.begin(n)
        made = _slice(new, whole, whole.rank - 1, (begin, group.columns[n]), node.output.name)
        self.part[made] = whole, begin
        return made

    def _split(self, new: Graph, node: Node, whole: Value, begin: int) -> list[Value] | None:
        """Returns a slice of heads where *node* splits the columns of a slice into heads, and these are whole ones."""
        before, after = whole.shape, node.output.shape
        heads, size, columns = (int(n.value) if isinstance(n, Const) else 0 for n in (*after[-2:], before[-1]))
        if len(after) != len(before) + 1 or after[:-2] != before[:-1] or not size or begin % size or columns % size:
            return None
        key = whole, size
        if key not in self.heads:
            self.heads[key] = new.add("reshape", [whole], shape=(*before[:-1], columns // size, size))
        return [_slice(new, self.heads[key], len(after) - 2, (begin // size, heads), node.output.name)]


def _slice(new: Graph, whole: Value, axis: int, place: tuple[int, int], name: str) -> Value:
    """Returns so many elements along an axis, given the first and their number."""
    begin, count = place
    end = begin + count
    return new.add("slice", [whole], starts=(begin,), ends=(end,), axes=(axis,), steps=(1,), inside=True, name=name)
