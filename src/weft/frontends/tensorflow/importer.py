"""From a model of TensorFlow to a graph: its inputs, then the nodes that its outputs need, functions where they are called."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from weft.frontends.frontend import Shapes
from weft.frontends.input_shapes import Declared, InputShapes
from weft.frontends.string_ids import KnownStrings, StringIds, Strings
from weft.frontends.tensorflow.file.graph_def import FLOW, FunctionDef, GraphDef, NodeDef
from weft.frontends.tensorflow.file.model_files import Port, SourceModel, read_model, result_of
from weft.frontends.tensorflow.lookup_tables import filled, initializer_of
from weft.frontends.tensorflow.node_order import in_order, node_of, taken
from weft.frontends.tensorflow.structured_control_flow import structured
from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, ComplexTensor, Held, Variable
from weft.frontends.tensorflow_operators.complex_numbers import joined
from weft.frontends.tensorflow_operators.importing import named, translated
from weft.frontends.tensorflow_operators.load_translations import load
from weft.frontends.tensorflow_operators.registry import OUTPUTS, TABLE, translation_of
from weft.frontends.unsupported import unsupported_operators
from weft.frontends.wire_format import Malformed
from weft.graph import Graph, Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.runtime.metadata import ModelMetadata
from weft.support.dtypes import DType
from weft.support.errors import ModelError

load()

MOST_CALLS: Final = 100_000
"""Nodes that may be imported; functions that are called several times multiply them."""

HANDLES: Final = ("VarHandleOp", "VariableV2", "Variable")
TABLES: Final = ("HashTableV2", "HashTable")
INPUTS: Final = ("Placeholder",)
_WRITES: Final = ("Assign", "ResourceScatter", "ResourceApply", "LookupTableInsert")


def from_tensorflow(model: str | os.PathLike[str] | bytes, shapes: Shapes | None = None) -> Graph:
    """Imports a saved model, by its folder or its file, or a frozen graph, by its path or bytes.

    Inputs and outputs are those of the signature `serving_default`, or the only one; of a frozen graph, its placeholders, and the
    nodes whose results no other node takes. Complex outputs are real ones [..., 2]. *shapes* gives sizes to open dimensions by
    name, or whole shapes to inputs.

    Raises `ModelError` for a model that is damaged or uses an unsupported attribute, naming the node, and `UnsupportedOperators`
    listing every operator that Weft does not have.
    """
    try:
        source = structured(read_model(model))
        _check_operators(source)
        return _Importer(source).run(shapes)
    except Malformed as error:
        raise ModelError("a node of the model is damaged", hint=SAVE_AGAIN) from error
    except RecursionError as error:
        raise ModelError("its functions call one another too deeply", hint=SAVE_AGAIN) from error


def _check_operators(source: SourceModel) -> None:
    """Raises `UnsupportedOperators` for the operators that outputs need and Weft lacks."""
    missing: dict[str, list[str]] = {}
    seen: set[str] = set()
    waiting: list[tuple[str, Sequence[NodeDef], Iterable[str]]] = [("", source.graph.nodes, source.outputs.values())]
    while waiting:
        inside, nodes, ends = waiting.pop()
        known = {n.name: n for n in nodes}
        for node in in_order({n.name: n for n in nodes}, ends, inside, strict=False):
            if node.op not in TABLE and node.op not in (*HANDLES, *INPUTS, *TABLES):
                missing.setdefault(node.op, []).append(f"{inside}{node.name}")
            for name in taken(node, known):
                f = source.graph.functions.get(name)
                if f is not None and name not in seen:
                    seen.add(name)
                    waiting.append((f.inside, f.nodes, f.results))
    if missing:
        raise unsupported_operators(dict(sorted(missing.items())), _hint(missing))


def _hint(missing: Mapping[str, list[str]]) -> str:
    if any(op in FLOW for op in missing):
        return "freeze the model with lower_control_flow=False, which leaves its control flow in functions"
    return "build the model without these operators"


class _Importer:
    """Imports a model; it is the library of its functions, which nodes call by name."""

    def __init__(self, source: SourceModel) -> None:
        self.source = source
        self.library: GraphDef = source.graph
        self.graph = Graph("main")
        self.graph.metadata = ModelMetadata(producer_name="tensorflow")
        self.evaluator = PartialEvaluator(self.graph)
        self.images: dict[Value, Operand] = {}
        self.constants: dict[int, Held] = {}
        self.strings: StringIds = KnownStrings(source.texts())
        self.left = MOST_CALLS
        self.open: list[str] = []

    def run(self, shapes: Shapes | None) -> Graph:
        """Imports the whole model."""
        if not self.source.outputs:
            raise ModelError("the model has no outputs", hint=SAVE_AGAIN)
        scope = self._inputs(shapes)
        self._nodes(self.source.graph.nodes, self.source.outputs.values(), scope, "")
        for name, tensor in self.source.outputs.items():
            made = _result(scope, tensor, f"output {name}")
            if isinstance(made, ComplexTensor):
                made = joined(Builder(self.evaluator, f"output {name}"), made)
            if isinstance(made, Strings):
                made = self.strings.given(Builder(self.evaluator, f"output {name}"), made)
            if not isinstance(made, Value | CompileTimeConstant):
                raise ModelError(f"the output {name!r} is no tensor", hint="save the model with tensors as outputs")
            self.graph.output(self.evaluator.value(made, f"output {name}"), name)
        return self.graph

    def _inputs(self, shapes: Shapes | None) -> dict[str, Sequence[Held]]:
        """Declares the inputs; returns them by the names of their nodes."""
        inputs = self.source.inputs
        sizes = InputShapes(shapes or {}).resolve({n: _declared(p) for n, p in inputs.items()}, self.graph)
        scope: dict[str, Sequence[Held]] = {}
        for name, port in inputs.items():
            if port.dtype == "string":
                b = Builder(self.evaluator, f"input {name}")
                scope[node_of(port.tensor)] = [self.strings.input(self.graph, b, name, sizes[name])]
                continue
            if not isinstance(port.dtype, DType):
                raise ModelError(
                    f"the input {name!r} is of {port.dtype}, which is not supported",
                    hint="build the model with numbers or bools",
                )
            scope[node_of(port.tensor)] = [self.graph.input(name, sizes[name], port.dtype)]
        return scope

    def _nodes(
        self, nodes: Sequence[NodeDef], ends: Iterable[str], scope: dict[str, Sequence[Held]], inside: str
    ) -> None:
        """Imports the nodes that *ends* need, binding their results in *scope*, which has the arguments."""
        by_name = {n.name: n for n in nodes if n.name not in scope}
        for node in in_order(by_name, ends, inside):
            scope[node.name] = self._node(node, scope, inside)

    def _node(self, node: NodeDef, scope: Mapping[str, Sequence[Held]], inside: str) -> Sequence[Held]:
        self.left -= 1
        if self.left < 0:
            raise ModelError(f"the model has more than {MOST_CALLS:,} calls of operators", hint="call fewer functions")
        source = f"{node.op} {inside}{node.name}"
        if node.op in HANDLES:
            return [self._variable(node)]
        if node.op in TABLES:
            return [self._table(node)]
        if node.op in INPUTS:
            raise ModelError("it is an input that the signature does not have", where=source, hint=SAVE_AGAIN)
        if node.op == "Const" and id(node) in self.constants:
            return [self.constants[id(node)]]
        inputs = [_result(scope, name, source) for name in node.inputs]
        c = Call(self.evaluator, source, node.op, inputs, node.attributes, self.images, self)
        graph = self.evaluator.graph
        before = len(graph.nodes)
        graph.is_extended |= TABLE.is_foreign(node.op)
        results = translated(c, lambda: _as_tuple(translation_of(c)(c)), 0)
        named(graph, before, results, [node.name])
        if node.op == "Const":
            self.constants[id(node)] = results[0]
        return with_names(node.op, results)

    def _variable(self, node: NodeDef) -> Held:
        """Returns a variable; one held by reference is its value."""
        found = self.constants.get(id(node))
        if found is None:
            array = self.source.variables.get(node.name)
            if array is None:
                raise ModelError(
                    "the value of this variable is not in the checkpoint, or of a type that is not supported",
                    where=f"{node.op} {node.name}",
                    hint="save the model with all of its variables",
                )
            value = self.strings.tensor(array) if array.dtype == object else CompileTimeConstant(array, node.name)
            found = self.constants[id(node)] = Variable(node.name, value) if node.op == "VarHandleOp" else value
        return found

    def _table(self, node: NodeDef) -> Held:
        """Returns a table with the keys and values that the model puts into it when it is loaded."""
        found = self.constants.get(id(node))
        if found is None:
            source = initializer_of(self.source, node)
            scope: dict[str, Sequence[Held]] = {}
            nodes, inside, imports = self.source.graph.nodes, "", source.node
            if source.function is not None:
                given = dict(zip(source.function.arguments, source.inputs, strict=False))
                self._nodes(nodes, [i for i in given.values() if node_of(i) != node.name], scope, "")
                scope = {a: [_result(scope, i, node.name)] for a, i in given.items() if node_of(i) in scope}
                nodes, inside = source.function.nodes, source.function.inside
            ends = imports.inputs[1:]
            self._nodes(nodes, ends, scope, inside)
            held = [_result(scope, i, imports.name) for i in ends]
            b = Builder(self.evaluator, f"{node.op} {inside}{imports.name}")
            found = self.constants[id(node)] = filled(b, self.source, imports, held, self.strings)
        return found

    def call(self, name: object, inputs: Sequence[Held], evaluator: PartialEvaluator | None = None) -> list[Held]:
        """Imports a function of the library."""
        f = self._function(name)
        if len(inputs) != len(f.arguments) or f.name in self.open:
            raise ModelError(
                f"the function {f.name} takes {len(f.arguments)} arguments, and can't call itself", hint=SAVE_AGAIN
            )
        outer = self.evaluator
        self.evaluator = evaluator or outer
        self.open.append(f.name)
        try:
            scope: dict[str, Sequence[Held]] = {a: [x] for a, x in zip(f.arguments, inputs, strict=True)}
            self._nodes(f.nodes, f.results, scope, f.inside)
            return [_result(scope, r, f.name) for r in f.results]
        finally:
            self.evaluator = outer
            self.open.pop()

    def _function(self, name: object) -> FunctionDef:
        f = self.library.functions.get(str(name))
        if f is None:
            raise ModelError(f"there is no function {name!r}", hint=SAVE_AGAIN)
        for node in f.nodes:
            if node.op.startswith(_WRITES) and _is_seen(f, node):
                raise ModelError(
                    "variables that change from call to call are not supported",
                    where=f"{node.op} {f.inside}{node.name}",
                    hint="save the model for inference: training=False, and no state",
                )
        return f

    def unchanged(self, name: object) -> list[int | None]:
        """Returns, for each result of a function, the number of the argument that it is."""
        f = self._function(name)
        nodes = {n.name: n for n in f.nodes}
        return [_argument(f, nodes, r) for r in f.results]


def _is_seen(f: FunctionDef, write: NodeDef) -> bool:
    """Tells whether a function's results may depend on what a node writes: they read its variable."""
    needed = list(in_order({n.name: n for n in f.nodes}, f.results, f.inside, strict=False))
    variable = node_of(write.inputs[0]) if write.inputs else ""
    read = [*f.results, *[i for n in needed for i in n.inputs]]
    return write in needed or variable in map(node_of, read)


def _argument(f: FunctionDef, nodes: Mapping[str, NodeDef], tensor: str) -> int | None:
    """Returns the number of the argument that a tensor of a function is; None for one that is computed."""
    for _ in range(len(nodes) + 1):
        name = node_of(tensor)
        if name in f.arguments:
            return f.arguments.index(name)
        node = nodes.get(name)
        if node is None or node.op != "Identity" or not node.inputs:
            return None
        tensor = node.inputs[0]
    return None


def _as_tuple(made: Held | tuple[Held, ...]) -> tuple[Held, ...]:
    return made if isinstance(made, tuple) else (made,)


def _result(scope: Mapping[str, Sequence[Held]], tensor: str, where: str) -> Held:
    """Returns the result of a node that `node`, `node:1`, or in a function `node:output:1`, names."""
    name, *rest = tensor.split(":")
    results = scope.get(name)
    if results is None:
        raise ModelError(f"there is no node {name!r}", where=where, hint=SAVE_AGAIN)
    at = result_of(tensor)
    if len(rest) == 2 and isinstance(results, NamedResults):
        at += results.names.index(rest[0]) if rest[0] in results.names else 0
    if at >= len(results):
        raise ModelError(f"the node {name!r} has no result {at}", where=where, hint="build the model without it")
    return results[at]


class NamedResults(tuple[Held, ...]):
    """The results of a node whose operator has several outputs, with the names of these."""

    names: tuple[str, ...] = ()


def with_names(op: str, results: Sequence[Held]) -> Sequence[Held]:
    """Returns results with the names of the operator's outputs, if it has several."""
    if op not in OUTPUTS:
        return results
    made = NamedResults(results)
    made.names = OUTPUTS[op]
    return made


def _declared(port: Port) -> Declared | None:
    if port.shape is None:
        return None
    return ["batch" if n < 0 and d == 0 else None if n < 0 else n for d, n in enumerate(port.shape)]
