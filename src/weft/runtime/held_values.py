"""Sequences and optional values at a model's border, where each is the tensors that a compiled model has in its place.

[a f32[2, 3], b f32[4]]     seq.elements f32[10], seq.shapes i64[2, 3]: rows (rank, sizes, ones) (2, 2, 3), (1, 4, 1)
None                        opt.present false, and any elements for the others
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.runtime.arrays import Array
from weft.runtime.package import TensorSpec
from weft.support.errors import InputError

ELEMENTS: Final = ".elements"
SHAPES: Final = ".shapes"
PRESENT: Final = ".present"
"""Behind the name of a sequence or an optional value, those of its tensors."""


def tensors_given(name: str, held: Any, specs: Mapping[str, TensorSpec]) -> Iterator[tuple[str, Any]]:
    """Yields the tensors of an input by name; *specs* are the compiled model's inputs.

    Raises `InputError` for a tensor of a sequence that has more dimensions than its shapes have room for.
    """
    if name + PRESENT in specs:
        yield name + PRESENT, np.asarray(held is not None)
    if name + ELEMENTS in specs:
        elements, shapes = specs[name + ELEMENTS], specs[name + SHAPES]
        packed = packed_sequence(() if held is None else held, elements.dtype.numpy, int(shapes.shape[1]) - 1)
        yield from zip((elements.name, shapes.name), packed, strict=True)
    elif name in specs:
        yield name, _nothing(specs[name]) if held is None else held
    elif isinstance(held, list):
        yield from [(f"{name}[{k}]", v) for k, v in enumerate(held)]


def _nothing(spec: TensorSpec) -> Array:
    """Returns the placeholder, zeros, that the compiled model gets for an absent tensor."""
    return np.zeros([s if isinstance(s, int) else 1 for s in spec.shape], spec.dtype.numpy)


def packed_sequence(tensors: Sequence[Array], dtype: np.dtype[Any], most: int) -> tuple[Array, Array]:
    """Returns the elements and the shapes of a sequence, whose tensors have at most *most* dimensions."""
    shapes = np.ones((len(tensors), 1 + most), np.int64)
    for row, x in zip(shapes, tensors, strict=True):
        if x.ndim > most:
            raise InputError(
                f"a tensor of the sequence has {x.ndim} dimensions", hint=f"give tensors of at most {most}"
            )
        row[0] = x.ndim
        row[1 : 1 + x.ndim] = x.shape
    flat = [np.ravel(x) for x in tensors]
    return (np.concatenate(flat) if flat else np.zeros(0, dtype)), shapes


def unpacked_sequence(elements: Array, shapes: Array) -> list[Array]:
    """Returns the tensors of a sequence, which share the memory of *elements*."""
    made, begin = list[Array](), 0
    for rank, *sizes in shapes.tolist():
        count = int(np.prod(sizes[:rank], dtype=np.int64))
        made.append(elements[begin : begin + count].reshape(sizes[:rank]))
        begin += count
    return made


def value_made(name: str, found: Mapping[str, Array], *, is_sequence: bool) -> Any:
    """Returns an output: an array, a list of them for a sequence, or None for an optional value that is absent."""
    if name + PRESENT in found and not found[name + PRESENT]:
        return None
    if name + ELEMENTS in found:
        return unpacked_sequence(found[name + ELEMENTS], found[name + SHAPES])
    if name in found:
        return found[name]
    parts = [found[p] for k in range(len(found)) if (p := f"{name}[{k}]") in found]
    return parts if parts or is_sequence else None


def held_names(specs: Iterable[TensorSpec]) -> tuple[str, ...]:
    """Returns the names that inputs or outputs have in the model that was compiled, in its order: one for each held value."""
    names = [s.name for s in specs]
    held = {n.removesuffix(SHAPES) for n in names if n.endswith(SHAPES) and n.removesuffix(SHAPES) + ELEMENTS in names}
    held |= {
        n.removesuffix(PRESENT) for n in names if n.endswith(PRESENT) and _is_optional(n.removesuffix(PRESENT), names)
    }
    of = {h + ending: h for h in held for ending in (ELEMENTS, SHAPES, PRESENT)}
    return tuple(dict.fromkeys([of.get(n, n) for n in names]))


def _is_optional(name: str, names: Sequence[str]) -> bool:
    return name in names or name + ELEMENTS in names


class HeldBorder:
    """The inputs and outputs of a model some of which are sequences or optional values."""

    def __init__(self, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> None:
        self.inputs, self.outputs = held_names(inputs), held_names(outputs)
        self.is_needed = len(self.inputs) < len(inputs) or len(self.outputs) < len(outputs)
        self._specs = {s.name: s for s in inputs}
        self._made = [s.name for s in outputs]

    def tensors(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the compiled model's inputs by name; other names stay, for the model to refuse."""
        made: dict[str, Any] = {}
        for name, held in feed.items():
            made |= dict(tensors_given(name, held, self._specs)) or {name: held}
        return made

    def values(self, made: Sequence[Any]) -> dict[str, Any]:
        """Returns outputs by name, of the results of a call of the compiled model."""
        found = dict(zip(self._made, made, strict=True))
        return {name: value_made(name, found, is_sequence=True) for name in self.outputs}
