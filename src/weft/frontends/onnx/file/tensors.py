"""ONNX tensors as NumPy arrays: from raw bytes without a copy, from typed fields, or from a file beside the model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from weft.graph import Array
from weft.ops import MOST_DIMENSIONS
from weft.support.dtypes import SCALARS, DType
from weft.support.errors import ModelError
from weft.support.mapped_files import map_file

ELEMENT_TYPES: Final[dict[int, DType]] = {
    TensorProto.FLOAT: SCALARS["f32"],
    TensorProto.DOUBLE: SCALARS["f64"],
    TensorProto.FLOAT16: SCALARS["f16"],
    TensorProto.BFLOAT16: SCALARS["bf16"],
    TensorProto.BOOL: SCALARS["bool"],
    TensorProto.INT8: SCALARS["i8"],
    TensorProto.INT16: SCALARS["i16"],
    TensorProto.INT32: SCALARS["i32"],
    TensorProto.INT64: SCALARS["i64"],
    TensorProto.UINT8: SCALARS["u8"],
    TensorProto.UINT16: SCALARS["u16"],
    TensorProto.UINT32: SCALARS["u32"],
    TensorProto.UINT64: SCALARS["u64"],
    TensorProto.FLOAT8E4M3FN: SCALARS["f8e4m3fn"],
    TensorProto.FLOAT8E4M3FNUZ: SCALARS["f8e4m3fnuz"],
    TensorProto.FLOAT8E5M2: SCALARS["f8e5m2"],
    TensorProto.FLOAT8E5M2FNUZ: SCALARS["f8e5m2fnuz"],
    TensorProto.FLOAT8E8M0: SCALARS["f8e8m0fnu"],
    TensorProto.FLOAT4E2M1: SCALARS["f4e2m1fn"],
    TensorProto.INT4: SCALARS["int4"],
    TensorProto.UINT4: SCALARS["uint4"],
    TensorProto.INT2: SCALARS["int2"],
    TensorProto.UINT2: SCALARS["uint2"],
}

ELEMENT_CODES: Final[dict[DType, int]] = {dtype: code for code, dtype in ELEMENT_TYPES.items()}


def element_type(code: int, where: str) -> DType:
    """Returns the type for ONNX's number of an element type; raises `ModelError` naming *where* for one Weft lacks."""
    found = ELEMENT_TYPES.get(code)
    if found is None:
        known = code in TensorProto.DataType.values()
        name = TensorProto.DataType.Name(code) if known else f"number {code}"
        raise ModelError(f"elements of type {name} are not supported", where=where, hint=_SUPPORTED)
    return found


_SUPPORTED: Final = f"the element types are {', '.join(t.name for t in ELEMENT_TYPES.values())}"


_DAMAGED: Final = "the file is damaged: export or download it again"

_SHOWN: Final = 8
"""Dimensions of a shape that are told."""


def to_array(tensor: TensorProto, raw: memoryview | None = None, folder: Path | None = None) -> Array:
    """Returns the elements of *tensor*; *raw* holds its bytes where they were taken out of it, *folder* is the model's."""
    where = f"tensor {tensor.name}" if tensor.name else "a constant's tensor"
    dtype = element_type(tensor.data_type, where)
    if any(d < 0 for d in tensor.dims) or tensor.HasField("segment"):
        raise ModelError(
            f"it is {'a part of one' if tensor.HasField('segment') else f'of shape {_shape(tensor)}'}",
            where=where,
            hint=_DAMAGED,
        )
    if tensor.data_location == TensorProto.EXTERNAL:
        raw = read_external(tensor, folder, _size(tensor, dtype))
    if raw is None and not tensor.HasField("raw_data"):
        return _typed(tensor, dtype, where)
    data = raw if raw is not None else memoryview(tensor.raw_data)
    if len(data) != _size(tensor, dtype):
        raise ModelError(
            f"its shape {_shape(tensor)} of {dtype} takes {_size(tensor, dtype)} bytes, but it has {len(data)}",
            where=where,
            hint=_DAMAGED,
        )
    elements = _elements(data, dtype, math.prod(tensor.dims))
    try:
        return elements.reshape(tuple(tensor.dims))
    except ValueError as error:  # too many dimensions, or a size beside an empty one that no array has
        raise ModelError(f"no array has its shape {_shape(tensor)}", where=where, hint=_DAMAGED) from error


def _elements(data: memoryview, dtype: DType, count: int) -> Array:
    """Returns *count* elements of raw bytes; of 4 and 2 bits, several are in a byte, the first in its lowest bits."""
    if dtype.used_bits >= _BYTE or dtype.is_bool:
        return np.frombuffer(data, dtype.numpy.newbyteorder("<")).astype(dtype.numpy, copy=False)
    shifts = np.arange(0, _BYTE, dtype.used_bits, dtype=np.uint8)
    parts = np.frombuffer(data, np.uint8)[:, None] >> shifts & ((1 << dtype.used_bits) - 1)
    return parts.reshape(-1)[:count].view(dtype.numpy)


_BYTE: Final = 8


def _typed(tensor: TensorProto, dtype: DType, where: str) -> Array:
    """Returns the elements that are stored one by one, as numbers of the file format."""
    found, wanted = len(getattr(tensor, onnx.helper.tensor_dtype_to_field(tensor.data_type))), _numbers(tensor, dtype)
    if found != wanted:
        raise ModelError(
            f"its shape {_shape(tensor)} of {dtype} takes {wanted} numbers, but it has {found}",
            where=where,
            hint=_DAMAGED,
        )
    try:
        return numpy_helper.to_array(tensor)
    except (OverflowError, TypeError, ValueError) as error:
        raise ModelError(
            f"its numbers are no tensor of {dtype} and shape {_shape(tensor)}: {error}", where=where, hint=_DAMAGED
        ) from error


def _shape(tensor: TensorProto) -> str:
    """Returns the shape as text, that of a tensor of very many dimensions shortened."""
    dims = tuple(tensor.dims[: _SHOWN + 1])
    return str(dims) if len(dims) <= _SHOWN else f"({', '.join(map(str, dims[:_SHOWN]))}, ...)"


def _size(tensor: TensorProto, dtype: DType) -> int:
    """Returns the bytes of a tensor in a file."""
    return _numbers(tensor, dtype) * dtype.bytes


def _numbers(tensor: TensorProto, dtype: DType) -> int:
    """Returns the numbers that a tensor is stored as: one an element, or a byte for several of 4 or 2 bits."""
    count = math.prod([int(d) for d in tensor.dims])
    return -(-count * dtype.used_bits // _BYTE) if dtype.is_storage else count


def external_file(tensor: TensorProto, folder: Path | None) -> Path:
    """Returns the file that holds the elements of *tensor*; raises `ModelError` for one outside the model's folder."""
    where = f"tensor {tensor.name}"
    location = str(_external(tensor).get("location", ""))
    if folder is None:
        raise ModelError(
            f"its data is in another file, {location!r}, but the model was not given as a path",
            where=where,
            hint="pass the path of the .onnx file, so that the files beside it can be found",
        )
    path = folder / location
    try:
        inside = bool(location) and path.resolve().is_relative_to(folder.resolve())
        path.exists()  # raises where no file can have this name
    except (OSError, RuntimeError, ValueError) as error:  # a zero byte, a name too long, links in a circle
        raise ModelError(
            f"its data is said to be in {location[:_LONGEST_NAME]!r}, which is no name of a file",
            where=where,
            hint=_DAMAGED,
        ) from error
    if not inside:
        raise ModelError(
            f"its data is said to be in {location!r}, which is not below the model's folder {folder}",
            where=where,
            hint="external data must lie beside the model; do not load a model that you do not trust",
        )
    return path


_LONGEST_NAME: Final = 80


def read_external(tensor: TensorProto, folder: Path | None, size: int) -> memoryview:
    """Returns the *size* bytes of a tensor whose data is in another file, which is mapped."""
    path = external_file(tensor, folder)
    where = f"tensor {tensor.name}"
    if not path.is_file():
        raise ModelError(
            f"its data is in {path.name}, which is not in {path.parent}",
            where=where,
            hint="put that file beside the model; an .onnx file with external data is not complete alone",
        )
    offset, length = _bytes_of(tensor, "offset", where), _bytes_of(tensor, "length", where)
    if length is not None and length != size:
        raise ModelError(
            f"its data is said to have a length of {length} bytes, but its shape {_shape(tensor)} takes {size}",
            where=where,
            hint=_DAMAGED,
        )
    return _read(path, offset or 0, size, where)


def _read(path: Path, offset: int, size: int, where: str) -> memoryview:
    """Returns *size* bytes of a file from *offset* on."""
    held = path.stat().st_size
    if offset > held:
        raise ModelError(
            f"its data is said to begin at byte {offset} of {path}, which has {held} bytes", where=where, hint=_DAMAGED
        )
    if size > held - offset:
        raise ModelError(
            f"its data in {path} ends after {held - offset} of {size} bytes",
            where=where,
            hint="the file is cut short: download or export it again",
        )
    try:
        return map_file(path)[offset : offset + size]
    except OSError as error:
        raise ModelError(
            f"its data in {path} can't be read: {error.strerror}", where=where, hint="look at the file's permissions"
        ) from error


def _bytes_of(tensor: TensorProto, key: str, where: str) -> int | None:
    """Returns the number that the external data of *tensor* has for *key*; None where it has none."""
    text = str(_external(tensor).get(key, ""))
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ModelError(
            f"its data is said to have the {key} {text[:_LONGEST_NAME]!r}, which is no number of bytes",
            where=where,
            hint=_DAMAGED,
        )
    return int(text)


_MOST_DIGITS: Final = 18
"""Digits of a place in a file."""


def _external(tensor: TensorProto) -> dict[str, Any]:
    return {entry.key: entry.value for entry in tensor.external_data}


MOST_DENSE: Final = 1 << 31
"""Bytes of the largest constant that is made while a model is imported: a sparse tensor written out, a table."""


def dense_array(sparse: onnx.SparseTensorProto, folder: Path | None = None) -> Array:
    """Returns a sparse tensor as an array, zero where it has no element; raises `ModelError` for a damaged or huge one."""
    values, indices = to_array(sparse.values, folder=folder), to_array(sparse.indices, folder=folder)
    where = f"sparse tensor {sparse.values.name}"
    dims = [int(d) for d in sparse.dims]
    if min(dims, default=0) < 0 or math.prod(dims) * values.itemsize > MOST_DENSE or len(dims) > MOST_DIMENSIONS:
        raise ModelError(
            f"it has the shape {tuple(dims[:_SHOWN])}, too large or no shape to write it out in",
            where=where,
            hint=_DAMAGED,
        )
    dense = np.zeros(tuple(dims), values.dtype)
    try:
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
    except (IndexError, ValueError) as error:
        raise ModelError(
            f"its indices and values do not fit its shape {tuple(dims)}: {error}", where=where, hint=_DAMAGED
        ) from error
    return dense
