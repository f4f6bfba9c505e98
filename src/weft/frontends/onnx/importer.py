"""From an ONNX graph to Weft's: names, symbolic sizes, weights, and each node by its translation in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from onnx import GraphProto, ModelProto, NodeProto

from weft.frontends.onnx import table  # noqa: F401  (fills TABLE)
from weft.frontends.onnx.call import Call, Emitter, Operand, source_of
from weft.frontends.onnx.check import check_operators, domain_of, in_order, opsets_of
from weft.frontends.onnx.functions import expand_functions
from weft.frontends.onnx.known import Known
from weft.frontends.onnx.read import Source, read_model
from weft.frontends.onnx.registry import TABLE
from weft.frontends.onnx.shapes import Shapes, Size
from weft.frontends.onnx.tensors import dense_array, element_type, to_array
from weft.graph.graph import Array, Graph, Value
from weft.support.errors import ModelError, WeftError

Scope: TypeAlias = dict[str, Operand]


def from_onnx(
    model: str | Path | bytes | ModelProto,
    shapes: Mapping[str, int | Sequence[Size]] | None = None,
    values: Mapping[str, Array] | None = None,
) -> Graph:
    """Imports an ONNX model: a path, the bytes of a file, or a `ModelProto`.

    *shapes* gives sizes to symbolic dimensions by name (`{"batch": 4}`) or whole shapes to inputs (`{"x": (1, 3, 224, 224)}`,
    where a string keeps a dimension symbolic). *values* fixes inputs to arrays: they are no longer inputs of the graph, and may
    decide shapes. Dimensions without a number or a name get one from their input.

    Raises `ModelError` for a model that is damaged or needs what Weft can't do, naming the node, and `UnsupportedOperators`
    listing every operator that Weft does not have.
    """
    source = read_model(model)
    source.proto = expand_functions(source.proto)
    return _Importer(source, Shapes(shapes or {})).run(values or {})


class _Importer:
    def __init__(self, source: Source, shapes: Shapes) -> None:
        self.source = source
        self.proto = source.proto.graph
        self.opsets = opsets_of(source.proto)
        self.shapes = shapes
        self.graph = Graph(self.proto.name or "main")
        self.emitter = Emitter(self.graph)
        self.makers: dict[str, str] = {}

    def run(self, values: Mapping[str, Array]) -> Graph:
        """Imports the whole model."""
        if not self.proto.output:
            raise ModelError("the model's graph is empty: it has no outputs", where=self.proto.name or None)
        check_operators(self.proto, self.opsets)
        scope = self._weights()
        self._inputs(scope, values)
        self._nodes(self.proto, scope)
        for out in self.proto.output:
            self.graph.output(self.emitter.value(scope[out.name], f"output {out.name}"), out.name)
        return self.graph

    def _weights(self) -> Scope:
        found: Scope = {name: Known(array, name) for name, array in self.source.initializers().items()}
        for sparse in self.proto.sparse_initializer:
            found[sparse.values.name] = Known(dense_array(sparse), sparse.values.name)
        return found

    def _inputs(self, scope: Scope, values: Mapping[str, Array]) -> None:
        """Declares the inputs; one that is also a weight, or among *values*, is a constant."""
        declared = [i for i in self.proto.input if i.name not in scope]
        unknown = sorted(set(values) - {i.name for i in declared})
        if unknown:
            names = ", ".join(i.name for i in declared) or "none"
            raise ModelError(f"the model has no input {unknown[0]!r}", hint=f"its inputs are: {names}")
        fixed = {name: Known(array, name) for name, array in values.items()}
        types = self.shapes.resolve([i for i in declared if i.name not in fixed], self.graph)
        for i in declared:
            if i.name in fixed:
                scope[i.name] = fixed[i.name]
            else:
                dtype = element_type(i.type.tensor_type.elem_type, f"input {i.name}")
                scope[i.name] = self.graph.input(i.name, types[i.name], dtype)

    def _nodes(self, graph: GraphProto, scope: Scope) -> None:
        """Imports the nodes of *graph* in order, binding their outputs in *scope*."""
        for node in in_order(graph, scope):
            for name, made in zip(node.output, self._node(node, scope), strict=False):
                if name and made is not None:
                    scope[name] = made
                    self.makers[name] = source_of(node)
            self._check_made(node, scope)

    def _node(self, node: NodeProto, scope: Scope) -> Sequence[Operand | None]:
        domain = domain_of(node)
        entry = TABLE[domain, node.op_type]
        inputs = [scope[v] if v else None for v in node.input]

        def subgraph(inner: GraphProto, given: Mapping[str, Operand]) -> list[Operand]:
            return self._subgraph(inner, {**scope, **given})

        call = Call(node, inputs, self.opsets.get(domain, 1), self.emitter, subgraph, self.makers)
        before = len(self.graph.nodes)
        try:
            made = entry.translate(call)
        except ModelError:
            raise
        except WeftError as error:
            raise ModelError(error.message, where=call.source, hint=error.hint) from error
        results = made if isinstance(made, tuple) else (made,)
        _name(node, results, {v for n in self.graph.nodes[before:] for v in n.outputs})
        return results

    def _subgraph(self, inner: GraphProto, scope: Scope) -> list[Operand]:
        """Imports a nested graph in place and returns its outputs."""
        scope.update((t.name, Known(to_array(t, folder=self.source.folder), t.name)) for t in inner.initializer)
        self._nodes(inner, scope)
        return [scope[o.name] for o in inner.output]

    def _check_made(self, node: NodeProto, scope: Scope) -> None:
        for name in node.output:
            if name and name not in scope:
                raise ModelError(f"its output {name!r} is not supported", where=source_of(node))


def _name(node: NodeProto, results: Sequence[Operand | None], made: set[Value]) -> None:
    """Gives the values that a node has *made* the names that the model has for them."""
    for name, value in zip(node.output, results, strict=False):
        if name and isinstance(value, Value) and value in made:
            value.name = name
