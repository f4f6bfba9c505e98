"""From a model that Keras saved to a graph: its inputs, and each call of a layer by its translation in the table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from weft.frontends.fitting import fitting
from weft.frontends.frontend import Shapes
from weft.frontends.input_shapes import InputShapes
from weft.frontends.keras import ops
from weft.frontends.keras.call import Call, Masks
from weft.frontends.keras.layer import TYPES, Layer, Ref, arguments_of, layer_of, refs_in, refs_of
from weft.frontends.keras.mask_rules import mask_behind
from weft.frontends.keras.moved_strings import translated
from weft.frontends.keras.registry import TABLE
from weft.frontends.keras.remembered_states import States
from weft.frontends.keras.saved_model import saved_model
from weft.frontends.keras.vocabularies import strings_of
from weft.frontends.keras.weights import Weights
from weft.frontends.string_ids import KnownStrings, Strings
from weft.frontends.unsupported import unsupported_operators
from weft.graph import Graph, Value
from weft.graph.builder import Builder, Operand, PartialEvaluator
from weft.ir import ExprLike
from weft.runtime.metadata import ModelMetadata
from weft.support.dtypes import DType, handle
from weft.support.errors import ModelError, WeftError
from weft.support.lazy_import import import_all

import_all(ops.__path__, ops.__name__)
TABLE.seal()

MOST_CALLS: Final = 20_000
"""Calls of layers that a model may have; shared models multiply them."""

AGAIN: Final = "save the model again"
NOTHING: Final[Mapping[str, Any]] = {}
INPUT: Final = "InputLayer"


def from_keras(model: str | os.PathLike[str] | bytes, shapes: Shapes | None = None) -> Graph:
    """Imports a sequential or functional model that Keras saved: the path or the bytes of a `.keras` or an `.h5` file.

    The first dimension of each input is the symbolic size `batch`, unless the model has a number for it; other dimensions
    without a number are called after their input. *shapes* gives sizes to them by name, or whole shapes to inputs.

    Raises `ModelError` for a file that is damaged or uses an unsupported setting, naming the layer, and `UnsupportedOperators`
    listing every layer that Weft does not have.
    """
    with saved_model(model) as (config, weights):
        try:
            root = layer_of(config)
            _check_layers(root)
            return _Importer(root, weights).run(shapes)
        except RecursionError as error:
            raise ModelError(
                "the configuration nests too deeply", hint="build the model from fewer nested ones"
            ) from error


def _check_layers(root: Layer) -> None:
    """Raises `UnsupportedOperators` for the layers that are not in the table."""
    missing: dict[str, list[str]] = {}
    for layer in _all_layers(root):
        if layer.kind not in TABLE and layer.kind != INPUT:
            missing.setdefault(layer.kind, []).append(layer.name)
    if missing:
        hint = "build the model from other layers; code of your own (Lambda, subclassed layers and models) is never run"
        raise unsupported_operators(dict(sorted(missing.items())), hint)


def _all_layers(layer: Layer) -> Iterator[Layer]:
    if layer.is_model and "layers" in layer.config:
        for inner in layer.layers:
            yield from _all_layers(inner)
        return
    yield layer
    for wrapped in ("layer", "backward_layer"):
        if isinstance(layer.config.get(wrapped), dict):
            yield from _all_layers(layer_of(layer.config[wrapped]))


class _Importer:
    def __init__(self, root: Layer, weights: Weights) -> None:
        self.root, self.weights = root, weights
        self.graph = Graph("main")
        self.graph.metadata = ModelMetadata(producer_name="keras", graph_name=root.name)
        self.evaluator = PartialEvaluator(self.graph)
        self.images: dict[Value, Operand] = {}
        self.masks: Masks = {}
        self.inner: dict[str, tuple[Layer, list[Layer], list[Weights]]] = {}
        self.strings = KnownStrings(strings_of(list(_all_layers(root)), weights))
        self.states = States(self.evaluator)
        self.left = MOST_CALLS

    def run(self, shapes: Shapes | None) -> Graph:
        """Imports the whole model."""
        declared = [_declared(layer) for layer in _inputs_of(self.root)]
        sizes = InputShapes(shapes or {}).resolve({name: shape for name, shape, _ in declared}, self.graph)
        given = [self._input(name, sizes[name], dtype) for name, _, dtype in declared]
        names = _output_names(self.root)
        made = self._model(self.root, self.weights, given, "")
        if len(names) != len(made):
            names = [f"output_{k}" for k in range(len(made))]
        for name, v in zip(names, made, strict=True):
            if isinstance(v, Strings):
                v = self.strings.given(Builder(self.evaluator, f"output {name}"), v)
            self.graph.output(self.evaluator.value(v, f"output {name}"), name)
        return self.states.declared(self.graph)

    def _input(self, name: str, shape: Sequence[ExprLike], dtype: DType) -> Any:
        if dtype is handle:
            return self.strings.input(self.graph, Builder(self.evaluator, f"input {name}"), name, shape)
        return self.graph.input(name, shape, dtype)

    def _model(self, model: Layer, weights: Weights, inputs: Sequence[Operand], path: str) -> list[Operand]:
        """Imports a call of a model of layers."""
        key = f"{path}/{model.name}"
        if key not in self.inner:
            own = model.layers
            stored = [n for n, layer in enumerate(own) if _is_stored(layer, model)]
            held = weights.of_layers([(own[n].kind, own[n].name) for n in stored])
            found = dict(zip(stored, held, strict=True))
            self.inner[key] = model, own, [found.get(n, weights) for n in range(len(own))]
        _, own, of_layers = self.inner[key]
        if model.kind == "Sequential":
            return self._sequence(model, list(zip(own, of_layers, strict=True)), inputs, key)
        return self._functional(model, list(zip(own, of_layers, strict=True)), inputs, key)

    def _sequence(
        self, model: Layer, own: Sequence[tuple[Layer, Weights]], inputs: Sequence[Operand], path: str
    ) -> list[Operand]:
        if len(inputs) != 1:
            raise ModelError(f"it is called with {len(inputs)} tensors, and takes one", where=model.source, hint=AGAIN)
        made = list(inputs)
        for layer, weights in own:
            if layer.kind != INPUT:
                made = self._layer(layer, weights, [made[0]], {}, path)
        return made

    def _functional(
        self, model: Layer, own: Sequence[tuple[Layer, Weights]], inputs: Sequence[Operand], path: str
    ) -> list[Operand]:
        wanted = refs_of(model.config.get("input_layers"), model.source)
        if len(wanted) != len(inputs):
            raise ModelError(
                f"it is called with {len(inputs)} tensors, and takes {len(wanted)}", where=model.source, hint=AGAIN
            )
        made: dict[tuple[str, int], list[Operand]] = {
            (r.layer, r.call): [x] for r, x in zip(wanted, inputs, strict=True)
        }
        by_name = {layer.name: (layer, weights) for layer, weights in own}
        calls = {(layer.name, k): arguments_of(layer, node) for layer, _ in own for k, node in enumerate(layer.inbound)}
        for name, k in _in_order(model, calls):
            if (name, k) in made or (name, k) not in calls:
                continue
            layer, weights = by_name[name]
            args, kwargs = (_bound(a, made, layer) for a in calls[name, k])
            made[name, k] = self._layer(layer, weights, args, kwargs, path)
        outputs = refs_of(model.config.get("output_layers"), model.source)
        return [_bound(_counted_from_zero(r, by_name), made, model) for r in outputs]

    def _inner_model(
        self, model: Layer, weights: Weights, given: list[Operand], masks: list[Operand], path: str
    ) -> list[Operand]:
        """Imports a call of a model inside another, which may give its tensors masks."""
        pairs = zip(given, masks, strict=False)
        self.masks.update({x: m for x, m in pairs if isinstance(x, Value) and isinstance(m, Value)})
        return self._model(model, weights, given, path)

    def _layer(
        self, layer: Layer, weights: Weights, args: Sequence[Any], kwargs: Mapping[str, Any], path: str
    ) -> list[Operand]:
        """Imports a call of a layer."""
        self.left -= 1
        if self.left < 0:
            raise ModelError(f"the model has more than {MOST_CALLS:,} calls of layers", hint="share fewer models")
        if layer.is_model:
            return self._inner_model(layer, weights, _flat(args), _flat(kwargs.get("mask")), path)
        _check_policy(layer)

        def inner(
            described: Any, weights: Weights, inputs: Sequence[Operand], named: Mapping[str, Any] = NOTHING
        ) -> list[Operand]:
            found = layer.parts.setdefault(id(described), layer_of(described))
            return self._layer(found, weights, inputs, named, f"{path}/{layer.name}")

        call = Call(
            self.evaluator, layer, weights, args, kwargs, self.images, self.masks, inner, self.strings, self.states
        )
        before = len(self.graph.nodes)
        try:
            with fitting(layer.source, "settings and inputs", AGAIN):
                results = translated(call)
                mask = mask_behind(call)
        except WeftError as error:
            if isinstance(error, ModelError) and error.hint:
                raise
            raise ModelError(error.message, where=layer.source, hint=error.hint or AGAIN) from error
        made = list(results) if isinstance(results, tuple) else [results]
        if mask is not None and isinstance(made[0], Value):
            self.masks[made[0]] = mask
        self._named(made, before, layer.name)
        return made

    def _named(self, made: Sequence[Operand], before: int, name: str) -> None:
        """Calls results *name* that nodes of the graph from *before* on make."""
        for v in {v for n in self.graph.nodes[before:] for v in n.outputs} & {v for v in made if isinstance(v, Value)}:
            v.name = name


def _is_stored(layer: Layer, model: Layer) -> bool:
    """Tells whether a file has a group for a layer of a model: operators on tensors have none, nor inputs of sequences."""
    return not layer.kind.startswith("ops.") and not (layer.kind == INPUT and model.kind == "Sequential")


def _inputs_of(model: Layer) -> list[Layer]:
    """Returns the layers that declare a model's inputs."""
    if not model.is_model or "layers" not in model.config:
        raise ModelError(
            f"the model is a {model.kind}, which only code of its own describes",
            hint="build it as a sequential or functional model",
        )
    own = model.layers
    if model.kind != "Sequential":
        wanted = [r.layer for r in refs_of(model.config.get("input_layers"), model.source)]
        by_name = {layer.name: layer for layer in own}
        if not wanted or not all(name in by_name for name in wanted):
            raise ModelError("its inputs are not among its layers", where=model.source, hint=AGAIN)
        return [by_name[name] for name in wanted]
    return _inputs_of_sequence(model, own)


def _inputs_of_sequence(model: Layer, own: Sequence[Layer]) -> list[Layer]:
    """Returns the first layer, or the model that has the shape in its place: the one around, or the sequence itself."""
    if own and _shape_of(own[0]):
        return [own[0]]
    if _shape_of(model):
        return [Layer(INPUT, "input", {"batch_shape": _shape_of(model)})]
    if own and own[0].is_model:
        return _inputs_of(own[0])
    return [own[0] if own else model]


def _shape_of(layer: Layer) -> Any:
    for name in ("batch_shape", "batch_input_shape", "build_input_shape"):
        if layer.config.get(name):
            return layer.config[name]
    return None


def _declared(layer: Layer) -> tuple[str, list[int | str | None], DType]:
    """Returns the name, the sizes and the element type of an input."""
    shape, dtype = _shape_of(layer), layer.config.get("dtype", "float32")
    if not isinstance(shape, list) or not shape or not all(s is None or isinstance(s, int) for s in shape):
        raise ModelError(
            f"the model does not say the shape of its input: {shape!r}",
            where=layer.source,
            hint="begin it with an Input layer, or call it once before saving",
        )
    types = {**TYPES, "string": handle}
    found = types.get(dtype) if isinstance(dtype, str) else TYPES["float32"]
    if found is None:
        raise ModelError(
            f"inputs of type {dtype} are not supported", where=layer.source, hint=f"use {', '.join(types)}"
        )
    return layer.name, ["batch" if d == 0 and s is None else s for d, s in enumerate(shape)], found


def _output_names(model: Layer) -> list[str]:
    if model.kind == "Sequential":
        return [layer.name for layer in model.layers[-1:]]
    names = [r.layer for r in refs_of(model.config.get("output_layers"), model.source)]
    return names if len(set(names)) == len(names) else [f"{n}_{k}" for k, n in enumerate(names)]


def _counted_from_zero(ref: Ref, by_name: Mapping[str, tuple[Layer, Weights]]) -> Ref:
    """Returns a reference of a model's outputs: there Keras counts a functional model's own outputs as its first call."""
    if ref.layer in by_name and by_name[ref.layer][0].kind in ("Functional", "Model") and ref.call:
        return Ref(ref.layer, ref.call - 1, ref.output)
    return ref


def _in_order(model: Layer, calls: Mapping[tuple[str, int], tuple[list[Any], dict[str, Any]]]) -> list[tuple[str, int]]:
    """Returns the calls so that each follows those whose outputs it takes."""
    sorter = TopologicalSorter({key: [(r.layer, r.call) for r in refs_in(list(call))] for key, call in calls.items()})
    try:
        return list(sorter.static_order())
    except CycleError as error:
        raise ModelError("its layers form a cycle", where=model.source, hint=AGAIN) from error


def _bound(value: Any, made: Mapping[tuple[str, int], list[Operand]], layer: Layer) -> Any:
    """Returns arguments with operands for references."""
    if isinstance(value, Ref):
        found = made.get((value.layer, value.call), [])
        if value.output >= len(found):
            raise ModelError(
                f"there is no output {value.output} of call {value.call} of {value.layer!r}",
                where=layer.source,
                hint=AGAIN,
            )
        return found[value.output]
    if isinstance(value, list | tuple):
        return [_bound(v, made, layer) for v in value]
    return {k: _bound(v, made, layer) for k, v in value.items()} if isinstance(value, dict) else value


def _flat(value: Any) -> list[Operand]:
    """Returns the tensors in arguments."""
    if isinstance(value, list | tuple):
        return [x for v in value for x in _flat(v)]
    return [x for v in value.values() for x in _flat(v)] if isinstance(value, dict) else [value]


def _check_policy(layer: Layer) -> None:
    """Raises `ModelError` for a layer that does not compute in float32."""
    policy = layer.config.get("dtype")
    if isinstance(policy, dict):
        config = policy.get("config")
        policy = config.get("name") if isinstance(config, dict) else None
    if isinstance(policy, str) and (
        policy.startswith("mixed") or "float8" in policy or policy in ("float16", "float64", "bfloat16")
    ):
        raise ModelError(
            f"layers that compute in {policy} are not supported",
            where=layer.source,
            hint='save the model with dtype="float32"',
        )
