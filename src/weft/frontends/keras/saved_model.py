"""Opens the files that Keras saves: a model's configuration, and its weights in HDF5.

A `.keras` file is a zip archive of `config.json` and `model.weights.h5`; an `.h5` file has the configuration as an attribute.
Nothing in either is executed: configurations are JSON, weights are arrays of numbers.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final

import h5py

from weft.frontends.content import LOCAL_HEADER, name_of
from weft.frontends.keras.global_heaps import heaps_end
from weft.frontends.keras.weights import LegacyWeights, Weights, WeightTree, attribute_of
from weft.support.errors import ModelError

CONFIG: Final = "config.json"
WEIGHTS: Final = "model.weights.h5"
LARGEST_CONFIG: Final = 1 << 24
"""Bytes of a configuration; those of the largest published models have some megabytes. As objects they take 20 times as many."""

LARGEST_RATIO: Final = 64
"""How many times larger than the archive its members may be; Keras stores them uncompressed."""

AGAIN: Final = 'save the model again with model.save("model.keras")'


@contextmanager
def saved_model(model: str | os.PathLike[str] | bytes) -> Iterator[tuple[Mapping[str, Any], Weights]]:
    """Opens a model: its configuration as JSON, and its weights, which are read as they are asked for.

    Raises `ModelError` for a file that is damaged or no model.
    """
    name = name_of(model)
    with io.BytesIO(model) if isinstance(model, bytes) else Path(model).open("rb") as source:
        is_archive = source.read(len(LOCAL_HEADER)) == LOCAL_HEADER
        source.seek(0)
        try:
            if is_archive:
                config, file, texts = _archive(source, name)
                with h5py.File(file, "r") as weights:
                    yield config, WeightTree(weights, texts)
            else:
                _check_heaps(model if isinstance(model, bytes) else mmap(source.fileno(), 0, access=ACCESS_READ), name)
                with h5py.File(source, "r") as file:
                    yield _legacy(file, name)
        except zipfile.BadZipFile as error:
            raise ModelError(f"{name} is a damaged archive: {error}", hint=AGAIN) from error
        except _UNREADABLE as error:
            raise ModelError(f"{name} can't be read: {_told(error)}", hint=AGAIN) from error


_UNREADABLE: Final = (
    OSError,
    RuntimeError,
    KeyError,
    NotImplementedError,
    EOFError,
    UnicodeDecodeError,  # the library tells of a damaged name in a text that it can't decode
    zlib.error,
)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _archive(source: Any, name: str) -> tuple[Mapping[str, Any], io.BytesIO, Mapping[str, str]]:
    """Returns the configuration, the file of weights, and the texts of layers in a `.keras` archive."""
    with zipfile.ZipFile(source) as archive:
        members = {i.filename: i for i in archive.infolist()}
        for wanted in (CONFIG, WEIGHTS):
            if wanted not in members:
                raise ModelError(f"{name} is an archive without {wanted}, so not one that Keras saved", hint=AGAIN)
        size = source.seek(0, os.SEEK_END)
        texts = [n for n in members if n.startswith("assets/") and n.endswith(".txt")]
        if any(members[wanted].file_size > LARGEST_RATIO * size for wanted in (CONFIG, WEIGHTS, *texts)):
            raise ModelError(f"{name} is an archive of {size} bytes with members far larger than that", hint=AGAIN)
        _check_length(members[CONFIG].file_size, name)
        weights = _member(archive, WEIGHTS)
        _check_heaps(weights, name)
        return (
            _parsed(_member(archive, CONFIG), name),
            io.BytesIO(weights),
            {n: _member(archive, n).decode("utf-8") for n in texts},
        )


def _member(archive: zipfile.ZipFile, path: str) -> bytes:
    """Returns a file of an archive; raises `BadZipFile` where its directory says that it begins before the archive does."""
    try:
        return archive.read(path)
    except ValueError as error:
        raise zipfile.BadZipFile(f"{path} is at no place: {error}") from error


def _check_heaps(data: bytes | mmap, name: str) -> None:
    if not heaps_end(data):
        raise ModelError(f"{name} is damaged: a heap of its HDF5 file has free space of no bytes", hint=AGAIN)


def _legacy(file: h5py.File, name: str) -> tuple[Mapping[str, Any], Weights]:
    """Returns the configuration and the weights of an HDF5 file."""
    text, group = attribute_of(file, "model_config"), file.get("model_weights")
    if not isinstance(text, str | bytes) or not isinstance(group, h5py.Group):
        raise ModelError(
            f"{name} is an HDF5 file without a model's configuration and weights",
            hint="give a file that model.save wrote; one of weights alone does not say what they belong to",
        )
    _check_length(len(text), name)
    return _parsed(text, name), LegacyWeights.of_model(group)


def _check_length(size: int, name: str) -> None:
    if size > LARGEST_CONFIG:
        raise ModelError(
            f"the configuration in {name} has {size} bytes; {LARGEST_CONFIG} are the most", hint="save a smaller model"
        )


def _parsed(text: str | bytes, name: str) -> Mapping[str, Any]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"the configuration in {name} is damaged: {error}", hint=AGAIN) from error
    if not isinstance(config, dict):
        raise ModelError(f"the configuration in {name} is a {type(config).__name__}, not an object", hint=AGAIN)
    return config
