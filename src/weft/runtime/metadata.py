"""A model's own descriptions, in ONNX Runtime's words, and as the notes of an artifact."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from weft.support.errors import InputError

_TEXTS: Final = ("producer_name", "graph_name", "domain", "description", "graph_description")
_VERSION: Final = "version"
_CUSTOM: Final = "metadata/"
"""The prefix of the keys of notes that are the model's own."""

_MAPS: Final = "maps/"
"""The prefix of the keys of notes that have the labels of an output, as JSON."""

Labels: TypeAlias = Sequence[int] | Sequence[str]

NO_VERSION: Final = 2**63 - 1
"""The version that ONNX Runtime gives for a model that has none."""


@dataclass(frozen=True)
class ModelMetadata:
    """The descriptions in a model's file; empty, and `NO_VERSION`, where it has none.

    `maps` has outputs that are, to ONNX Runtime, lists of dicts from labels to scores; compiled models give the scores alone.
    """

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = NO_VERSION
    custom_metadata_map: Mapping[str, str] = field(default_factory=dict)
    maps: Mapping[str, Labels] = field(default_factory=dict)

    def notes(self) -> dict[str, str]:
        """Returns it as notes: the fields by their names, then the model's own keys as `metadata/KEY`."""
        texts = {name: str(getattr(self, name)) for name in (*_TEXTS, _VERSION)}
        maps = {f"{_MAPS}{name}": json.dumps(labels) for name, labels in self.maps.items()}
        return texts | maps | {f"{_CUSTOM}{key}": text for key, text in self.custom_metadata_map.items()}


def metadata_of(notes: Mapping[str, str]) -> ModelMetadata:
    """Returns the metadata among the notes of an artifact; raises `InputError` if it is of a time when none was kept."""
    if _VERSION not in notes:
        raise InputError(
            "this saved model keeps no metadata of its source: an older Weft saved it",
            hint="compile and save it again, or open the ONNX model",
        )
    texts = {name: notes.get(name, "") for name in _TEXTS}
    own = {key.removeprefix(_CUSTOM): text for key, text in notes.items() if key.startswith(_CUSTOM)}
    try:
        version = int(notes[_VERSION])
    except ValueError:
        raise InputError(
            f"this saved model's version is {notes[_VERSION]!r}, which is no number", hint="compile and save it again"
        ) from None
    return ModelMetadata(**texts, version=version, custom_metadata_map=own, maps=maps_of(notes))


def maps_of(notes: Mapping[str, str]) -> dict[str, Labels]:
    """Returns the labels of outputs among the notes of an artifact; raises `InputError` where they are no lists."""
    found = {key.removeprefix(_MAPS): text for key, text in notes.items() if key.startswith(_MAPS)}
    try:
        made = {name: json.loads(text) for name, text in found.items()}
    except ValueError:
        made = {"": None}
    if not all(isinstance(labels, list) for labels in made.values()):
        raise InputError("this saved model's labels of outputs are no lists", hint="compile and save it again")
    return made
