"""From a symbol and its weights to a graph: the inputs, then each node by its translation in the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from weft.frontends.fitting import fitting
from weft.frontends.frontend import Shapes
from weft.frontends.input_shapes import Declared, InputShapes
from weft.frontends.mxnet import ops
from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.params import TYPES, read_params
from weft.frontends.mxnet.registry import TABLE
from weft.frontends.mxnet.symbol import AGAIN, VARIABLE, Entry, Node, Symbol, read_symbol
from weft.frontends.unsupported import unsupported_operators
from weft.graph import Array, Graph
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.runtime.metadata import ModelMetadata
from weft.support.dtypes import DType, f32, from_numpy
from weft.support.errors import ModelError
from weft.support.lazy_import import import_all

import_all(ops.__path__, ops.__name__)
TABLE.seal()

WITH_LABELS: Final = (
    "SoftmaxOutput",
    "Softmax",
    "LinearRegressionOutput",
    "LogisticRegressionOutput",
    "MAERegressionOutput",
    "SVMOutput",
)
"""Operators whose second input, the labels of training, is not imported."""


def from_mxnet(symbol: Path, params: Path, shapes: Shapes | None = None) -> Graph:
    """Imports the network in the files *symbol* and *params*.

    A symbol does not say the shapes of its inputs, unless they were given when it was made: *shapes* does.

    Raises `ModelError` naming the node, and `UnsupportedOperators` listing all operators that Weft does not have.
    """
    found = read_symbol(symbol)
    used = _used(found)
    missing = _missing(found)
    if missing:
        raise unsupported_operators(dict(sorted(missing.items())), "build the network from other operators")
    graph = Graph("main")
    graph.metadata = ModelMetadata(producer_name="mxnet", graph_name=symbol.stem)
    evaluator, weights = PartialEvaluator(graph), read_params(params)
    made: dict[Entry, Operand] = {}
    for k, x in _inputs([(k, found.nodes[k]) for k in used], weights, graph, shapes).items():
        made[k, 0] = x
    _Importer(graph).translate(found, made, evaluator)
    names: set[str] = set()
    for k, n in found.heads:
        name = found.nodes[k].name if n == 0 else f"{found.nodes[k].name}_{n}"
        if name not in names:
            graph.output(evaluator.value(_read(made, (k, n), "results")), name)
        names.add(name)
    return graph


def _missing(symbol: Symbol) -> dict[str, list[str]]:
    """Returns the operators that Weft does not have, of symbols inside of nodes too, and the nodes that use them."""
    missing: dict[str, list[str]] = {}
    waiting = [symbol]
    while waiting:
        now = waiting.pop()
        for node in [now.nodes[k] for k in _used(now)]:
            waiting += node.subgraphs
            if node.op not in TABLE and node.op != VARIABLE:
                missing.setdefault(node.op, []).append(node.name)
    return missing


def _used(symbol: Symbol) -> list[int]:
    """Returns the nodes that the results are computed from, in their order."""
    waiting, used = [k for k, _ in symbol.heads], set[int]()
    while waiting:
        k = waiting.pop()
        if k not in used:
            used.add(k)
            waiting += [i for i, _ in _inputs_of(symbol.nodes[k])]
    return sorted(used)


def _inputs_of(node: Node) -> list[Entry]:
    return list(node.inputs[:1]) if node.op in WITH_LABELS else list(node.inputs)


def _inputs(
    used: list[tuple[int, Node]], weights: dict[str, Array], graph: Graph, shapes: Shapes | None
) -> dict[int, Operand]:
    """Declares the inputs, which are the variables without weights; others are constants."""
    variables = [(k, n) for k, n in used if n.op == VARIABLE]
    declared: dict[str, Declared | None] = {n.name: _declared(n) for _, n in variables if n.name not in weights}
    found = InputShapes(shapes or {}).resolve(declared, graph)
    made: dict[int, Operand] = {}
    for k, n in variables:
        if n.name in weights:
            made[k] = CompileTimeConstant(weights[n.name], n.name)
        else:
            made[k] = graph.input(n.name, found[n.name], _type_of(n))
    return made


def _type_of(n: Node) -> DType:
    """Returns the type of elements that a variable was made with; float32 where none is known."""
    number = n.attributes.get("__dtype__", "-1")
    numpy = TYPES.get(int(number)) if number.isdecimal() and len(number) < 3 else None
    return f32 if numpy is None else from_numpy(np.dtype(numpy))


def _declared(n: Node) -> Declared | None:
    """Returns the shape that a variable was made with, 0 or -1 in it for sizes that are not known."""
    text = n.attributes.get("__shape__", "")
    parts = [p.strip() for p in text.strip("()[] ").split(",") if p.strip()]
    if not parts or not all(p.lstrip("-").isdecimal() and len(p) < 12 for p in parts):
        return None
    return [int(p) if int(p) > 0 else None for p in parts]


class _Importer:
    """The program that symbols inside of nodes are imported by."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def translate(self, symbol: Symbol, made: dict[Entry, Operand], evaluator: PartialEvaluator) -> None:
        """Adds the results of all nodes to those *made*, among which the variables are."""
        for k in _used(symbol):
            if symbol.nodes[k].op != VARIABLE:
                for n, y in enumerate(self._translated(evaluator, symbol.nodes[k], made)):
                    made[k, n] = y

    def run(self, symbol: Symbol, given: Sequence[Operand], b: Builder) -> list[Operand]:
        """Returns the results of a symbol inside of a node, of which *given* are the variables."""
        if len(given) != len(symbol.variables):
            b.fail(f"it gives {len(given)} values for {len(symbol.variables)} variables", AGAIN)
        made: dict[Entry, Operand] = {(k, 0): x for k, x in zip(symbol.variables, given, strict=True)}
        self.translate(symbol, made, b.evaluator)
        return [_read(made, e, b.source) for e in symbol.heads]

    def _translated(self, evaluator: PartialEvaluator, node: Node, made: dict[Entry, Operand]) -> tuple[Operand, ...]:
        c = Call(evaluator, node, [_read(made, e, node.source) for e in _inputs_of(node)], self)
        self.graph.is_extended |= TABLE.is_foreign(node.op)
        with fitting(node.source, "attributes and inputs", AGAIN):
            results = TABLE[node.op](c)
        return results if isinstance(results, tuple) else (results,)


def _read(made: dict[Entry, Operand], entry: Entry, source: str) -> Operand:
    if entry not in made:
        raise ModelError(f"it uses result {entry[1]} of node {entry[0]}, which has none", where=source, hint=AGAIN)
    return made[entry]
