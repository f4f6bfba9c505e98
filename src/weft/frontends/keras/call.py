"""One call of a layer being imported: its settings, weights and arguments; its images have their channels last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from weft.frontends.channels_last import ChannelsLastBuilder
from weft.frontends.keras.layer import Layer
from weft.frontends.keras.remembered_states import States
from weft.frontends.keras.weights import Weights
from weft.frontends.string_ids import StringIds, Strings
from weft.graph import Array, Value
from weft.graph.builder import CompileTimeConstant, Operand, PartialEvaluator
from weft.support.dtypes import bool_, f32

T = TypeVar("T")


Masks: TypeAlias = "dict[Value, Operand]"
"""The masks of sequences [batch, time, ...]: bools [batch, time], true for the steps that count."""


class Imports(Protocol):
    """Imports a layer that is inside another, called with *inputs* and *named* arguments."""

    def __call__(
        self, described: Any, weights: Weights, inputs: Sequence[Operand], named: Mapping[str, Any] = ...
    ) -> list[Operand]:
        """Returns the layer's outputs."""


class Call(ChannelsLastBuilder):
    """A call of a layer: a translation asks it for settings, weights and arguments, and adds Weft operators through it.

    `positional` and `named` are the arguments, operands or lists of them where tensors go.
    """

    def __init__(
        self,
        evaluator: PartialEvaluator,
        layer: Layer,
        weights: Weights,
        positional: Sequence[Any],
        named: Mapping[str, Any],
        images: dict[Value, Operand],
        masks: Masks,
        inner: Imports,
        strings: StringIds,
        states: States,
    ) -> None:
        super().__init__(evaluator, layer.source, images)
        self.layer, self.weights, self.masks, self.inner = layer, weights, masks, inner
        self.positional, self.named, self.strings = positional, named, strings
        self.states = states

    # settings

    def value(self, name: str, kind: type[T] | tuple[type[T], ...], default: T | None = None) -> T:
        """Returns a setting; raises `ModelError` where it is absent and has no *default*, or is of another kind."""
        found = self.layer.config.get(name)
        if found is None and default is not None:
            return default
        if not isinstance(found, kind) or (isinstance(found, bool) and kind in (int, float)):
            self.fail(f"its setting {name!r} is {found!r}", "save the model again")
        return found

    def has(self, name: str) -> bool:
        """Tells whether a setting is given, and not None."""
        return self.layer.config.get(name) is not None

    def integer(self, name: str, default: int | None = None) -> int:
        """Returns an integer."""
        return self.value(name, int, default)

    def number(self, name: str, default: float | None = None) -> float:
        """Returns a number."""
        return float(self.value(name, (int, float), default))

    def flag(self, name: str, default: bool = False) -> bool:
        """Returns a truth value."""
        return self.value(name, bool, default)

    def text(self, name: str, default: str | None = None) -> str:
        """Returns a text."""
        return self.value(name, str, default)

    def ints(self, name: str, count: int, default: int = 1) -> list[int]:
        """Returns *count* positive integers, which the layer may give as one."""
        found = self.layer.config.get(name, default)
        made = found if isinstance(found, list) else [found] * count
        if len(made) != count or not all(isinstance(v, int) and v > 0 for v in made):
            self.fail(f"its setting {name!r} is {found!r}, not {count} positive integers", "save the model again")
        return list(made)

    def refuse(self, name: str, *allowed: Any) -> None:
        """Raises `ModelError` unless a setting is absent, None, or one of *allowed*."""
        found = self.layer.config.get(name)
        if found is not None and found not in allowed:
            self.fail(f"its setting {name}={found!r} is not supported", "build the model without it")

    # arguments

    def tensor(self, i: int = 0, rank: int | None = None) -> Operand:
        """Returns positional argument *i*; raises `ModelError` where it is no tensor, or not of *rank* dimensions."""
        found = self.positional[i] if i < len(self.positional) else None
        if isinstance(found, list) and len(found) == 1:
            found = found[0]
        if not isinstance(found, Value | CompileTimeConstant):
            self.fail(f"its argument {i} is {found!r}, not a tensor", "build the model with one tensor there")
        if rank is not None and found.rank != rank:
            self.fail(f"its input should have {rank} dimensions: {found!r}", "save the model again")
        return found

    def held(self, i: int = 0) -> Operand | Strings:
        """Returns positional argument *i*, a tensor of numbers or of strings."""
        found = self.positional[i] if i < len(self.positional) else None
        if isinstance(found, list) and len(found) == 1:
            found = found[0]
        return found if isinstance(found, Strings) else self.tensor(i)

    def ids(self, i: int = 0) -> Operand:
        """Returns the ids of positional argument *i*; raises `ModelError` where it is no tensor of strings."""
        found = self.held(i)
        if not isinstance(found, Strings):
            self.fail(f"its argument {i} is {found!r}, not strings", "give it strings")
        return found.ids

    def floats(self, i: int = 0, rank: int | None = None) -> Operand:
        """Returns a positional argument as float32, in which layers compute."""
        return self.cast(self.tensor(i, rank), f32)

    def tensors(self) -> list[Operand]:
        """Returns the arguments that are tensors or numbers, those in lists among them."""
        given = self.positional[0] if len(self.positional) == 1 else self.positional
        made = [self.operand(v) for v in (given if isinstance(given, list | tuple) else [given])]
        if not made:
            self.fail("it is called without tensors", "save the model again")
        return made

    def operand(self, value: Any) -> Operand:
        """Returns a tensor, or a number as one; raises `ModelError` for anything else."""
        if isinstance(value, int | float):
            return self.scalar(value, f32)
        if not isinstance(value, Value | CompileTimeConstant):
            self.fail(f"its argument {value!r} is no tensor", "build the model with tensors there")
        return value

    # masks

    def mask(self) -> Operand | None:
        """Returns the mask by which the layer computes: the one given, or that of its only tensor; None if all steps count.

        As in Keras, the mask that a tensor itself has is not used where the layer is called with others, such as states.
        """
        if self.named.get("mask") is None and sum(map(_has_tensor, (*self.positional, *self.named.values()))) > 1:
            return None
        return self.masks_of([self.tensor()])[0]

    def masks_of(self, tensors: Sequence[Operand]) -> list[Operand | None]:
        """Returns the masks of tensors: those given, or their own."""
        given = self.named.get("mask")
        if given is None:
            return [self.mask_of(x) for x in tensors]
        found = [*given] if isinstance(given, list) else [given]
        if not all(m is None or isinstance(m, Value | CompileTimeConstant) for m in found):
            self.fail(f"its mask is {given!r}, not tensors", "call it with a tensor for a mask")
        made = [None if m is None else self.cast(m, bool_) for m in found]
        return [*made, *[None] * len(tensors)][: len(tensors)]

    def mask_of(self, x: Operand) -> Operand | None:
        """Returns the mask that a tensor itself has."""
        return self.masks.get(x) if isinstance(x, Value) else None

    # weights

    def variable(self, i: int, rank: int, change: Callable[[Array], Array] | None = None, key: object = "") -> Operand:
        """Returns array *i* of the layer, *change*d; calls with one *key* share the constant."""
        return self.array(self.weights, i, rank, change, (key, i))

    def array(
        self, weights: Weights, i: int, rank: int, change: Callable[[Array], Array] | None = None, key: object = ""
    ) -> Operand:
        """Returns array *i* of *weights*, those of a part of the layer, of *rank* dimensions; see `variable`."""
        made = self.layer.arrays.get(key)
        if made is None:
            held = weights.variables()
            if i >= len(held) or held[i].ndim != rank:
                shape = (
                    f"has the shape {held[i].shape}" if i < len(held) else f"is not among the {len(held)} in the file"
                )
                self.fail(
                    f"its weight {i} {shape}; it should have {rank} dimensions", "save the model again, with Keras 3"
                )
            array = held[i].astype(np.float32, copy=False)
            array = np.ascontiguousarray(array if change is None else change(array))
            made = self.layer.arrays[key] = CompileTimeConstant(array, f"{self.layer.name}.{i}")
        return made

    # images

    @property
    def channels_last(self) -> bool:
        """Tells where the layer's images have their channels."""
        return self.text("data_format", "channels_last") != "channels_first"

    def vector_of(self, values: Array) -> CompileTimeConstant:
        """Returns numbers as a constant, to be broadcast along the last dimension."""
        return CompileTimeConstant(np.ascontiguousarray(values))


def _has_tensor(value: Any) -> bool:
    return any(map(_has_tensor, value)) if isinstance(value, list) else isinstance(value, Value | CompileTimeConstant)
