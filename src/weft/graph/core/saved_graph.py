"""Graphs in files: a NumPy archive (.npz) of the constants' elements and of one JSON text for all else.

Nothing in such a file is executed when it is read. Values and symbolic sizes are referred to by number in the text, so their
names may be any strings. Constants beyond `SAVED_CONSTANTS` are kept by shape and type alone, and read back as random elements.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.cost import SAVED_CONSTANTS
from weft.graph.core.conditions import Guard, LateSize, Requirement
from weft.graph.core.dimension import Dimension
from weft.graph.core.graph import Attribute, Graph, Node
from weft.graph.core.graph_state import Growth, State
from weft.graph.core.graph_values import Constant, Parameter, Value
from weft.graph.regions.region_operators import REGION_OPERATORS
from weft.ir import Expr, Var, free_vars, parse_expr, print_expr, substitute
from weft.ops import OPERATORS, TensorType
from weft.support.dim import parse_dim
from weft.support.dtypes import DType, parse_dtype
from weft.support.errors import ParseError

_TEXT: Final = "graph"


def save_graph(graph: Graph, path: Path, facts: Mapping[str, Any]) -> None:
    """Writes *graph* to the file *path*, and *facts*, which must be representable in JSON, with it."""
    writer = _Writer()
    text = json.dumps({"facts": dict(facts), "graph": writer.graph(graph)})
    arrays: dict[str, Any] = {_TEXT: np.frombuffer(text.encode(), np.uint8), **writer.arrays}
    np.savez(path, **arrays)


def graph_text(graph: Graph) -> str:
    """Returns the text of *graph* as files have it: all of it but the elements of its constants."""
    return json.dumps(_Writer().graph(graph))


def load_graph(path: Path) -> tuple[Graph, dict[str, Any]]:
    """Reads a file of `save_graph`: the graph, and the facts that were written with it; raises `ParseError` for another file."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        read = json.loads(arrays[_TEXT].tobytes())
        return _Reader(arrays).graph(read["graph"]), read["facts"]
    except (KeyError, ValueError, TypeError) as error:
        raise ParseError(
            f"{path} holds no graph: {error}", hint="give a file that a crashed graph pass left"
        ) from error


class _Writer:
    """Converts graphs to JSON values; nested graphs share the numbering of variables."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}
        self.kept = 0
        self.sizes: dict[Var, Var] = {}

    def expr(self, e: Expr) -> str:
        for v in free_vars(e):
            self.sizes.setdefault(v, Var(f"s{len(self.sizes)}", v.dtype))
        return print_expr(substitute(e, self.sizes))

    def type(self, t: TensorType) -> list[Any]:
        return [str(t.dtype), [self.expr(s) for s in t.shape]]

    def graph(self, graph: Graph) -> dict[str, Any]:
        numbers: dict[Value, int] = {}
        for v in [*graph.inputs, *graph.constants(), *[v for n in graph.nodes for v in n.outputs]]:
            numbers[v] = len(numbers)
        return {
            "name": graph.name,
            "dims": {name: [self.expr(v), str(v.dtype), *_least(v)] for name, v in graph.dims.items()},
            **self.dimensions(graph),
            "inputs": [[v.name, self.type(v.type)] for v in graph.inputs],
            "constants": [self.constant(c) for c in graph.constants()],
            "nodes": [self.node(n, numbers) for n in graph.nodes],
            "guards": [self.guard(g, numbers) for g in graph.guards],
            "late_sizes": [
                [self.expr(late.size), numbers[late.value], late.element, late.what, late.source]
                for late in graph.late_sizes
            ],
            "requirements": [
                [self.expr(r.condition), r.message, [self.expr(e) for e in r.values]] for r in graph.requirements
            ],
            "outputs": [[name, numbers[v]] for name, v in zip(graph.output_names, graph.outputs, strict=True)],
            "states": [self.state(s) for s in graph.states],
            **self.initial_values(graph, numbers),
            "extended": graph.is_extended,
        }

    def dimensions(self, graph: Graph) -> dict[str, Any]:
        """Returns the ranges of dimensions; nothing for a graph without, so that its text is of any version of Weft."""
        found = {d.name: [self.expr(d.unit), str(d.sizes)] for d in graph.dimensions.values()}
        return {"dimensions": found} if found else {}

    def state(self, s: State) -> list[Any]:
        g = s.growth
        return [s.name] if g is None else [s.name, g.axis, self.expr(g.length), self.expr(g.bound), self.expr(g.grown)]

    def initial_values(self, graph: Graph, numbers: Mapping[Value, int]) -> dict[str, Any]:
        """Returns the constants that states begin with; nothing for a graph without, as of ranges."""
        found = [[k, numbers[s.initial]] for k, s in enumerate(graph.states) if s.initial is not None]
        return {"initial": found} if found else {}

    def constant(self, c: Constant) -> list[Any]:
        key = None
        if self.kept + c.nbytes <= SAVED_CONSTANTS:
            key = f"c{len(self.arrays)}"
            self.arrays[key] = np.ascontiguousarray(c.array).reshape(-1).view(np.uint8)
            self.kept += c.nbytes
        return [c.name, str(c.dtype), list(c.extents), key, isinstance(c, Parameter)]

    def node(self, n: Node, numbers: Mapping[Value, int]) -> dict[str, Any]:
        return {
            "op": n.op,
            "inputs": [None if v is None else numbers[v] for v in n.inputs],
            "attributes": [[k, self.attribute(v)] for k, v in n.attributes],
            "outputs": [[v.name, self.type(v.type)] for v in n.outputs],
            "source": n.source,
        }

    def guard(self, g: Guard, numbers: Mapping[Value, int]) -> list[Any]:
        limits = [[self.expr(low), self.expr(high)] for low, high in g.limits]
        return [numbers[g.least], numbers[g.greatest], limits, g.what, g.source, g.watched]

    def attribute(self, value: Attribute) -> Any:
        if isinstance(value, tuple):
            return [self.attribute(v) for v in value]
        if isinstance(value, float):
            return {"float": repr(value)}
        if isinstance(value, Expr):
            return {"expr": self.expr(value)}
        if isinstance(value, DType):
            return {"dtype": str(value)}
        return {"graph": self.graph(value)} if isinstance(value, Graph) else value


def _least(size: Var) -> list[int]:
    """Returns the least value of a size without a greatest one, if it has one."""
    return [size.limits[0]] if size.limits is not None and size.limits[1] is None else []


class _Reader:
    """The inverse of `_Writer`."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.arrays = arrays
        self.sizes: dict[str, Expr] = {}
        self.random = np.random.default_rng(0)

    def expr(self, text: str) -> Expr:
        return parse_expr(text, self.sizes)

    def type(self, read: Sequence[Any]) -> TensorType:
        return TensorType(tuple([self.expr(s) for s in read[1]]), parse_dtype(read[0]))

    def graph(self, read: Mapping[str, Any]) -> Graph:
        made = Graph(read["name"])
        self.symbols(read, made)
        made.inputs = [Value(name, self.type(t)) for name, t in read["inputs"]]
        values: list[Value] = [*made.inputs, *[self.constant(*c) for c in read["constants"]]]
        for n in read["nodes"]:
            values += made.append(self.node(n, values)).outputs
        made.guards = [
            Guard(values[a], values[b], tuple([(self.expr(low), self.expr(high)) for low, high in limits]), *rest)
            for a, b, limits, *rest in read["guards"]
        ]
        for size, number, element, what, source in read["late_sizes"]:
            late = self.sizes[size]
            assert isinstance(late, Var)
            made.late_sizes.append(LateSize(late, values[number], element, what, source))
        made.requirements = [
            Requirement(self.expr(condition), message, tuple([self.expr(e) for e in given]))
            for condition, message, given in read["requirements"]
        ]
        made.states = [self.state(*s) for s in read["states"]]
        for k, number in read.get("initial", ()):
            value = values[number]
            assert isinstance(value, Constant)
            made.states[k] = replace(made.states[k], initial=value)
        for name, number in read["outputs"]:
            made.output(values[number], name)
        made.is_extended = read["extended"]
        return made

    def symbols(self, read: Mapping[str, Any], made: Graph) -> None:
        """Adds the symbolic sizes of a graph, and the ranges of its dimensions."""
        ranges = {unit: (name, parse_dim(sizes)) for name, (unit, sizes) in read.get("dimensions", {}).items()}
        for name, (size, dtype, *least) in read["dims"].items():
            limits = ranges[size][1].units if size in ranges else (least[0], None) if least else None
            v = self.sizes.setdefault(size, Var(name, parse_dtype(dtype), limits))
            assert isinstance(v, Var)
            made.dims[name] = v
            if size in ranges:
                called, sizes = ranges[size]
                made.dimensions[called] = Dimension(called, v, sizes)

    def state(self, name: str, axis: int | None = None, *sizes: str) -> State:
        if axis is None:
            return State(name)
        length, bound, grown = map(self.expr, sizes)
        assert isinstance(length, Var)
        assert isinstance(bound, Var)
        return State(name, Growth(axis, length, bound, grown))

    def constant(self, name: str, dtype: str, extents: Sequence[int], key: str | None, trained: bool) -> Constant:
        elements = parse_dtype(dtype).numpy
        if key is None:
            array = self.random.standard_normal(extents).astype(elements)
        else:
            array = self.arrays[key].view(elements).reshape(extents)
        return (Parameter if trained else Constant)(name, array)

    def node(self, read: Mapping[str, Any], values: Sequence[Value]) -> Node:
        operator = REGION_OPERATORS.get(read["op"]) or OPERATORS.get(read["op"])
        if operator is None:
            raise ParseError(f"there is no operator {read['op']}", hint="import the module that registers it first")
        return Node(
            operator,
            tuple([None if n is None else values[n] for n in read["inputs"]]),
            tuple([(k, self.attribute(v)) for k, v in read["attributes"]]),
            [self.type(t) for _, t in read["outputs"]],
            [name for name, _ in read["outputs"]],
            read["source"],
        )

    def attribute(self, read: Any) -> Attribute:
        if isinstance(read, list):
            return tuple([self.attribute(v) for v in read])
        if not isinstance(read, dict):
            return read  # type: ignore[no-any-return]
        ((kind, value),) = read.items()
        if kind == "float":
            return float(value)
        if kind == "expr":
            return self.expr(value)
        return parse_dtype(value) if kind == "dtype" else self.graph(value)
