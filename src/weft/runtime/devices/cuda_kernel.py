"""A kernel of a loaded module, and its dynamic shared memory.

A block has 48 KiB of shared memory at most unless its kernel is allowed more, and a launch gives it that ("CUDA C++ Programming
Guide", section "Shared Memory"). How much is in the module: a number beside each kernel that asks for some.
"""

from __future__ import annotations

from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Final

from weft.runtime.devices.cuda_library import call, finds, handle_from

_MOST_DYNAMIC_SHARED_BYTES: Final = 8
"""The driver's number of the attribute."""


@dataclass(frozen=True)
class CudaKernel:
    """The driver's handle of a kernel, and the bytes of shared memory that a launch gives each block."""

    handle: int
    shared: int = 0


def dynamic_symbol(kernel: str) -> str:
    """Returns the name of the number of bytes that the kernel of that name asks for."""
    return f"{kernel}_shared_bytes"


def kernel_in(module: int, name: str) -> CudaKernel:
    """Returns a kernel of a module, allowed the memory that it asks for."""
    handle = handle_from("cuModuleGetFunction", c_void_p(module), name.encode())
    place, size, shared = c_uint64(), c_size_t(), c_uint()
    symbol = dynamic_symbol(name).encode()
    if not finds("cuModuleGetGlobal_v2", byref(place), byref(size), c_void_p(module), symbol):
        return CudaKernel(handle)
    call("cuMemcpyDtoH_v2", byref(shared), place, c_size_t(4))
    call("cuFuncSetAttribute", c_void_p(handle), c_int(_MOST_DYNAMIC_SHARED_BYTES), c_int(shared.value))
    return CudaKernel(handle, shared.value)
