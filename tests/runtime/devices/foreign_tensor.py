"""A tensor of a library that knows nothing of Weft: some of a device's memory, by DLPack alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

_FLOAT: Final = 2


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("number", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),  # from here on it is a DLManagedTensor
        ("deleter", ctypes.c_void_p),
    )


class ForeignTensor:
    """Floats at an address. *ready* is called with the stream on which they are asked to be ready."""

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        *,
        bits: int = 32,
        strides: tuple[int, ...] | None = None,
        device: tuple[int, int] = (2, 0),
        ready: Callable[[int], object] = lambda _: None,
    ) -> None:
        """Describes the tensor; the memory is the caller's."""
        self._device = device
        self._ready = ready
        self.streams: list[object] = []
        steps: list[int] = []
        step = 1
        for size in reversed(shape):
            steps.insert(0, step)
            step *= size
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        places = (ctypes.c_int64 * len(shape))(*(strides or steps))
        self._kept = sizes, places
        self._tensor = _Tensor(address, *device, len(shape), _FLOAT, bits, 1, sizes, places, 0, None, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Tells where it is."""
        return self._device

    def __dlpack__(self, *, stream: int | None = None, max_version: object = None) -> object:
        """Returns the capsule of a library that knows no versions."""
        self.streams.append(stream)
        if stream is not None:
            self._ready(stream)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self._tensor), b"dltensor", None)
