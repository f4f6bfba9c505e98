"""A model's description of itself: how inputs are prepared, what outputs mean, and texts of the files packed behind it.

The description is a FlatBuffer of its own in a buffer of the model, whose tables TensorFlow Lite Support defines
(`metadata_schema.fbs`); files, of which labels are read, are a zip archive behind the model. All are kept as texts by
`input.NAME.KEY` and `output.NAME.KEY`, NAME that of the graph's input or output; nothing is computed by them.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from weft.frontends.tflite.flatbuffer import Numbers, Table, root
from weft.runtime.metadata import ModelMetadata

ENTRY: Final = "TFLITE_METADATA"
"""The name of the description among the model's metadata."""

_COLORS: Final = {1: "RGB", 2: "GRAYSCALE"}
_IMAGE, _AUDIO = 2, 4
"""Kinds of contents of tensors."""

_NORMALIZATION, _THRESHOLD = 1, 3
"""Kinds of steps before and behind the model."""

_LABELS: Final = (2, 3)
"""Kinds of files: labels of a dimension, and of values."""

_LONGEST_FILE: Final = 1 << 20
"""Bytes of a file of labels that are read at most."""

_BROKEN: Final = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, KeyError, RuntimeError)
"""The errors of reading an archive that is damaged, encrypted, or packed in a way of its own."""


def metadata_of(
    description: str, held: memoryview, whole: memoryview, inputs: Sequence[str], outputs: Sequence[str]
) -> ModelMetadata:
    """Returns a model's metadata; *held* are the bytes of the description, none where there is none, *whole* all of the file.

    *description* is the model's own, *inputs* and *outputs* are names in its order. Raises `Damaged` for offsets that lead out of
    the description; labels that can't be read are left out.
    """
    if not len(held):
        return ModelMetadata(producer_name="tflite", description=description)
    table, kept = root(held), dict[str, str]()
    for slot, name in ((2, "version"), (4, "author"), (5, "license")):
        kept[name] = table.text(slot)
    files = _Files(whole)
    for main in list(table.tables(3))[:1]:
        for slot, side, names in ((2, "input", inputs), (3, "output", outputs)):
            for name, tensor in zip(names, main.tables(slot), strict=False):
                kept |= {f"{side}.{name}.{key}": text for key, text in _tensor(tensor, files)}
    return ModelMetadata(
        producer_name="tflite",
        graph_name=table.text(0),
        description=table.text(1) or description,
        custom_metadata_map={key: text for key, text in kept.items() if text},
    )


class _Files:
    """The files packed behind a model, whose bytes are looked at once a file is asked for."""

    def __init__(self, whole: memoryview) -> None:
        self._whole = whole

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(io.BytesIO(self._whole))

    def text(self, name: str) -> str:
        """Returns the text of a file; "" for one that is not there, is no text, or is longer than labels are."""
        try:
            with self._archive.open(name) as file:
                found = file.read(_LONGEST_FILE + 1)
            return found.decode().strip() if len(found) <= _LONGEST_FILE else ""
        except _BROKEN:
            return ""


def _tensor(table: Table, files: _Files) -> Iterator[tuple[str, str]]:
    """Yields the metadata of a tensor: keys and values."""
    yield "name", table.text(0)
    yield "description", table.text(1)
    yield from _content(table.table(3))
    for step in table.tables(4):
        kind, how = step.number(0, "u8"), step.table(1)
        if how is not None and kind == _NORMALIZATION:
            yield "normalization.mean", _numbers(how.numbers(0, "f32"))
            yield "normalization.std", _numbers(how.numbers(1, "f32"))
        elif how is not None and kind == _THRESHOLD:
            yield "score_threshold", str(how.number(0, "f32"))
    stats = table.table(5)
    if stats is not None:
        yield "stats.max", _numbers(stats.numbers(0, "f32"))
        yield "stats.min", _numbers(stats.numbers(1, "f32"))
    for file in table.tables(6):
        if file.number(2, "i8") in _LABELS:
            yield ".".join(filter(None, ("labels", file.text(3)))), files.text(file.text(0))


def _content(table: Table | None) -> Iterator[tuple[str, str]]:
    """Yields the properties of an image or a sound: keys and values."""
    how = None if table is None else table.table(1)
    if table is None or how is None:
        return
    kind = table.number(0, "u8")
    if kind == _IMAGE:
        yield "color_space", _COLORS.get(how.number(0, "i8"), "")
        size = how.table(1)
        if size is not None:
            yield "default_size", f"{size.number(0, 'u32')}x{size.number(1, 'u32')}"
    elif kind == _AUDIO:
        yield "sample_rate", str(how.number(0, "u32"))
        yield "channels", str(how.number(1, "u32"))


def _numbers(found: Numbers) -> str:
    return " ".join(map(str, found))
