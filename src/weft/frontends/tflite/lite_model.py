"""A file of TensorFlow Lite: its subgraphs, their tensors with how they are quantised, and the weights as views into the file."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from typing import Any, Final

import ml_dtypes
import numpy as np

from weft.frontends.content import existing, name_of
from weft.frontends.tflite import flexbuffer, sparse_weights
from weft.frontends.tflite.flatbuffer import Damaged, Table, root
from weft.frontends.tflite.model_metadata import ENTRY
from weft.frontends.tflite.schema import (
    BUILTINS,
    CUSTOM,
    INT4,
    MIRRORS,
    OPTIONS,
    PADDINGS,
    PLACEHOLDER,
    TYPE_NAMES,
    TYPES,
)
from weft.graph import Array
from weft.ops import MOST_DIMENSIONS
from weft.support.dtypes import DType
from weft.support.errors import ModelError

DOWNLOAD: Final = "download or convert the model again"


@dataclass(frozen=True)
class Encoding:
    """How integers stand for numbers: `(q - zero) * scale`, one pair for all or one for each index of *axis*."""

    scale: Array
    zero: Array
    axis: int


@dataclass(frozen=True)
class LiteTensor:
    """A tensor: its shape, in which -1 is a size that the model's user chooses, and its elements if it is constant."""

    name: str
    shape: tuple[int, ...]
    type_: int
    encoding: Encoding | None
    array: Array | None
    is_variable: bool

    @property
    def dtype(self) -> DType | None:
        """The element type; None for one that Weft lacks."""
        return TYPES.get(self.type_)

    @property
    def type_name(self) -> str:
        """The element type in words."""
        return str(self.dtype or TYPE_NAMES.get(self.type_, f"type {self.type_}"))


@dataclass(frozen=True)
class LiteOperator:
    """A call of an operator: numbers of tensors, -1 for an input that is absent, and its options by name."""

    kind: str
    inputs: list[int]
    outputs: list[int]
    options: Mapping[str, Any]


@dataclass
class Subgraph:
    """A graph of operators, in the order in which they run."""

    tensors: list[LiteTensor]
    inputs: list[int]
    outputs: list[int]
    operators: list[LiteOperator]
    names: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LiteModel:
    """A model; its first subgraph is the main one. *whole* are the bytes of its file, of which *metadata* are a part."""

    subgraphs: list[Subgraph]
    description: str
    whole: memoryview
    metadata: memoryview


def read_model(model: str | os.PathLike[str] | bytes) -> LiteModel:
    """Reads a path or bytes; raises `ModelError` where they are no complete model."""
    name = name_of(model)
    try:
        return _read(_bytes_of(model))
    except Damaged as error:
        raise ModelError(f"{name} is damaged or cut short", hint=DOWNLOAD) from error


def _bytes_of(model: str | os.PathLike[str] | bytes) -> memoryview:
    if isinstance(model, bytes):
        return memoryview(model)
    with existing(model).open("rb") as file:
        return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))


def _read(data: memoryview) -> LiteModel:
    table = root(data)
    version = table.number(0, "u32")
    if version != 3:
        raise ModelError(f"its schema has the version {version}; 3 is supported", hint="convert the model again")
    kinds = [_kind_of(code) for code in table.tables(1)]
    buffers = [_buffer(data, b) for b in table.tables(4)]
    subgraphs = [_subgraph(g, kinds, buffers) for g in table.tables(2)]
    if not subgraphs:
        raise ModelError("the model has no subgraph", hint=DOWNLOAD)
    for signature in table.tables(7):
        n = signature.number(4, "u32")
        if n < len(subgraphs) and not subgraphs[n].names:
            named = [*signature.tables(0), *signature.tables(1)]
            subgraphs[n].names = {int(t.number(1, "u32")): t.text(0) for t in named}
    return LiteModel(subgraphs, table.text(3), data, _metadata(table, buffers))


def _metadata(table: Table, buffers: Sequence[memoryview]) -> memoryview:
    """Returns the bytes of the model's description of itself; none where there is none."""
    found = [entry.number(1, "u32") for entry in table.tables(6) if entry.text(0) == ENTRY]
    if found and found[0] >= len(buffers):
        raise Damaged
    return buffers[found[0]] if found else memoryview(b"")


def _kind_of(code: Table) -> str:
    """Returns the name of an operator; a custom one has a name of its own."""
    number = code.number(0, "i8")
    number = code.number(3, "i32") if number in (0, PLACEHOLDER) else number
    name = BUILTINS[number] if 0 <= number < len(BUILTINS) else f"operator {number}"
    return f"CUSTOM {code.text(1)}" if name == "CUSTOM" else name


def _buffer(data: memoryview, table: Table) -> memoryview:
    """Returns the bytes of a buffer, which in large models lie behind the FlatBuffer."""
    offset, size = table.number(1, "u64"), table.number(2, "u64")
    if size > 1:
        if offset + size > len(data):
            raise Damaged
        return data[offset : offset + size]
    return table.numbers(0, "u8").data


def _subgraph(table: Table, kinds: Sequence[str], buffers: Sequence[memoryview]) -> Subgraph:
    tensors = [_tensor(t, buffers) for t in table.tables(0)]
    inputs, outputs = (_places(table, slot, len(tensors), 0) for slot in (1, 2))
    return Subgraph(tensors, inputs, outputs, [_operator(o, kinds, len(tensors)) for o in table.tables(3)])


def _places(table: Table, slot: int, count: int, least: int) -> list[int]:
    """Returns numbers of tensors, of which there are *count*."""
    found = [int(i) for i in table.numbers(slot, "i32")]
    if not all(least <= i < count for i in found):
        raise Damaged
    return found


def _tensor(table: Table, buffers: Sequence[memoryview]) -> LiteTensor:
    name, type_ = table.text(3), int(table.number(1, "i8"))
    shape = [int(n) for n in table.numbers(0, "i32")]
    signature = [int(n) for n in table.numbers(7, "i32")]
    if len(shape) > MOST_DIMENSIONS or any(n < 0 for n in shape):
        raise ModelError(f"its shape is {shape[: MOST_DIMENSIONS + 1]}", where=f"tensor {name}", hint=DOWNLOAD)
    number = table.number(2, "u32")
    if number >= len(buffers):
        raise Damaged
    array = _weights(table.table(6), name, type_, shape, buffers[number])
    sizes = signature if len(signature) == len(shape) else shape
    open_ = tuple([-1 if s == -1 else n for n, s in zip(shape, sizes, strict=True)])
    encoding = _encoding(table.table(4), name, shape)
    return LiteTensor(
        name, tuple(shape) if array is not None else open_, type_, encoding, array, table.number(5, "bool")
    )


def _weights(sparse: Table | None, name: str, type_: int, shape: list[int], data: memoryview) -> Array | None:
    """Returns the elements of a constant, those of *sparse* weights with their zeros; None for a tensor without any."""
    if sparse is None:
        return _array(name, type_, shape, data) if len(data) and type_ in (*TYPES, INT4) else None
    if type_ not in TYPES:
        raise ModelError("sparse weights of this type are not supported", where=f"tensor {name}", hint=DOWNLOAD)
    return sparse_weights.dense(sparse, _elements(type_, data), shape)


def _array(name: str, type_: int, shape: list[int], data: memoryview) -> Array:
    """Returns a constant's elements as a view into the file; those of 4 bits each in a byte."""
    count = math.prod(shape)
    if type_ == INT4:
        packed = np.frombuffer(data, np.uint8)
        flat = np.stack([packed & 15, packed >> 4], 1).reshape(-1).astype(np.int8)
        array: Array = np.where(flat > 7, flat - 16, flat).astype(np.int8)[:count]
    else:
        array = _elements(type_, data)
    if array.size != count:
        raise ModelError(
            f"it has {array.size} elements, not those of the shape {shape}", where=f"tensor {name}", hint=DOWNLOAD
        )
    return array.reshape(shape)


def _elements(type_: int, data: memoryview) -> Array:
    """Returns the elements in a buffer as a view."""
    dtype = np.dtype(ml_dtypes.bfloat16) if type_ == 18 else TYPES[type_].numpy
    return np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)


def _encoding(table: Table | None, name: str, shape: list[int]) -> Encoding | None:
    if table is None:
        return None
    scale, zero, axis = table.numbers(2, "f32"), table.numbers(3, "i64"), int(table.number(6, "i32"))
    if not scale.size:
        return None
    zero = zero if zero.size else np.zeros(scale.size, np.int64)
    fits = zero.size == scale.size and (scale.size == 1 or (0 <= axis < len(shape) and shape[axis] == scale.size))
    if not fits or not np.isfinite(scale).all() or (scale <= 0).any() or (np.abs(zero) > 1 << 31).any():
        raise ModelError(
            f"its {scale.size} scales and {zero.size} zero points do not fit its shape {shape}, or are no numbers",
            where=f"tensor {name}",
            hint=DOWNLOAD,
        )
    return Encoding(scale, zero, axis)


def _operator(table: Table, kinds: Sequence[str], tensors: int) -> LiteOperator:
    code = table.number(0, "u32")
    if code >= len(kinds):
        raise Damaged
    kind = kinds[code]
    inputs, outputs = _places(table, 1, tensors, -1), _places(table, 2, tensors, 0)
    if kind in CUSTOM:
        return LiteOperator(kind, inputs, outputs, _settings(CUSTOM[kind], table.numbers(5, "u8").tobytes()))
    return LiteOperator(kind, inputs, outputs, _options(OPTIONS.get(kind, ""), table.table(4)))


def _settings(rows: str, data: bytes) -> dict[str, Any]:
    """Returns the settings of a custom operator by name: numbers of 32 bits in the order of *rows*, or a FlexBuffer."""
    if not rows:
        return dict(flexbuffer.settings(data))
    names = [row.split()[0] for row in rows.split(", ")]
    if len(data) < 4 * len(names):
        raise Damaged
    made: dict[str, Any] = dict(zip(names, struct.unpack_from(f"<{len(names)}i", data), strict=True))
    if "padding" in made:
        if not 1 <= made["padding"] <= len(PADDINGS):  # 0 is no padding that anything has
            raise Damaged
        made["padding"] = PADDINGS[made["padding"] - 1]
    return made


def _options(rows: str, table: Table | None) -> dict[str, Any]:
    """Returns options by name; see `schema`."""
    made: dict[str, Any] = {}
    for slot, row in enumerate(rows.split(", ") if rows else []):
        name, _, rest = row.partition(" ")
        kind, _, default = rest.partition("=")
        if name != "-":
            made[name] = _option(table, slot, kind, int(default or 0))
    return made


_NAMED: Final[dict[str, Sequence[str]]] = {"padding": PADDINGS, "mirror": MIRRORS}


def _option(table: Table | None, slot: int, kind: str, default: int) -> Any:
    if kind == "list":
        return [] if table is None else [int(n) for n in table.numbers(slot, "i32")]
    if kind == "floats":
        return np.zeros(0, np.float32) if table is None else table.numbers(slot, "f32")
    if kind == "text":
        return "" if table is None else table.text(slot)
    width = "i8" if kind in _NAMED or kind == "type" else kind
    number = default if table is None else table.number(slot, width, default)
    if kind == "type":
        return TYPES.get(number, TYPE_NAMES.get(number, f"type {number}"))
    if kind in _NAMED:
        return _NAMED[kind][number] if 0 <= number < 2 else f"number {number}"
    return bool(number) if kind == "bool" else number
