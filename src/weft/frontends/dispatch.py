"""The frontends by name, and the choice among them by a model's content. A frontend is one folder, and one line here."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from weft.frontends.content import existing, head_of, name_of, unreadable
from weft.frontends.frontend import Claims, Exporter, Frontend, HasDefaults, Shapes
from weft.graph import Graph
from weft.support.errors import InputError, ModelError, ToolchainError
from weft.support.lazy_import import resolve

FRONTENDS: Final[dict[str, str]] = {
    "tflite": "weft.frontends.tflite",
    "tensorflow": "weft.frontends.tensorflow",  # before coreml, whose files begin likewise
    "coreml": "weft.frontends.coreml",  # these before onnx, which claims more by their first bytes
    "mxnet": "weft.frontends.mxnet",
    "onnx": "weft.frontends.onnx",
    "keras": "weft.frontends.keras",  # before torch, which claims all other archives
    "torch": "weft.frontends.torch",
    "jax": "weft.frontends.jax",
    "darknet": "weft.frontends.darknet",
    "caffe": "weft.frontends.caffe",
}
"""Packages, imported when a model is theirs; each has a module `claims` and a module `frontend` (see `frontend`)."""


def to_graph(model: object, shapes: Shapes | None = None, states: Collection[str] = ()) -> Graph:
    """Imports *model* by the frontend that reads it.

    *shapes* gives sizes to symbolic dimensions, by their names or by the inputs' names, and *states* has patterns of the names of
    inputs that are to be states: the model's values for them are the graph's `defaults`. Raises `ModelError`, for a
    model that no frontend reads too, and `ToolchainError` where a library that the frontend needs is not installed.
    """
    frontend = frontend_of(model)
    if states and isinstance(frontend, HasDefaults):
        return frontend.with_states(model, shapes, states)
    return frontend.to_graph(model, shapes)


def export(
    model: object, example_inputs: Sequence[object] | Mapping[str, object], shapes: Shapes | None = None
) -> object:
    """Returns *model*, a program of Python's, traced by a call with *example_inputs*.

    Raises `InputError` for a model that is no such program, and the errors of the frontend.
    """
    frontend = frontend_of(model)
    if not isinstance(frontend, Exporter):
        raise InputError("example_inputs are given for a model that needs none", hint="leave them out")
    return frontend.export(model, example_inputs, shapes)


def files_of(path: Path) -> list[Path]:
    """Returns the files that a model at *path* consists of; raises `ModelError` where there is none."""
    return frontend_of(path).files(path)


def frontend_of(model: object) -> Frontend:
    """Returns the frontend that reads *model*; raises `ModelError` for a model that none reads."""
    head = head_of(model)
    for name, package in FRONTENDS.items():
        claims: Claims = resolve(f"{package}.claims:claims")
        if claims(model, head):
            return _frontend(name, package)
    reads = [resolve(f"{package}.claims:READS") for package in FRONTENDS.values()]
    hint = f"give {'; or '.join(reads)}"
    if isinstance(model, str | os.PathLike):
        existing(model)
    if isinstance(model, str | bytes | os.PathLike):
        raise unreadable(name_of(model), head, "a model that Weft can read", hint)
    raise ModelError(f"{name_of(model)} is not a model that Weft can read", hint=hint)


def _frontend(name: str, package: str) -> Frontend:
    """Returns a frontend; raises `ToolchainError` where its library is not installed."""
    try:
        found: Frontend = resolve(f"{package}.frontend:FRONTEND")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "weft":
            raise
        raise ToolchainError(
            f"reading this model needs {error.name}, which is not installed",
            hint=f"install Weft with its extra {name!r}: pip install '.[{name}]' in the folder of the checkout",
        ) from error
    return found
