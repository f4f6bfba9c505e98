"""From an ONNX graph to Weft's: names, symbolic sizes, weights, and each node by its translation in the table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto, ValueInfoProto

from weft.frontends.input_shapes import Declared, InputShapes
from weft.frontends.onnx import translations  # noqa: F401  (fills TABLE)
from weft.frontends.onnx.call import Call, HeldResults, Operand
from weft.frontends.onnx.check import check_operators, check_outputs, in_order, opsets_of, subgraphs
from weft.frontends.onnx.expansion import MOST_NODES, check_expansion
from weft.frontends.onnx.file.declared_ranks import declared_ranks
from weft.frontends.onnx.file.read import Source, read_model
from weft.frontends.onnx.file.tensors import dense_array, element_type, to_array
from weft.frontends.onnx.functions import Functions
from weft.frontends.onnx.held import Held, Maps, NoTensor, named_tensors, tensors_of
from weft.frontends.onnx.held_inputs import Given, input_parts, shapes_of_parts
from weft.frontends.onnx.model_node import DAMAGED, check_count, domain_of, source_of
from weft.frontends.onnx.rank_choices import RankChoices
from weft.frontends.onnx.registry import STRING_TABLE, TABLE, Entry, StringEntry
from weft.frontends.onnx.string_pool import StringPool, is_string_tensor, string_array, text_attributes
from weft.frontends.random_seeds import RandomSeeds
from weft.frontends.string_ids import Strings
from weft.graph import Array, Constant, Graph, Value, is_matched
from weft.graph.builder import (
    Builder,
    CompileTimeConstant,
    Inputs,
    PartialEvaluator,
    Results,
    round_once,
    rounded,
    widened,
)
from weft.ir import ExprLike, free_vars
from weft.support.dtypes import DType, from_numpy, handle
from weft.support.errors import ModelError, UnknownValues, WeftError
from weft.support.text import printable_line

LATE_HINT: Final = (
    "one of these sizes depends on the values of inputs, so that it is not known to fit the others: "
    "export the model with that shape as a constant"
)
"""The hint of errors about shapes of which a part is known only when the model runs."""

Scope: TypeAlias = dict[str, Held | None]


def from_onnx(
    model: str | Path | bytes | ModelProto,
    shapes: Mapping[str, Given] | None = None,
    values: Mapping[str, Array] | None = None,
    states: Collection[str] = (),
) -> Graph:
    """Imports an ONNX model: a path, the bytes of a file, or a `ModelProto`.

    *shapes* gives sizes to symbolic dimensions by name (`{"batch": 4}`), or ranges (`{"batch": Dim(1, 64)}`), whole shapes to
    inputs (`{"x": (1, 3, 224, 224)}`, where a string keeps a dimension symbolic), to sequences the shapes of their tensors, and
    None to optional inputs that are absent; see `weft.frontends.onnx.held`. *values* fixes inputs to arrays: they are no longer
    inputs of the graph, and may decide shapes. Inputs with an initializer are constants; those that match the patterns *states*
    are inputs, and their initializers the graph's `defaults`. Dimensions without a number or a name get one from their input.

    Raises `ModelError` for a model that is damaged or uses an unsupported feature, naming the node, and `UnsupportedOperators`
    listing every operator that Weft does not have.
    """
    source = read_model(model)
    choices = RankChoices()
    return choices.read(lambda: _Importer(source, shapes or {}, choices).run(values or {}, states))


class _Importer:
    def __init__(self, source: Source, shapes: Mapping[str, Given], choices: RankChoices) -> None:
        self.source = source
        self.choices = choices
        self.proto = source.proto.graph
        self.opsets = opsets_of(source.proto)
        self.shapes = shapes
        self.graph = Graph(self.proto.name or "main")
        self.graph.metadata = source.metadata()
        self.evaluator = PartialEvaluator(self.graph)
        self.functions = Functions(source.proto)
        self.strings = StringPool(source.proto)
        self.random = RandomSeeds(Builder(self.evaluator, "the seed of a call"), lambda b: b.add("fresh_seed"))
        self.makers: dict[str, str] = {}
        self.inside = ""  # the node whose function is being expanded
        self.left = MOST_NODES  # nodes that may still be imported

    @cached_property
    def declared_ranks(self) -> Mapping[str, int]:
        """The numbers of dimensions that the model declares, by the tensors' names."""
        return declared_ranks(self.proto)

    def run(self, values: Mapping[str, Array], states: Collection[str]) -> Graph:
        """Imports the whole model."""
        if not self.proto.output:
            raise ModelError(
                "the model's graph is empty: it has no outputs",
                where=self.proto.name or None,
                hint="export the model again",
            )
        self.left = check_expansion(self.proto, self.opsets, self.functions)
        check_operators(self.proto, self.opsets, self.functions)
        scope = self._weights()
        self._defaults(scope, states)
        self._inputs(scope, values)
        self._nodes(self.proto, scope)
        check_outputs(self.proto, scope)
        for out in self.proto.output:
            made = self._given(_made(scope, out.name), out.name)
            for name, v in named_tensors(out.name, made):
                if v.rank != self.declared_ranks.get(name, v.rank):
                    self.choices.doubt()
                self.graph.output(self.evaluator.value(v, f"output {name}"), name)
        return self.graph

    def _weights(self) -> Scope:
        found: Scope = {name: CompileTimeConstant(array, name) for name, array in self.source.initializers().items()}
        found.update(self._string_weights(self.proto))
        for sparse in self.proto.sparse_initializer:
            found[sparse.values.name] = CompileTimeConstant(dense_array(sparse), sparse.values.name)
        return found

    def _defaults(self, scope: Scope, states: Collection[str]) -> None:
        """Takes from *scope* the initializers of inputs that are to be states."""
        for name in [i.name for i in self.proto.input if i.name in scope and is_matched(states, i.name)]:
            value = scope[name]
            if isinstance(value, CompileTimeConstant):
                del scope[name]
                self.graph.defaults[name] = Constant(f"{name}_initial", value.array)

    def _string_weights(self, graph: GraphProto) -> Iterator[tuple[str, Held]]:
        """Yields the weights of a graph that are strings."""
        for t in filter(is_string_tensor, graph.initializer):
            yield t.name, Strings(self.strings.tensor(string_array(t)))

    def _given(self, made: Held, name: str) -> Held:
        """Returns an output as a caller is given it: strings are more than ids to him; of maps, their scores."""
        if isinstance(made, Maps):
            known = self.graph.metadata
            self.graph.metadata = replace(known, maps={**known.maps, name: made.labels})
            return made.scores
        if not isinstance(made, Strings):
            return made
        ids, pool = (self.evaluator.value(v, name) for v in (made.ids, self.strings.constant))
        return self.graph.add("strings_give", [ids, pool], source=f"output {name}")

    def _input(self, info: ValueInfoProto, shape: Sequence[ExprLike]) -> Held:
        """Declares an input; nodes compute with the ids of an input's strings."""
        name, element = info.name, info.type.tensor_type.elem_type
        if element != TensorProto.STRING:
            return self.graph.input(name, shape, element_type(element, f"input {name}"))
        given = self.graph.input(name, shape, handle)
        pool = self.evaluator.value(self.strings.constant, name)
        return Strings(self.graph.add("strings_take", [given, pool], source=f"input {name}"))

    def _inputs(self, scope: Scope, values: Mapping[str, Array]) -> None:
        """Declares the inputs; one that is also a weight, or among *values*, is a constant."""
        own = [i for i in self.proto.input if i.name not in scope]
        parts = [input_parts(i, self.shapes, values) for i in own]
        declared = [t for p in parts for t in p.tensors]
        unknown = sorted(set(values) - {i.name for i in declared})
        if unknown:
            names = printable_line(", ".join(i.name for i in declared)) or "none"
            raise ModelError(f"the model has no input {unknown[0]!r}", hint=f"its inputs are: {names}")
        fixed = {name: CompileTimeConstant(array, name, _type_of(array, name)) for name, array in values.items()}
        shapes = InputShapes(shapes_of_parts(parts, self.shapes))
        types = shapes.resolve({i.name: _declared_shape(i) for i in declared if i.name not in fixed}, self.graph)
        for i in declared:
            if i.name not in fixed:
                scope[i.name] = self._input(i, types[i.name])
                continue
            dtype = element_type(i.type.tensor_type.elem_type, f"input {i.name}")
            if fixed[i.name].dtype is not dtype:
                raise ModelError(
                    f"the input {i.name!r} is of type {dtype}, but its value is of {fixed[i.name].dtype}",
                    hint="export the model again, with one type for both",
                )
            scope[i.name] = fixed[i.name]
        builder = Builder(self.evaluator, "")
        scope.update([(p.name, p.held(builder, scope)) for p in parts])

    def _nodes(self, graph: GraphProto | FunctionProto, scope: Scope) -> None:
        """Imports the nodes of *graph* in order, binding their outputs in *scope*."""
        for node in in_order(graph, scope):
            for name, made in zip(node.output, self._node(node, scope), strict=False):
                if name and made is not None:
                    scope[name] = made
                    self.makers[name] = self._source(node)
            self._check_made(node, scope)

    def _node(self, node: NodeProto, scope: Scope) -> Sequence[Held | None]:
        self.left -= 1
        if self.left < 0:
            raise ModelError(
                "its loops, one inside the other, make too many nodes when they are written out",
                where=self._source(node),
                hint=f"Weft writes out at most {MOST_NODES:,} nodes; export the model with fewer or shorter loops",
            )
        domain = domain_of(node)
        opset = self.opsets.get(domain, 1)
        inputs = [scope[v] if v else None for v in node.input]
        if self.functions.is_known(node, opset):
            return self._function(node, opset, inputs)

        def subgraph(
            inner: GraphProto,
            given: Mapping[str, Held],
            evaluator: PartialEvaluator | None = None,
            step: Operand | None = None,
        ) -> list[Held]:
            outer = self.graph, self.evaluator, self.random
            if evaluator is not None:
                self.graph, self.evaluator = evaluator.graph, evaluator
                self.random = self.random.inside(Builder(evaluator, source), step)
            try:
                return self._subgraph(inner, {**scope, **given})
            finally:
                self.graph, self.evaluator, self.random = outer

        def call(evaluator: PartialEvaluator, given: Sequence[Held | None]) -> Call:
            made = Call(node, given, opset, evaluator, subgraph, self.makers, source, self.strings, self.random)
            made.choices = self.choices
            made.declared_rank = self.declared_ranks.get(node.output[0]) if node.output else None
            return made

        before, source = len(self.graph.nodes), self._source(node)
        check_count(node, opset, source)
        entry = self._entry(node, domain, inputs)
        self.graph.is_extended |= TABLE.is_foreign((domain, node.op_type))
        try:
            results: Sequence[Held | None]
            if entry.holds or any(True for _ in subgraphs(node)):  # control flow: each node in it rounds for itself
                results = _each_of(entry.translate(call(self.evaluator, inputs)))
            else:
                tensors = _tensors(inputs, source)
                results = round_once(
                    lambda *given: _tensor_results(entry.translate(call(*given))), self.evaluator, tensors, source
                )
        except UnknownValues:
            raise
        except ModelError as error:
            if self._has_late_sizes(inputs):
                raise UnknownValues(error.message, where=error.where, hint=LATE_HINT) from error
            raise
        except WeftError as error:
            raise ModelError(error.message, where=source, hint=error.hint) from error
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise _unfitting(call(self.evaluator, inputs), error) from error
        _name(node, results, {v for n in self.graph.nodes[before:] for v in n.outputs})
        return results

    def _entry(self, node: NodeProto, domain: str, inputs: Sequence[Held | None]) -> Entry | StringEntry:
        """Returns how a node is translated, which is another way where it has to do with strings."""
        on_strings = STRING_TABLE.get((domain, node.op_type))
        makes = [a for a in node.attribute if a.name == "to" and a.i == TensorProto.STRING]
        if on_strings is not None and (makes or text_attributes(node) or any(isinstance(v, Strings) for v in inputs)):
            return on_strings
        return TABLE[domain, node.op_type]

    def _has_late_sizes(self, inputs: Sequence[Held | None]) -> bool:
        """Tells whether the shape of an input has a size of which only a run tells whether it fits others."""
        late = {found.size for found in self.graph.late_sizes}
        return bool(late) and any(
            v in late for h in inputs if h is not None for x in tensors_of(h) for s in x.shape for v in free_vars(s)
        )

    def _source(self, node: NodeProto) -> str:
        return self.inside or source_of(node)

    def _function(self, node: NodeProto, opset: int, inputs: Sequence[Held | None]) -> Sequence[Held | None]:
        """Imports the body of the function that *node* calls; messages name the node.

        An operator that ONNX defines as a function rounds once, as one operator; a function of the model's, at each node.
        """
        dtypes = self.functions.output_types(node, opset, inputs)
        given: Sequence[Held | None] = inputs
        if dtypes is not None:
            given = widened(self.evaluator, _tensors(inputs, self._source(node)), self._source(node))
        body = self.functions.body(node, opset, given)
        scope: Scope = dict.fromkeys(body.input)
        scope.update(zip(body.input, given, strict=False))
        outer = self.opsets, self.inside
        self.opsets = {**self.opsets, **opsets_of(body)}
        self.inside = self.inside or source_of(node)
        try:
            check_operators(body, self.opsets, self.functions)
            self._nodes(body, scope)
        finally:
            self.opsets, self.inside = outer
        made = [scope.get(name) for name in body.output]
        if dtypes is None:
            return made
        return rounded(self.evaluator, _tensors(made, self._source(node)), dtypes, self._source(node))

    def _subgraph(self, inner: GraphProto, scope: Scope) -> list[Held]:
        """Imports a nested graph in place and returns its outputs."""
        scope.update(
            (t.name, CompileTimeConstant(to_array(t, folder=self.source.folder), t.name))
            for t in inner.initializer
            if not is_string_tensor(t)
        )
        scope.update(self._string_weights(inner))
        self._nodes(inner, scope)
        check_outputs(inner, scope)
        return [_made(scope, o.name) for o in inner.output]

    def _check_made(self, node: NodeProto, scope: Scope) -> None:
        for name in node.output:
            if name and name not in scope:
                raise ModelError(
                    f"its output {name!r} is not supported", where=source_of(node), hint="export the model without it"
                )


def _unfitting(call: Call, error: Exception) -> ModelError:
    """Describes a node whose inputs and attributes its translation can't handle."""
    given = ", ".join("-" if v is None else repr(v) for v in call.held)
    attributes = ", ".join(f"{k}={v!r}" for k, v in call.attributes.items())
    return ModelError(
        f"its inputs and attributes do not fit together ({type(error).__name__}: {error}); given {given}; {attributes}",
        where=call.source,
        hint="check the model with onnx.checker.check_model(model, full_check=True); if it passes, this is a bug in Weft",
    )


def _declared_shape(info: ValueInfoProto) -> Declared | None:
    """Returns the sizes that the model declares of an input: numbers, names or None; None for an unknown number of them."""
    if not info.type.tensor_type.HasField("shape"):
        return None
    return [_declared_size(d) for d in info.type.tensor_type.shape.dim]


def _declared_size(d: TensorShapeProto.Dimension) -> int | str | None:
    """Returns a size; PaddlePaddle's exporter declares -1 where it knows none, and tools that print shapes the name `?`."""
    if d.HasField("dim_value"):
        return d.dim_value if d.dim_value >= 0 else None
    return d.dim_param if d.dim_param not in ("", "?") else None


def _type_of(array: Array, name: str) -> DType:
    try:
        return from_numpy(array.dtype)
    except KeyError as error:
        raise ModelError(
            f"the value of the input {name!r} is of type {array.dtype}, which is not supported",
            hint="give it as numbers of one of ONNX's types",
        ) from error


def _made(scope: Scope, name: str) -> Held:
    """Returns the value of a name; raises `ModelError` for one that stands for an absent optional value."""
    found = scope[name]
    if found is None:
        raise ModelError(f"the output {name!r} has no value", hint="export the model without this output")
    return found


def _tensors(held: Sequence[Held | None], source: str) -> Inputs:
    """Returns the inputs of an operator on tensors; raises `ModelError` for one that is a sequence, or that is absent."""
    for i, v in enumerate(held):
        if isinstance(v, NoTensor):
            raise ModelError(f"its input {i} is {v!r}, and it takes tensors", where=source, hint=DAMAGED)
    return [v for v in held if not isinstance(v, NoTensor)]


def _each_of(made: HeldResults) -> Sequence[Held | None]:
    return made if isinstance(made, tuple) else (made,)


def _tensor_results(made: HeldResults) -> Results:
    """Returns the results of an operator on tensors."""
    results = _each_of(made)
    assert not any(isinstance(v, NoTensor) for v in results)  # it says so (`Entry.holds`)
    return tuple([v for v in results if not isinstance(v, NoTensor)])


def _name(node: NodeProto, results: Sequence[Held | None], made: set[Value]) -> None:
    """Gives the values that a node has *made* the names that the model has for them."""
    for name, value in zip(node.output, results, strict=False):
        if name and isinstance(value, Value) and value in made:
            value.name = name
