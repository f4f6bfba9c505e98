"""From a TensorFlow Lite file to a graph: its inputs, then each operator by its translation in the table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from weft.frontends.frontend import Shapes
from weft.frontends.input_shapes import InputShapes
from weft.frontends.string_ids import KnownStrings, StringIds
from weft.frontends.tensorflow_operators.call import ComplexTensor, Held, Variable
from weft.frontends.tensorflow_operators.complex_numbers import joined
from weft.frontends.tensorflow_operators.importing import named, translated
from weft.frontends.tensorflow_operators.load_translations import load
from weft.frontends.tflite import ops
from weft.frontends.tflite.call import LiteCall, constant_of
from weft.frontends.tflite.flatbuffer import Damaged
from weft.frontends.tflite.lite_model import DOWNLOAD, LiteModel, LiteOperator, LiteTensor, Subgraph, read_model
from weft.frontends.tflite.model_metadata import metadata_of
from weft.frontends.tflite.registry import TABLE
from weft.frontends.tflite.variable_states import Variables
from weft.frontends.unsupported import unsupported_operators
from weft.graph import Graph, Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.runtime.metadata import ModelMetadata
from weft.support.errors import ModelError
from weft.support.lazy_import import import_all

load()
import_all(ops.__path__, ops.__name__)
TABLE.seal()

MOST_CALLS: Final = 50_000
"""Operators that may be imported; subgraphs that are called several times multiply them."""


def from_tflite(model: str | os.PathLike[str] | bytes, shapes: Shapes | None = None) -> Graph:
    """Imports a model: the path or the bytes of a `.tflite` file.

    Inputs and outputs have the names of the model's signature, or of their tensors. *shapes* gives sizes to dimensions that the
    model leaves open, by name, or whole shapes to inputs. Raises `ModelError` for a damaged file and for an operator with
    unsupported options, naming it, and `UnsupportedOperators` listing every operator that Weft does not have.
    """
    read = read_model(model)
    _check_operators(read)
    return _Importer(read).run(shapes)


def _check_operators(model: LiteModel) -> None:
    missing: dict[str, list[str]] = {}
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            if operator.kind not in TABLE:
                missing.setdefault(operator.kind, []).append(_name_of(subgraph, operator))
    if missing:
        raise unsupported_operators(dict(sorted(missing.items())), "convert the model without these operators")


def _name_of(subgraph: Subgraph, operator: LiteOperator) -> str:
    """Returns the name of an operator's first result; of several names, which stand for what was fused, the first."""
    return subgraph.tensors[operator.outputs[0]].name.partition(";")[0] if operator.outputs else "(without results)"


class _Importer:
    """Imports a model; it is the library of the functions that operators call, which are numbers of subgraphs."""

    def __init__(self, model: LiteModel) -> None:
        self.model = model
        self.graph = Graph("main")
        self.evaluator = PartialEvaluator(self.graph)
        self.variables = Variables(self.evaluator)
        self.strings: StringIds = KnownStrings(())
        self.images: dict[Value, Operand] = {}
        self.constants: dict[int, CompileTimeConstant] = {}
        self.left = MOST_CALLS
        self.open: list[int] = []

    def run(self, shapes: Shapes | None) -> Graph:
        """Imports the main subgraph."""
        main = self.model.subgraphs[0]
        names = {k: main.names.get(k) or main.tensors[k].name for k in (*main.inputs, *main.outputs)}
        self.graph.metadata = self._metadata([names[k] for k in main.inputs], [names[k] for k in main.outputs])
        declared = {names[k]: list(_declared(main.tensors[k])) for k in main.inputs}
        if len(declared) < len(main.inputs):
            raise ModelError("two of its inputs have one name", hint=DOWNLOAD)
        sizes = InputShapes(shapes or {}).resolve(declared, self.graph)
        given: list[Held] = []
        for k in main.inputs:
            dtype = main.tensors[k].dtype
            if dtype is None:
                raise ModelError(
                    f"the input {names[k]!r} is of {main.tensors[k].type_name}, which is not supported",
                    hint="build the model with numbers or bools",
                )
            given.append(self.graph.input(names[k], sizes[names[k]], dtype))
        results = self.call(0, given)
        taken: set[str] = set()
        for n, (k, x) in enumerate(zip(main.outputs, results, strict=True)):
            if isinstance(x, ComplexTensor):
                x = joined(Builder(self.evaluator, f"output {names[k]}"), x)
            if not isinstance(x, Value | CompileTimeConstant):
                raise ModelError(f"the output {names[k]!r} is no tensor", hint=DOWNLOAD)
            name = names[k] if names[k] not in taken else f"{names[k]}_{n}"
            taken.add(name)
            self.graph.output(self.evaluator.value(x, f"output {name}"), name)
        return self.variables.declared(self.graph)

    def _metadata(self, inputs: Sequence[str], outputs: Sequence[str]) -> ModelMetadata:
        model = self.model
        try:
            return metadata_of(model.description, model.metadata, model.whole, inputs, outputs)
        except Damaged as error:
            raise ModelError("its metadata is damaged or cut short", hint=DOWNLOAD) from error

    def call(self, name: object, inputs: Sequence[Held], evaluator: PartialEvaluator | None = None) -> list[Held]:
        """Imports subgraph *name*."""
        if not isinstance(name, int) or not 0 <= name < len(self.model.subgraphs) or name in self.open:
            raise ModelError(f"subgraph {name} can't be called here", hint=DOWNLOAD)
        outer = self.evaluator
        self.evaluator = evaluator or outer
        self.open.append(name)
        try:
            return self._subgraph(self.model.subgraphs[name], inputs)
        finally:
            self.evaluator = outer
            self.open.pop()

    def unchanged(self, name: object) -> list[int | None]:
        """Returns, for each output of a subgraph, the number of the input that it is."""
        if not isinstance(name, int) or not 0 <= name < len(self.model.subgraphs):
            raise ModelError(f"there is no subgraph {name}", hint=DOWNLOAD)
        g = self.model.subgraphs[name]
        return [g.inputs.index(k) if k in g.inputs else None for k in g.outputs]

    def _subgraph(self, g: Subgraph, inputs: Sequence[Held]) -> list[Held]:
        if len(inputs) != len(g.inputs):
            raise ModelError(f"a subgraph takes {len(g.inputs)} tensors, and is given {len(inputs)}", hint=DOWNLOAD)
        scope: dict[int, Held] = dict(zip(g.inputs, inputs, strict=True))
        for operator in g.operators:
            self._operator(g, operator, scope)
        return [self._held(g, k, scope, "an output") for k in g.outputs]

    def _held(self, g: Subgraph, k: int, scope: dict[int, Held], what: str) -> Held:
        """Returns a tensor: its value in the graph, or its elements."""
        if k in scope:
            return scope[k]
        tensor = g.tensors[k]
        found = self.constants.get(id(tensor))
        if found is None:
            found = constant_of(tensor)
            if found is None and tensor.is_variable:
                return Variable(tensor.name, None)
            if found is None and 0 in tensor.shape and tensor.dtype is not None:
                found = CompileTimeConstant(np.zeros(tensor.shape, tensor.dtype.numpy), tensor.name)
            if found is None:
                raise ModelError(f"{what}, {tensor.name}, is made by no operator before", hint=DOWNLOAD)
            self.constants[id(tensor)] = found
        return found

    def _operator(self, g: Subgraph, operator: LiteOperator, scope: dict[int, Held]) -> None:
        self.left -= 1
        if self.left < 0:
            raise ModelError(f"the model has more than {MOST_CALLS:,} calls of operators", hint="call fewer subgraphs")
        name = _name_of(g, operator)
        source = f"{operator.kind} {name}"
        inputs = [None if k < 0 else self._held(g, k, scope, f"an input of {source}") for k in operator.inputs]
        given = [None if k < 0 else g.tensors[k] for k in operator.inputs]
        made = [g.tensors[k] for k in operator.outputs]
        c = LiteCall(self.evaluator, source, operator, inputs, given, made, self.images, self, self.variables)
        graph = self.evaluator.graph
        before = len(graph.nodes)
        graph.is_extended |= TABLE.is_foreign(operator.kind)
        results = translated(c, lambda: _finished(c, operator), len(made))
        named(graph, before, results, [t.name for t in made])
        scope.update(zip(operator.outputs, results, strict=False))


def _finished(c: LiteCall, operator: LiteOperator) -> tuple[Held, ...]:
    """Returns the results of an operator, through its fused function, and quantised where they are."""
    found = TABLE[operator.kind](c)
    results = list(found) if isinstance(found, tuple) else [found]
    if c.integer("fused", 0):
        results[0] = c.activated(_tensor(c, results[0]))
    return tuple([c.encoded(x, k) for k, x in enumerate(results[: len(c.made)])])


def _tensor(c: LiteCall, x: Held) -> Operand:
    if not isinstance(x, Value | CompileTimeConstant):
        c.fail("its result is no tensor", DOWNLOAD)
    return x


def _declared(tensor: LiteTensor) -> Iterator[int | str | None]:
    for d, n in enumerate(tensor.shape):
        yield "batch" if n < 0 and d == 0 else None if n < 0 else n
