"""The system's OpenCL library: its functions, its errors, and the devices that its drivers offer.

It is opened where it is first asked for: `libOpenCL.so.1`, the loader of drivers (ICDs) that every vendor's package brings.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from ctypes.util import find_library
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from weft.support.errors import DeviceError

INSTALL: Final = "install the driver of a device; without any, apt install pocl-opencl-icd runs OpenCL on the processor"

_ALL, _GPU = 0xFFFFFFFF, 4
_TYPE, _MOST_THREADS, _SHARED_BYTES, _SINGLE_FP, _NAME, _MEMORY = 0x1000, 0x1004, 0x1023, 0x101B, 0x102B, 0x101F
_UNITS, _CACHE_LINE, _CACHE_BYTES, _SHARED_KIND, _VECTOR_FLOATS = 0x1002, 0x101D, 0x101E, 0x1022, 0x103A
_IN_GLOBAL = 2
_ROUNDED_DIVIDE = 128
_ENDED = 0x1283

_ERRORS: Final = {
    -4: "there is no memory left on the device",
    -5: "the device is out of resources",
    -6: "there is no memory left on the host",
    -11: "the kernels could not be compiled",
    -54: "a block has more threads than the device runs",
    -61: "a buffer is larger than the device allows",
}

_LOST: Final = {
    -2: "it is not available",
    -34: "its context is no more",
    -36: "its queue is no more",
    -9999: "a kernel accessed memory outside of its buffers",
}
"""After these nothing more can be done on the device; the last is NVIDIA's."""

_MAKERS: Final = (
    "clCreateContext",
    "clCreateCommandQueue",
    "clCreateBuffer",
    "clCreateProgramWithSource",
    "clCreateKernel",
)
"""The functions that return a handle, whose last argument is where the error goes."""


@dataclass(frozen=True)
class FoundDevice:
    """A device: its handle, its name, whether it is a GPU, its limits, and whether it can round divisions correctly.

    `units` run blocks at the same time, each with vectors of `vector_floats` floats. Where `shares_in_global` holds, the memory
    that a block shares is no memory of its own. `cache_bytes` and `cache_line` are those of the last level of its cache, and
    `memory_bytes` are those of its memory.
    """

    handle: int
    name: str
    is_gpu: bool
    most_threads: int
    shared_bytes: int
    rounds_divisions: bool
    units: int
    vector_floats: int
    shares_in_global: bool
    cache_bytes: int
    cache_line: int
    memory_bytes: int


@cache
def library() -> Any | None:
    """Returns the library; None where there is none."""
    for name in ("libOpenCL.so.1", find_library("OpenCL")):
        try:
            found = ctypes.CDLL(name) if name else None
        except OSError:
            continue
        if found is not None:
            for function in _MAKERS:
                getattr(found, function).restype = c_void_p
            return found
    return None


def call(name: str, *arguments: Any) -> int | None:
    """Calls a function of the library; returns the handle that it makes, if it makes one. Raises `DeviceError` if it fails."""
    function = getattr(library(), name)
    if name in _MAKERS:
        status = c_int32()
        made: int | None = function(*arguments, byref(status))
        check(name, status.value)
        return made
    check(name, function(*arguments))
    return None


def check(name: str, status: int) -> None:
    """Raises `DeviceError` for a status that tells of a failure."""
    if status in _LOST:
        raise DeviceError(
            f"the device is lost: {_LOST[status]} (status {status} of {name})",
            hint="start a new process, since this one can't use the device any more; if it happens again, it is a bug in Weft",
        )
    if status != 0:
        told = _ERRORS.get(status, f"status {status}")
        raise DeviceError(
            f"{name} of OpenCL failed: {told}", hint="give it less at a time, or see whether the device works"
        )


@cache
def find_devices() -> tuple[FoundDevice, ...]:
    """Returns the devices of all drivers, GPUs first; none where there is no library, or no driver."""
    cl = library()
    if cl is None:
        return ()
    count = c_uint32()
    if cl.clGetPlatformIDs(0, None, byref(count)) != 0 or count.value == 0:
        return ()
    platforms = (c_void_p * count.value)()
    check("clGetPlatformIDs", cl.clGetPlatformIDs(count, platforms, None))
    found = [_found(d) for p in platforms if p is not None for d in _handles(cl, p)]
    return tuple(sorted(found, key=lambda d: not d.is_gpu))


def names() -> list[str]:
    """Returns the names of all devices."""
    return [d.name for d in find_devices()]


def _handles(cl: Any, platform: int) -> list[int]:
    count = c_uint32()
    if cl.clGetDeviceIDs(c_void_p(platform), c_uint64(_ALL), 0, None, byref(count)) != 0:  # a driver without a device
        return []
    devices = (c_void_p * count.value)()
    check("clGetDeviceIDs", cl.clGetDeviceIDs(c_void_p(platform), c_uint64(_ALL), count, devices, None))
    return [d for d in devices if d is not None]


def _found(handle: int) -> FoundDevice:
    threads = c_size_t()
    kind, shared, rounding, cache, memory = (c_uint64() for _ in range(5))
    asked = (
        (_TYPE, kind),
        (_MOST_THREADS, threads),
        (_SHARED_BYTES, shared),
        (_SINGLE_FP, rounding),
        (_CACHE_BYTES, cache),
        (_MEMORY, memory),
    )
    for what, into in asked:
        _info(handle, what, into)
    name = ctypes.create_string_buffer(256)
    _info(handle, _NAME, name)
    return FoundDevice(
        handle,
        name.value.decode(errors="replace").strip(),
        bool(kind.value & _GPU),
        threads.value,
        shared.value,
        bool(rounding.value & _ROUNDED_DIVIDE),
        units=_number(handle, _UNITS),
        vector_floats=_number(handle, _VECTOR_FLOATS),
        shares_in_global=_number(handle, _SHARED_KIND) == _IN_GLOBAL,
        cache_bytes=cache.value,
        cache_line=_number(handle, _CACHE_LINE),
        memory_bytes=memory.value,
    )


def _number(handle: int, what: int) -> int:
    found = c_uint32()
    _info(handle, what, found)
    return found.value


def _info(handle: int, what: int, into: Any) -> None:
    call("clGetDeviceInfo", c_void_p(handle), what, c_size_t(ctypes.sizeof(into)), byref(into), None)


def end_of(event: c_void_p) -> int:
    """Returns the nanoseconds on the device's clock at the end of an event, which is released."""
    time = c_uint64()
    call("clGetEventProfilingInfo", event, _ENDED, c_size_t(ctypes.sizeof(time)), byref(time), None)
    call("clReleaseEvent", event)
    return time.value


def build_log(program: int, device: int) -> str:
    """Returns the log of the device's compiler for a program."""
    size, log_of = c_size_t(), 0x1183
    call("clGetProgramBuildInfo", c_void_p(program), c_void_p(device), log_of, c_size_t(0), None, byref(size))
    text = ctypes.create_string_buffer(size.value + 1)
    call("clGetProgramBuildInfo", c_void_p(program), c_void_p(device), log_of, size, text, None)
    return text.value.decode(errors="replace").strip()


def source_program(context: int, source: str) -> int:
    """Returns a program of this text, not yet compiled."""
    text = c_char_p(source.encode())
    made = call("clCreateProgramWithSource", c_void_p(context), c_uint32(1), byref(text), None)
    assert made is not None
    return made
