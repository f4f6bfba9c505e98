"""The interface of a frontend: a folder of `frontends` that turns models of one format into graphs.

The folder has two modules that are used from outside. `claims` tells whether a model is of the format: `claims(model, head)`
looks at the type of an object, or at the first bytes of a file, and `READS` names the format in words. `frontend` has
`FRONTEND`, an object with the methods below. They are two modules so that a model is looked at without importing the library of
its format, let alone of another. `dispatch.FRONTENDS` names the folder.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from weft.graph import Graph
from weft.support.dim import Dim

Shapes: TypeAlias = Mapping[str, int | Dim | Sequence[int | str | Dim]]
"""Sizes, or their ranges, for symbolic dimensions by name, or whole shapes for inputs, in which a string keeps one symbolic."""


class Claims(Protocol):
    """Tells whether a frontend reads *model*; *head* are the first bytes of a file or of bytes, and empty for other objects."""

    def __call__(self, model: object, head: bytes) -> bool:
        """Returns true for a model of the frontend's format, damaged ones included as far as they can be told."""


class Frontend(Protocol):
    """Reads models that its folder's `claims` has claimed."""

    def files(self, path: Path) -> list[Path]:
        """Returns the files that the model at *path* consists of, itself first; raises `ModelError` for a damaged one."""

    def to_graph(self, model: object, shapes: Shapes | None = None) -> Graph:
        """Imports *model*.

        Raises `ModelError` naming the model's node, and `UnsupportedOperators` listing every operator that Weft does not have.
        """


@runtime_checkable
class HasDefaults(Frontend, Protocol):
    """A frontend of a format in which inputs may have values, for callers that give none: constants, but for states."""

    def with_states(self, model: object, shapes: Shapes | None, states: Collection[str]) -> Graph:
        """Does as `to_graph`; of inputs whose names match the patterns *states*, such values are the graph's `defaults`."""


@runtime_checkable
class Exporter(Frontend, Protocol):
    """A frontend of a framework whose models are programs of Python's, which are traced by a call with inputs to try."""

    def export(self, model: object, inputs: Sequence[object] | Mapping[str, object], shapes: Shapes | None) -> object:
        """Returns *model* as `to_graph` takes it; the dimensions that *shapes* names, or gives ranges, are symbolic."""
