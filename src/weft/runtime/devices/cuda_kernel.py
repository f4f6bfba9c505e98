"""A kernel of a loaded module, its dynamic shared memory, and whether it may start early.

A block has 48 KiB of shared memory at most unless its kernel is allowed more, and a launch gives it that ("CUDA C++ Programming
Guide", section "Shared Memory"). How much is in the module: a number beside each kernel that asks for some. Another is beside
each kernel that waits by itself for those before it, and may be placed on the device while they end ("CUDA Driver API",
"Execution Control": programmatic stream serialization).
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, addressof, byref, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Final

from weft.runtime.devices.cuda_library import call, finds, handle_from

_MOST_DYNAMIC_SHARED_BYTES: Final = 8
_PROGRAMMATIC_STREAM_SERIALIZATION: Final = 6
"""The driver's numbers of attributes, of a function and of a launch."""


@dataclass(frozen=True)
class CudaKernel:
    """The driver's handle of a kernel, and the bytes of shared memory that a launch gives each block.

    One that *waits* for the kernels before it is launched without waiting for them.
    """

    handle: int
    shared: int = 0
    waits: bool = False


class _Attribute(Structure):
    """An attribute of a launch, `CUlaunchAttribute`."""

    _fields_ = (("id", c_int), ("pad", c_int), ("value", c_int64 * 8))


class _Launch(Structure):
    """The grid of a launch and its attributes, `CUlaunchConfig`."""

    _fields_ = (
        ("grid", c_uint * 6),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("count", c_uint),
    )


def launch(kernel: CudaKernel, grid: Sequence[int], stream: int, places: Sequence[int]) -> None:
    """Launches *kernel* with a grid of blocks and threads; *places* are the addresses of its arguments."""
    early = _Attribute(_PROGRAMMATIC_STREAM_SERIALIZATION, 0, (1,))
    shape = _Launch((c_uint * 6)(*grid), kernel.shared, stream, addressof(early), int(kernel.waits))
    arguments = (c_void_p * max(1, len(places)))(*places)
    call("cuLaunchKernelEx", byref(shape), c_void_p(kernel.handle), arguments, None)


def dynamic_symbol(kernel: str) -> str:
    """Returns the name of the number of bytes that the kernel of that name asks for."""
    return f"{kernel}_shared_bytes"


def dependent_symbol(kernel: str) -> str:
    """Returns the name of the number that is there if the kernel of that name waits for those before it."""
    return f"{kernel}_waits"


def kernel_in(module: int, name: str) -> CudaKernel:
    """Returns a kernel of a module, allowed the memory that it asks for."""
    handle = handle_from("cuModuleGetFunction", c_void_p(module), name.encode())
    shared, waits = _number_in(module, dynamic_symbol(name)), _number_in(module, dependent_symbol(name))
    if shared:
        call("cuFuncSetAttribute", c_void_p(handle), c_int(_MOST_DYNAMIC_SHARED_BYTES), c_int(shared))
    return CudaKernel(handle, shared, bool(waits))


def _number_in(module: int, symbol: str) -> int:
    """Returns a number of a module; 0 where there is none of that name."""
    place, size, found = c_uint64(), c_size_t(), c_uint()
    if finds("cuModuleGetGlobal_v2", byref(place), byref(size), c_void_p(module), symbol.encode()):
        call("cuMemcpyDtoH_v2", byref(found), place, c_size_t(4))
    return found.value
