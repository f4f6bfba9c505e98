"""Where Keras's files have the weights of each layer: in groups like the model's tree, or as lists with names in `.h5` files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import h5py

from weft.graph import Array
from weft.support.dtypes import from_numpy
from weft.support.errors import ModelError

_LEGACY_PARTS: Final = {
    "query_dense": "query",
    "key_dense": "key",
    "value_dense": "value",
    "output_dense": "attention_output",
}
"""The names that parts of a layer have in `.h5` files."""


class Weights(Protocol):
    """The weights of a layer, or of a model of layers."""

    def variables(self) -> list[Array]:
        """Returns the layer's own arrays, in the order in which it made them."""

    def text(self, name: str) -> str | None:
        """Returns the file *name* that the layer has beside its arrays, such as a vocabulary; None if there is none."""

    def named(self, name: str) -> Array | None:
        """Returns the layer's own array that is called *name* instead of being counted; None if there is none."""

    def files(self) -> Iterable[str]:
        """Returns the texts of all files beside the arrays of the model."""

    def part(self, name: str) -> Weights:
        """Returns those of a layer inside the layer, by the name of the attribute that holds it (`cell`, `forward_layer`)."""

    def of_layers(self, layers: Sequence[tuple[str, str]], attribute: str = "layers") -> list[Weights]:
        """Returns those of the layers in a model's list, or in another *attribute*, given by their class and name."""


class WeightTree:
    """The weights of a `.keras` archive: a group has its arrays under `vars`, its layers under their attributes' names."""

    def __init__(self, group: h5py.Group | None, texts: Mapping[str, str] | None = None) -> None:
        self.group = group
        self.texts = texts or {}

    def text(self, name: str) -> str | None:
        """Returns a file of the archive: they lie in folders like the groups."""
        return None if self.group is None else self.texts.get(f"assets{self.group.name}/{name}")

    def named(self, name: str) -> Array | None:
        """Returns an array of the group."""
        held = self._child("vars")
        return None if held is None or name not in held else array_of(held[name], f"{held.name}/{name}")

    def files(self) -> Iterable[str]:
        """Returns the texts of all files of the archive."""
        return self.texts.values()

    def variables(self) -> list[Array]:
        """Returns the arrays of the group."""
        held = self._child("vars")
        if held is None:
            return []
        names = sorted((n for n in held if n.isdecimal()), key=int)
        return [array_of(held[n], f"{held.name}/{n}") for n in names]

    def part(self, name: str) -> Weights:
        """Returns the group of an attribute, which may be a private one."""
        own = self._child(name)
        return WeightTree(self._child(f"_{name}") if own is None else own, self.texts)

    def of_layers(self, layers: Sequence[tuple[str, str]], attribute: str = "layers") -> list[Weights]:
        """Returns the groups by the layers' names, or where the file has no names by those that Keras makes of their classes."""
        held = self._child(attribute)
        groups = {} if held is None else {n: g for n, g in held.items() if isinstance(g, h5py.Group)}
        named = {attribute_of(g["vars"], "name"): g for g in groups.values() if "vars" in g}
        used: dict[str, int] = {}
        made: list[Weights] = []
        for class_name, name in layers:
            key = snake_case(class_name)
            count = used[key] = used.get(key, -1) + 1
            by_class = groups.get(f"{key}_{count}" if count else key)
            made.append(WeightTree(named.get(name, None if named.keys() - {None} else by_class), self.texts))
        return made

    def _child(self, name: str) -> h5py.Group | None:
        found = None if self.group is None else self.group.get(name)
        return found if isinstance(found, h5py.Group) else None


class LegacyWeights:
    """The weights of an `.h5` file: a list of names like `block/conv2d/kernel`, and the arrays of these names in a group."""

    def __init__(self, group: h5py.Group, names: Sequence[str]) -> None:
        self.group = group
        self.names = list(names)

    @staticmethod
    def of_model(group: h5py.Group) -> Weights:
        """Returns the weights of a whole model."""
        return _LegacyModel(group)

    def text(self, name: str) -> str | None:
        """Returns None: there are no files in this one."""
        return None

    def named(self, name: str) -> Array | None:
        """Returns None: all arrays are counted."""
        return None

    def files(self) -> Iterable[str]:
        """Returns nothing: there are no files in this one."""
        return ()

    def variables(self) -> list[Array]:
        """Returns the arrays of all names."""
        return [array_of(self.group.get(n), n) for n in self.names]

    def part(self, name: str) -> Weights:
        """Returns the half that belongs to a direction, those whose names say the part, or all of them."""
        if name in ("forward_layer", "backward_layer"):
            half = len(self.names) // 2
            return LegacyWeights(self.group, self.names[:half] if name == "forward_layer" else self.names[half:])
        part = _LEGACY_PARTS.get(name)
        return self if part is None else self._named(part)

    def of_layers(self, layers: Sequence[tuple[str, str]], attribute: str = "layers") -> list[Weights]:
        """Returns those whose names have the layer's among their parts."""
        return [self._named(name) for _, name in layers]

    def _named(self, name: str) -> LegacyWeights:
        return LegacyWeights(self.group, [n for n in self.names if name in n.split("/")])


class _LegacyModel:
    """The groups of an `.h5` file's layers."""

    def __init__(self, group: h5py.Group) -> None:
        self.group = group

    def text(self, name: str) -> str | None:
        """Returns None: there are no files in this one."""
        return None

    def named(self, name: str) -> Array | None:
        """Returns None: all arrays are counted."""
        return None

    def files(self) -> Iterable[str]:
        """Returns nothing: there are no files in this one."""
        return ()

    def variables(self) -> list[Array]:
        """Returns none: models have no arrays of their own."""
        return []

    def part(self, name: str) -> Weights:
        """Returns itself: models have no parts."""
        return self

    def of_layers(self, layers: Sequence[tuple[str, str]], attribute: str = "layers") -> list[Weights]:
        """Returns the groups of the layers' names."""
        made: list[Weights] = []
        for _, name in layers:
            held = self.group.get(name)
            found = attribute_of(held, "weight_names") if isinstance(held, h5py.Group) else None
            names = [] if found is None else list(found)
            made.append(LegacyWeights(held, [n.decode() if isinstance(n, bytes) else str(n) for n in names]))
        return made


def array_of(dataset: Any, name: str) -> Array:
    """Reads an array; raises `ModelError` for one that is absent, of no type of numbers, or not stored in whole."""
    if not isinstance(dataset, h5py.Dataset):
        raise ModelError(f"the file has no array {name!r}", hint="save the model again")
    try:
        dtype = dataset.dtype
        from_numpy(dtype)
    except KeyError as error:
        raise ModelError(
            f"the array {name!r} is of type {dtype}, which is not supported", hint="save the model in float32"
        ) from error
    except (ValueError, TypeError) as error:
        raise ModelError(f"the array {name!r} is of a damaged type: {error}", hint="save the model again") from error
    if dataset.external or dataset.is_virtual or dataset.id.get_storage_size() < dataset.nbytes:
        raise ModelError(f"the array {name!r} is not stored in whole in the file", hint="save the model again")
    array: Array = dataset[()]
    return array


def attribute_of(held: h5py.Group, name: str) -> Any:
    """Returns an attribute, None where it is absent; raises `ModelError` for one that is of no texts or numbers.

    The library crashes on others in damaged files, such as lists of any length.
    """
    try:
        if name not in held.attrs:
            return None
        kind = h5py.h5a.open(held.id, name.encode()).get_type().get_class()
        if kind not in (h5py.h5t.INTEGER, h5py.h5t.FLOAT, h5py.h5t.STRING):
            raise TypeError("it is of no texts or numbers")
        return held.attrs[name]
    except (ValueError, TypeError) as error:
        raise ModelError(
            f"the attribute {name!r} of {held.name} is damaged: {error}", hint="save the model again"
        ) from error


def snake_case(name: str) -> str:
    """Returns the name that Keras gives a layer of the class *name*: `Conv2DTranspose` is `conv2d_transpose`."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
