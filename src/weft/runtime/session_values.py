"""Values at a session's border, in ONNX Runtime's words: types of inputs and outputs, and values."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.native import _rt
from weft.runtime.arrays import Array, as_array
from weft.runtime.held_values import ELEMENTS, PRESENT, held_names
from weft.runtime.package import TensorSpec
from weft.support.dtypes import SCALARS, DType, from_numpy
from weft.support.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

_NAMES: Final = {
    "f32": (1, "float"),
    "u8": (2, "uint8"),
    "i8": (3, "int8"),
    "u16": (4, "uint16"),
    "i16": (5, "int16"),
    "i32": (6, "int32"),
    "i64": (7, "int64"),
    "handle": (8, "string"),
    "bool": (9, "bool"),
    "f16": (10, "float16"),
    "f64": (11, "double"),
    "u32": (12, "uint32"),
    "u64": (13, "uint64"),
    "bf16": (16, "bfloat16"),
    "f8e4m3fn": (17, "float8e4m3fn"),
    "f8e4m3fnuz": (18, "float8e4m3fnuz"),
    "f8e5m2": (19, "float8e5m2"),
    "f8e5m2fnuz": (20, "float8e5m2fnuz"),
    "uint4": (21, "uint4"),
    "int4": (22, "int4"),
    "f4e2m1fn": (23, "float4e2m1"),
    "f8e8m0fnu": (24, "float8e8m0"),
    "uint2": (25, "uint2"),
    "int2": (26, "int2"),
}
"""The number that ONNX has for each type of elements, and ONNX Runtime's name."""

_OF_NUMBER: Final = {number: SCALARS[name] for name, (number, _) in _NAMES.items()}


@dataclass(frozen=True)
class NodeArg:
    """An input or output: its name, its type such as `tensor(float)`, and its sizes, a string for a symbolic one."""

    name: str
    type: str
    shape: list[int | str]

    @staticmethod
    def of(spec: TensorSpec) -> NodeArg:
        """Returns a spec in ONNX Runtime's terms."""
        return NodeArg(spec.name, type_name(spec.dtype), list(spec.shape))


def node_args(specs: Sequence[TensorSpec]) -> list[NodeArg]:
    """Returns inputs or outputs in ONNX Runtime's terms, each sequence and optional value as the one that it is."""
    known, made = {s.name: s for s in specs}, list[NodeArg]()
    for name in held_names(specs):
        elements, present = known.get(name + ELEMENTS), name + PRESENT in known
        own = NodeArg.of(known[name]) if elements is None else NodeArg(name, f"seq({type_name(elements.dtype)})", [])
        made.append(replace(own, type=f"optional({own.type})") if present else own)
    return made


def type_name(dtype: DType) -> str:
    """Returns ONNX Runtime's name for tensors of a type."""
    return f"tensor({_NAMES[dtype.name][1]})"


def element_dtype(element_type: object) -> np.dtype[Any]:
    """Returns the NumPy dtype of an element type: one of NumPy's, or ONNX's number of it. Raises `InputError` for any other."""
    if isinstance(element_type, int):
        if element_type in _OF_NUMBER:
            return _OF_NUMBER[element_type].numpy
        raise InputError(f"ONNX's element type {element_type} is not supported", hint="give a NumPy dtype")
    try:
        return from_numpy(element_type).numpy
    except (KeyError, TypeError):
        raise InputError(f"{element_type!r} is no element type that Weft has", hint="give a NumPy dtype") from None


def check_device(device_type: str, device_id: int) -> None:
    """Raises `InputError` for any device but the processor."""
    if device_type.lower() != "cpu" or device_id != 0:
        raise InputError(f"there is no device {device_type!r} {device_id}", hint="use 'cpu' and 0")


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Returns a new array, not set, aligned so that a model can write its output straight into it."""
    sizes = tuple([int(size) for size in shape])
    if any(size < 0 for size in sizes):
        raise InputError(f"the shape {sizes} has a negative size", hint="give sizes of 0 or more")
    block = _rt.Block(int(np.prod(sizes, dtype=np.int64)) * dtype.itemsize)
    return np.ndarray(sizes, dtype, memoryview(block))


def at_address(shape: Sequence[int], element_type: object, address: int) -> Array:
    """Returns the array at an address, which the caller keeps valid."""
    dtype = element_dtype(element_type)
    count = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.ndarray(tuple(shape), dtype, memoryview(memory))


class OrtValue:
    """A tensor in the processor's memory, that sessions take and make; it shares its memory with the array it was made of."""

    def __init__(self, array: Array) -> None:
        self._array = array

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: Array, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Returns a value over an array's own memory."""
        check_device(device_type, device_id)
        if not isinstance(numpy_obj, np.ndarray):
            raise InputError(f"{type(numpy_obj).__name__} is no NumPy array", hint="use OrtValue.from_dlpack")
        _ = element_dtype(numpy_obj.dtype)
        return cls(numpy_obj)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: object, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Returns a new value, its elements not set; *element_type* is a NumPy dtype or ONNX's number."""
        check_device(device_type, device_id)
        return cls(empty(shape, element_dtype(element_type)))

    @classmethod
    def from_dlpack(cls, data: object) -> OrtValue:
        """Returns a value over the memory of any array with `__dlpack__`, for reading."""
        array = as_array(data, TensorSpec("data", SCALARS["f32"], ()))
        _ = element_dtype(array.dtype)
        return cls(array)

    def numpy(self) -> Array:
        """Returns the tensor as an array over the same memory."""
        return self._array

    def update_inplace(self, np_arr: Array) -> None:
        """Copies an array of the same type and shape into the tensor."""
        if np_arr.shape != self._array.shape or np_arr.dtype != self._array.dtype:
            raise InputError(
                f"the array is {np_arr.dtype}{list(np_arr.shape)}, and the value {self._array.dtype}{self.shape()}",
                hint="convert or reshape the array",
            )
        self._array[...] = np_arr

    def shape(self) -> list[int]:
        """Returns the sizes."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """Returns the type, such as `tensor(float)`."""
        return type_name(from_numpy(self._array.dtype))

    def element_type(self) -> int:
        """Returns ONNX's number of the type of the elements."""
        return _NAMES[from_numpy(self._array.dtype).name][0]

    def data_ptr(self) -> int:
        """Returns the address of the first element."""
        return int(self._array.__array_interface__["data"][0])

    def tensor_size_in_bytes(self) -> int:
        """Returns how many bytes the elements take."""
        return self._array.nbytes

    def device_name(self) -> str:
        """Returns `cpu`."""
        return "cpu"

    def has_value(self) -> bool:
        """Returns True: there are no empty values."""
        return True

    def is_tensor(self) -> bool:
        """Returns True: there are tensors only."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Returns False: there are dense tensors only."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Returns False: there are single tensors only."""
        return False

    def __dlpack__(self, **wishes: Any) -> CapsuleType:
        return self._array.__dlpack__(**wishes)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._array, dtype, copy=copy)

    def __repr__(self) -> str:
        return f"<weft.OrtValue {self.data_type()} {self.shape()}>"


def array_of(value: OrtValue) -> Array:
    """Returns the array whose memory a value is."""
    return value._array


class OrtValueVector(list[OrtValue]):
    """Values in order, as calls take and fill them."""

    def dlpack_at(self, index: int) -> CapsuleType:
        """Returns the value at *index* as a DLPack capsule."""
        return self[index].__dlpack__()
