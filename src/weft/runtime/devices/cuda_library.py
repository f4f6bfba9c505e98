"""The driver of NVIDIA's GPUs as a library, `libcuda.so.1`: its functions, its errors, and the devices that it finds.

It is opened where it is first asked for. Every installation of the driver brings it; no toolkit and no Python package is needed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from weft.support.errors import DeviceError

INSTALL: Final = "install NVIDIA's driver; code for CUDA can be compiled without one, and needs a GPU to run"
LIBRARY: Final = "libcuda.so.1"

MOST_BLOCKS: Final = (2**31 - 1, 65535, 65535)
"""Blocks of a grid along x, y and z."""

OUT_OF_MEMORY: Final = 2
WRONG_ARCHITECTURE: Final = 209
NOT_FOUND: Final = 500
_MAJOR, _MINOR = 75, 76

_LOST: Final = {
    214: "its memory has an error that could not be corrected",
    700: "a kernel accessed memory outside of its buffers",
    702: "a kernel took longer than the system allows",
    714: "a kernel met an invalid instruction",
    715: "a kernel met an invalid instruction",
    716: "a kernel accessed memory at an address that is not aligned",
    717: "a kernel accessed memory of another kind than it asked for",
    718: "a kernel jumped outside of its code",
    719: "a kernel failed",
}
"""After these the process can do nothing more on the device."""

_ERRORS: Final = {
    OUT_OF_MEMORY: "there is no memory left on the device",
    46: "the device is in use by another process alone",
    WRONG_ARCHITECTURE: "the kernels are for another architecture",
    701: "a block takes more registers or memory than the device has",
    802: "the system is not ready",
}


@dataclass(frozen=True)
class CudaDeviceFacts:
    """A device: the driver's handle, its name, and its compute capability, such as (9, 0)."""

    handle: int
    name: str
    capability: tuple[int, int]


@cache
def library() -> Any | None:
    """Returns the library, ready to be used; None where there is none, or no device that it can drive."""
    try:
        found = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    return found if found.cuInit(0) == 0 else None


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the library; raises `DeviceError` if it fails."""
    _check(name, getattr(library(), name)(*arguments))


def finds(name: str, *arguments: Any) -> bool:
    """Calls a function that looks for a symbol; tells whether there is one. Raises `DeviceError` if it fails."""
    status = getattr(library(), name)(*arguments)
    if status != NOT_FOUND:
        _check(name, status)
    return bool(status != NOT_FOUND)


def _check(name: str, status: int) -> None:
    if status != 0:
        raise failure(name, status)


def failure(name: str, status: int) -> DeviceError:
    """Returns the error of a function of the library, which failed with a status."""
    if status in _LOST:
        return DeviceError(
            f"the device is lost: {_LOST[status]} ({_name(status)} in {name})",
            hint="start a new process, since this one can't use the device any more; if it happens again, it is a bug in Weft",
        )
    return DeviceError(
        f"{name} of CUDA failed: {_ERRORS.get(status, _name(status))}",
        hint="give it less at a time, or see whether the device works",
    )


def check_grid(grid: Sequence[int]) -> None:
    """Refuses more blocks than CUDA starts at once."""
    for axis, (blocks, most) in enumerate(zip(grid, MOST_BLOCKS, strict=False)):
        if blocks > most:
            raise too_many_blocks(axis, blocks)


def too_many_blocks(axis: int, blocks: int) -> DeviceError:
    """Returns the error of a grid with so many blocks along an axis, more than CUDA starts."""
    return DeviceError(
        f"a kernel is to run {blocks} blocks along {'xyz'[axis]}, but CUDA starts {MOST_BLOCKS[axis]} at most",
        hint="give it less at a time, such as a smaller batch",
    )


def _name(status: int) -> str:
    told, cuda = c_char_p(), library()
    known = cuda is not None and cuda.cuGetErrorName(c_int(status), byref(told)) == 0
    return told.value.decode() if known and told.value else f"status {status}"


@cache
def find_devices() -> tuple[CudaDeviceFacts, ...]:
    """Returns the devices in the driver's order; none where there is no driver."""
    cuda, count = library(), c_int()
    if cuda is None or cuda.cuDeviceGetCount(byref(count)) != 0:
        return ()
    return tuple([_found(n) for n in range(count.value)])


def _found(number: int) -> CudaDeviceFacts:
    handle, name = c_int(), ctypes.create_string_buffer(256)
    call("cuDeviceGet", byref(handle), c_int(number))
    call("cuDeviceGetName", name, c_int(len(name)), handle)
    capability = _attribute(handle, _MAJOR), _attribute(handle, _MINOR)
    return CudaDeviceFacts(handle.value, name.value.decode(errors="replace").strip(), capability)


def _attribute(handle: c_int, what: int) -> int:
    value = c_int()
    call("cuDeviceGetAttribute", byref(value), c_int(what), handle)
    return value.value


def names() -> list[str]:
    """Returns the names of all devices."""
    return [d.name for d in find_devices()]


def compute_capability() -> tuple[int, int] | None:
    """Returns the compute capability of the first device; None where there is none."""
    found = find_devices()
    return found[0].capability if found else None


def handle_from(name: str, *arguments: Any) -> int:
    """Calls a function that makes a handle, its first argument, and returns that."""
    made = c_void_p()
    call(name, byref(made), *arguments)
    assert made.value is not None
    return made.value
