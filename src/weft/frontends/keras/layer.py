"""The layers of a configuration: their classes, names and settings, and the calls that a functional model makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from weft.graph.builder import CompileTimeConstant
from weft.support.dtypes import SCALARS
from weft.support.errors import ModelError

MODELS: Final = ("Sequential", "Functional", "Model")
"""Classes of layers that are models of layers."""

_UNTRAINED: Final = ("Discretization", "HashedCrossing", "InputLayer", "SpatialDropout")
"""Beginnings of layers whose settings do not say whether they may be trained."""
_TENSOR: Final = "__keras_tensor__"
_ARRAYS: Final = ("__tensor__", "__numpy__")
_MOST_ELEMENTS: Final = 1 << 20
TYPES: Final = {
    **{f"{kind}{bits}": SCALARS[f"{kind[0]}{bits}"] for kind in ("float", "int", "uint") for bits in (16, 32, 64)},
    "int8": SCALARS["i8"],
    "uint8": SCALARS["u8"],
    "bool": SCALARS["bool"],
}
"""Weft's element types by Keras's names for them."""


@dataclass(frozen=True)
class Ref:
    """One output of one call of a layer."""

    layer: str
    call: int
    output: int


@dataclass
class Layer:
    """A layer: `kind` is its class, `arrays` its weights as they were asked for, `parts` the layers in its settings."""

    kind: str
    name: str
    config: Mapping[str, Any]
    inbound: Sequence[Any] = ()
    arrays: dict[Any, CompileTimeConstant] = field(default_factory=dict)
    parts: dict[int, Layer] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Names the layer in messages."""
        return f"{self.kind} {self.name}"

    @property
    def is_model(self) -> bool:
        """Tells whether the layer is a model of layers."""
        return self.kind in MODELS

    @property
    def layers(self) -> list[Layer]:
        """The layers of a model."""
        found = self.config.get("layers")
        if not isinstance(found, list):
            raise ModelError("its configuration has no list of layers", where=self.source, hint="save the model again")
        return [layer_of(d) for d in found]


def layer_of(described: Any) -> Layer:
    """Returns a layer from its configuration; raises `ModelError` for one that is damaged."""
    if not isinstance(described, dict) or not isinstance(described.get("class_name"), str):
        raise ModelError(f"the configuration has {_short(described)} for a layer", hint="save the model again")
    kind, config = described["class_name"], described.get("config")
    if kind == "Sequential" and isinstance(config, list):  # Keras before 2.2.3
        config = {"layers": config}
    if not isinstance(config, dict):
        raise ModelError(f"the layer {kind} has {_short(config)} for settings", hint="save the model again")
    name, inbound = described.get("name", config.get("name", kind)), described.get("inbound_nodes") or []
    if not isinstance(name, str) or not isinstance(inbound, list):
        raise ModelError(f"a layer {kind} has {_short(name)} for a name", hint="save the model again")
    return Layer(_kind(described, kind), name, config, inbound)


def _kind(described: Mapping[str, Any], kind: str) -> str:
    """Returns the name of a layer's class in the table: those of others than Keras have their module's name before it."""
    module = described.get("module")
    if (isinstance(module, str) and module.startswith("keras.src.ops")) or _is_operator(described, kind):
        return f"ops.{kind}"
    ours = module is None or (isinstance(module, str) and (module == "keras" or module.startswith("keras.")))
    return kind if ours else f"{module}.{kind}"


def _is_operator(described: Mapping[str, Any], kind: str) -> bool:
    """Tells whether a file that names no modules, as HDF5 files don't, has an operator on tensors: layers may be trained."""
    calls, config = described.get("inbound_nodes"), described["config"]
    by_keras_3 = isinstance(calls, list) and bool(calls) and isinstance(calls[0], dict)
    of_layers = kind.startswith(_UNTRAINED) or kind in MODELS or "layers" in config or "trainable" in config
    return by_keras_3 and described.get("module") is None and not of_layers


def arguments_of(layer: Layer, node: Any) -> tuple[list[Any], dict[str, Any]]:
    """Returns the positional and named arguments of a call, `Ref`s where tensors go."""
    if isinstance(node, dict):
        args, kwargs = _revived(node.get("args", [])), _revived(node.get("kwargs", {}))
        if isinstance(args, list) and isinstance(kwargs, dict):
            return args, kwargs
    elif isinstance(node, list) and node:
        return _old_arguments(layer, node)
    raise ModelError(f"its call {_short(node)} is damaged", where=layer.source, hint="save the model again")


def _old_arguments(layer: Layer, node: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Returns the arguments of a call that Keras 2 wrote: references of three parts, and named arguments after the third."""
    refs = [ref_of(n[:3] if isinstance(n, list) else n, layer.source) for n in node]
    named = [n[3] for n in node if len(n) > 3 and isinstance(n[3], dict)]
    kwargs = {k: v for given in named for k, v in given.items() if v is not None}
    if any(isinstance(v, list) for v in kwargs.values()):
        raise ModelError(
            f"it is called with tensors for {', '.join(sorted(kwargs))}, which files of Keras 2 do not tell from other lists",
            where=layer.source,
            hint="save it with Keras 3",
        )
    return [refs[0] if len(refs) == 1 else refs], kwargs


def ref_of(found: Any, where: str) -> Ref:
    """Returns a reference `[layer, call, output]`; raises `ModelError` for anything else."""
    if isinstance(found, list) and len(found) == 3 and isinstance(found[0], str):
        if all(isinstance(n, int) and n >= 0 for n in found[1:]):
            return Ref(*found)
    raise ModelError(
        f"{_short(found)} should be a layer, a call and an output", where=where, hint="save the model again"
    )


def refs_of(found: Any, where: str) -> list[Ref]:
    """Returns the inputs or outputs of a model: a list of references, or one."""
    if isinstance(found, list) and found and isinstance(found[0], str):
        return [ref_of(found, where)]
    if isinstance(found, dict):  # outputs with names
        found = list(found.values())
    if not isinstance(found, list):
        raise ModelError(f"{_short(found)} should be a list of tensors", where=where, hint="save the model again")
    return [r for f in found for r in (refs_of(f, where) if _is_nested(f) else [ref_of(f, where)])]


def _is_nested(found: Any) -> bool:
    """Tells whether one of a model's outputs is a list of tensors, such as the states of several cells."""
    return isinstance(found, list) and bool(found) and isinstance(found[0], list)


def refs_in(value: Any) -> Iterator[Ref]:
    """Yields the references in arguments."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, dict | list):
        for v in value.values() if isinstance(value, dict) else value:
            yield from refs_in(v)


def _revived(value: Any) -> Any:
    """Returns arguments in which tensors are `Ref`s, and tuples are lists."""
    if isinstance(value, list):
        return [_revived(v) for v in value]
    if not isinstance(value, dict):
        return value
    config = value.get("config")
    if value.get("class_name") == _TENSOR and isinstance(config, dict):
        return ref_of(config.get("keras_history"), "a call of a layer")
    if value.get("class_name") == "__tuple__" and isinstance(config, dict):
        return _revived(config.get("value", []))
    if value.get("class_name") in _ARRAYS and isinstance(config, dict):
        return _array(config)
    if value.get("class_name") == "__slice__" and isinstance(config, dict):
        return slice(*[config.get(name) for name in ("start", "stop", "step")])
    if value.get("class_name") == "__ellipsis__":
        return Ellipsis
    return {k: _revived(v) for k, v in value.items()}


def _array(config: Mapping[str, Any]) -> CompileTimeConstant:
    """Returns an array that is written among the arguments of a call."""
    numbers, dtype = config.get("value"), TYPES.get(str(config.get("dtype")))
    if dtype is not None and isinstance(numbers, list | int | float):
        try:
            made = np.asarray(numbers)
        except (ValueError, OverflowError):  # rows of different lengths, or nested too deeply
            made = np.empty(0, object)
        if made.dtype.kind in "biuf" and made.size <= _MOST_ELEMENTS:
            return CompileTimeConstant(made.astype(dtype.numpy))
    raise ModelError(
        f"an argument of a call is an array {_short(config)}, which is damaged or not supported",
        hint="make it of numbers, or a weight",
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
