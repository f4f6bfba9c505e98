"""The file of weights, a binary NetParameter: of each layer its name and its blobs; all else in it is in the text too."""

from __future__ import annotations

import math
import mmap
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from weft.frontends.wire_format import BYTES, FIXED32, FIXED64, VARINT, Field, Malformed, fields, varint
from weft.graph import Array
from weft.support.errors import ModelError

WRONG_FILE: Final = "give the .caffemodel that was trained with this .prototxt"

Layers: TypeAlias = dict[str, list[Array]]

_LAYERS: Final = {100: (1, 7), 2: (4, 6)}
"""Fields of a network that are layers, those of today and of 2014, and of these the fields that are the name and the blobs."""

_SHAPE, _DIM = 7, 1
_DATA: Final = {5: "<f4", 8: "<f8"}
_RAW_TYPE, _RAW = 10, 12
_RAW_TYPES: Final = ("<f8", "<f4", "<f2")
"""The types of elements that are bytes of a message: networks that NVIDIA's Caffe saved, or OpenCV's `shrink_caffe_model`."""
_OLD_SIZES: Final = (1, 2, 3, 4)
_MOST_SIZES: Final = 32


def read_weights(path: Path) -> Layers:
    """Returns the blobs of each layer by its name; they are views into the file's mapping where the file has them in one piece.

    Raises `ModelError` for a damaged file.
    """
    if not path.stat().st_size:
        raise ModelError(f"{path} is empty", hint=WRONG_FILE)
    with path.open("rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    made: Layers = {}
    try:
        for f in fields(data, 0, len(data)):
            if f.number in _LAYERS and f.kind == BYTES:
                name, blobs = _layer(data, f, path)
                if blobs:
                    made[name] = blobs
    except Malformed as error:
        raise ModelError(f"{path} is damaged, or no .caffemodel", hint="download it again") from error
    return made


def _layer(data: memoryview, layer: Field, path: Path) -> tuple[str, list[Array]]:
    name, blobs = "", list[Array]()
    name_field, blob_field = _LAYERS[layer.number]
    for f in fields(data, layer.content, layer.end):
        if f.number == name_field and f.kind == BYTES:
            name = bytes(data[f.content : f.end]).decode("utf-8", "replace")
        elif f.number == blob_field and f.kind == BYTES:
            blobs.append(_blob(data, f, f"blob {len(blobs)} of a layer of {path}"))
    return name, blobs


def _blob(data: memoryview, blob: Field, what: str) -> Array:
    array, shape = _elements(data, blob, what), _shape(data, blob)
    if math.prod(shape) != array.size or len(shape) > _MOST_SIZES:
        raise ModelError(
            f"{what} has {array.size} numbers, not those of the shape {shape[:8]}", hint="download it again"
        )
    return _shaped(array.astype(np.float32, copy=False), shape)


def _shape(data: memoryview, blob: Field) -> list[int]:
    """Returns the sizes of a blob, which were four numbers once."""
    old: dict[int, int] = {}
    for f in fields(data, blob.content, blob.end):
        if f.number == _SHAPE and f.kind == BYTES and (sizes := _sizes(data, f)):
            return sizes
        if f.number in _OLD_SIZES and f.kind == VARINT:
            old[f.number] = varint(data, f.content, f.end)[0]
    return [old.get(k, 1) for k in _OLD_SIZES if old]


def _elements(data: memoryview, blob: Field, what: str) -> Array:
    """Returns the elements of a blob: numbers, in one field or in many, or bytes of a type that another field tells."""
    parts: list[Array] = []
    raw, kind = None, 0
    for f in fields(data, blob.content, blob.end):
        if f.number in _DATA and f.kind in (BYTES, FIXED32, FIXED64):
            parts.append(_numbers(data[f.content : f.end], _DATA[f.number]))
        elif f.number == _RAW_TYPE and f.kind == VARINT:
            kind = varint(data, f.content, f.end)[0]
        elif f.number == _RAW and f.kind == BYTES:
            raw = data[f.content : f.end]
    if raw is not None:
        if kind >= len(_RAW_TYPES):
            raise ModelError(f"{what} has elements of type {kind}, no floats", hint="save the network with floats")
        parts.append(_numbers(raw, _RAW_TYPES[kind]))
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0, np.float32)


def _numbers(raw: memoryview, dtype: str) -> Array:
    if len(raw) % np.dtype(dtype).itemsize:
        raise Malformed
    return np.frombuffer(raw, dtype)


def _shaped(array: Array, shape: list[int]) -> Array:
    """Returns *array* in its shape; one of nothing stays as it is, for it may be of sizes that NumPy can't count."""
    return array.reshape(shape) if array.size else array


def _sizes(data: memoryview, shape: Field) -> list[int]:
    found: list[int] = []
    for f in fields(data, shape.content, shape.end):
        if f.number != _DIM or f.kind not in (BYTES, VARINT):
            continue
        at = f.content
        while at < f.end and len(found) <= _MOST_SIZES:
            size, at = varint(data, at, f.end)
            found.append(size)
    return found
