"""The graph IR: operator calls on tensor values.

    g = Graph("small")
    n = g.dim("batch")
    x = g.input("x", (n, 3, 8, 8), f32)
    w = g.constant(weights, "w")
    y = g.add("conv2d", [x, w], source="Conv /stem/conv", strides=(2, 2))
    g.output(g.add("relu", [y]), "y")

Values and nodes never change once made, so passes share them between graphs: a pass builds a new `Graph`, and a node whose
inputs stay the same is the very same object in both. A graph is a function; nested graphs may be attributes of a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.graph.core.conditions import Guard, LateSize, Requirement
from weft.graph.core.dimension import Dimension, bounded_dimension
from weft.graph.core.fold_budget import FoldBudget
from weft.graph.core.graph_state import State
from weft.graph.core.graph_values import (
    Array,
    Attribute,
    Attributes,
    Constant,
    NestedGraph,
    Node,
    Parameter,
    Value,
    infer,
)
from weft.ir import INDEX, Expr, ExprLike, Var, as_expr
from weft.ops import OPERATORS, TensorType, check_bytes
from weft.runtime.metadata import ModelMetadata
from weft.support.dim import Dim
from weft.support.dtypes import DType
from weft.support.errors import ModelError, WeftError
from weft.support.text import in_format

__all__ = ["Attribute", "Attributes", "Graph", "Node", "freeze_attributes", "infer"]


class Graph(NestedGraph):
    """A function of operator calls: `nodes` are in topological order, `dims` the sizes by name, `dimensions` those with ranges.

    `requirements` are checked when the graph is called, before anything is computed; `guards` while it runs, as soon as their
    values are known, so the values of guards are roots, live like outputs. So are those of `late_sizes`: sizes that are known
    only when some node has run, which nodes behind it may use as any other size. `states` are those of the last inputs and
    outputs, `metadata` the model file's own descriptions, on the graph that a frontend makes, and `defaults` the values that the
    model has for inputs, by their names, which `declare_states` takes: states begin with them. `is_extended` is true if operators
    or translations from outside took part: another process may then import the same model differently.
    """

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.output_names: list[str] = []
        self.nodes: list[Node] = []
        self.dims: dict[str, Var] = {}
        self.dimensions: dict[str, Dimension] = {}
        self.requirements: list[Requirement] = []
        self.guards: list[Guard] = []
        self.late_sizes: list[LateSize] = []
        self.states: list[State] = []
        self.defaults: dict[str, Constant] = {}
        self.metadata = ModelMetadata(graph_name=name)
        self.is_extended = False
        self.fold_budget = FoldBudget()  # the memory left for folding
        self._names: dict[str, int] = {}

    def dim(self, name: str) -> Var:
        """Returns the symbolic size called *name*, the same variable each time."""
        return self.dims.setdefault(name, Var(name, INDEX))

    def fresh_dim(self, name: str, least: int = 0) -> Var:
        """Returns a new symbolic size of at least *least*, of a name that begins with *name* and no other size has."""
        base = name
        while name in self.dims:
            name = self.fresh_name(base)
        return self.dims.setdefault(name, Var(name, INDEX, (least, None) if least else None))

    def bounded_dim(self, name: str, sizes: Dim) -> Expr:
        """Returns the symbolic size called *name*, of which *sizes* are known; see `Dimension`."""
        return bounded_dimension(name, sizes, self.dims, self.dimensions).size

    def late_size(
        self, value: Value, element: int = 0, *, name: str, what: str, source: str = "", least: int = 0
    ) -> Var:
        """Returns the size that element *element* of the integer tensor *value* is, once that is known.

        It is *what* in the message of a call in which it is less than *least*. Kernels of one that is at least 1 need no versions
        for empty tensors. The same element is the same variable each time.
        """
        if known := [late.size for late in self.late_sizes if late.value is value and late.element == element]:
            return known[0]
        self.late_sizes.append(LateSize(self.fresh_dim(name, least), value, element, what, source))
        return self.late_sizes[-1].size

    def require(self, condition: Expr, message: str, *values: Expr, source: str = "") -> None:
        """Makes calls fail with *message*, behind the name of a node, unless the symbolic sizes satisfy *condition*."""
        made = Requirement(condition, f"{in_format(source)}: {message}" if source else message, values)
        if made not in self.requirements:
            self.requirements.append(made)

    def input(self, name: str, shape: Iterable[ExprLike], dtype: DType) -> Value:
        """Adds an input of the graph; raises `ModelError` for one larger than an address space."""
        sizes = list(shape)
        try:
            check_bytes(sizes, dtype)
        except WeftError as error:
            raise ModelError(error.message, where=f"input {name}", hint=error.hint) from error
        made = Value(name, TensorType(tuple([as_expr(s, INDEX) for s in sizes]), dtype))
        self.inputs.append(made)
        return made

    def constant(self, array: Array, name: str = "") -> Constant:
        """Returns a constant; use the one object for each use of a weight, so that it is held once."""
        return Constant(name or self.fresh_name("constant"), array)

    def parameter(self, array: Array, name: str) -> Parameter:
        """Returns a constant that may change between two calls; raises `ModelError` for elements that are no floats."""
        made = Parameter(name, array)
        if not made.dtype.is_float:  # integers are indices and sizes, by which graphs are made
            raise ModelError(f"the parameter {name!r} is of {made.dtype}", hint="parameters are of floats")
        return made

    def output(self, value: Value, name: str = "") -> None:
        """Declares *value* the next output of the graph."""
        self.outputs.append(value)
        self.output_names.append(name or value.name)

    def add(
        self, op: str, inputs: Sequence[Value | None], *, source: str = "", name: str = "", **attributes: Any
    ) -> Value:
        """Adds a call of an operator with one output and returns that; see `add_many`."""
        made = self.add_many(op, inputs, source=source, names=[name] if name else [], **attributes)
        if len(made) != 1:
            raise ModelError(f"{op} has {len(made)} outputs, not one", where=source or None, hint="use add_many()")
        return made[0]

    def add_many(
        self, op: str, inputs: Sequence[Value | None], *, source: str = "", names: Sequence[str] = (), **attributes: Any
    ) -> tuple[Value, ...]:
        """Adds a call of the operator *op*, with None for an optional input that is absent, and returns its outputs.

        Lists among the attributes become tuples. Raises `ModelError` naming *source* and the inputs' shapes where the
        operator does not take them.
        """
        if op not in OPERATORS:
            raise ModelError(
                f"there is no operator {op}", where=source or None, hint="use a name in weft.ops.OPERATORS"
            )
        self.is_extended |= OPERATORS.is_foreign(op)
        frozen = freeze_attributes(attributes)
        types = infer(OPERATORS[op], tuple(inputs), frozen, source)
        given = [n or self.fresh_name(op) for n in names] + [self.fresh_name(op) for _ in types[len(names) :]]
        return self.append(Node(OPERATORS[op], tuple(inputs), frozen, types, given, source)).outputs

    def append(self, node: Node) -> Node:
        """Adds a node that is already made; its inputs must be in the graph."""
        self.nodes.append(node)
        return node

    def empty_copy(self) -> Graph:
        """Returns a graph of the same name, sizes, requirements, states and inputs, and nothing else yet."""
        made = Graph(self.name)
        made.dims, made.dimensions, made.states, made.inputs = (
            self.dims,
            self.dimensions,
            self.states,
            list(self.inputs),
        )
        made.requirements, made.fold_budget, made._names = self.requirements, self.fold_budget, dict(self._names)
        return made

    def region(self, name: str) -> Graph:
        """Returns an empty graph inside of this one: sizes, names and the budget are common to both."""
        made = Graph(name)
        made.dims, made.dimensions, made._names = self.dims, self.dimensions, self._names
        made.fold_budget = self.fold_budget
        return made

    @property
    def roots(self) -> list[Value]:
        """The values that keep nodes alive: outputs, and the values that guards check and that late sizes are read from."""
        checked = [v for g in self.guards for v in (g.least, g.greatest)]
        return [*self.outputs, *checked, *[late.value for late in self.late_sizes]]

    def users(self) -> dict[Value, list[Node]]:
        """Returns the nodes that read each value, in order; a node that reads it twice is there twice."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for v in node.inputs:
                if v is not None:
                    found.setdefault(v, []).append(node)
        return found

    def constants(self) -> list[Constant]:
        """Returns the distinct constants that nodes, outputs, guards and states use, in order of first use."""
        used = [v for n in self.nodes for v in n.inputs if isinstance(v, Constant)]
        used += [v for v in self.roots if isinstance(v, Constant)]
        return list(dict.fromkeys(used + [s.initial for s in self.states if s.initial is not None]))

    def fresh_name(self, base: str) -> str:
        """Returns a name that begins with *base* and is returned only once."""
        n = self._names[base] = self._names.get(base, -1) + 1
        return base if n == 0 else f"{base}_{n}"


def freeze_attributes(attributes: Mapping[str, Any]) -> Attributes:
    """Returns attributes as a tuple in order of name, with lists made tuples."""
    return tuple([(k, _frozen(attributes[k])) for k in sorted(attributes)])


def _frozen(value: Any) -> Attribute:
    if isinstance(value, list | tuple):
        return tuple([_frozen(v) for v in value])
    return value.item() if isinstance(value, np.generic) else value  # type: ignore[no-any-return]
