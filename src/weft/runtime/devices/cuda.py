"""A device with CUDA: its primary context, one stream, the kernels of one model, and freed memory.

The functions are those of the driver's interface (NVIDIA, "CUDA Driver API", 13.0), which has no library beside the driver's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import addressof, byref, c_float, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from threading import Lock
from typing import Any, Final

from weft.runtime.devices.block_pool import BlockPool
from weft.runtime.devices.cuda_calls import CudaCalls
from weft.runtime.devices.cuda_kernel import CudaKernel, kernel_in, launch
from weft.runtime.devices.cuda_library import INSTALL, call, check_grid, find_devices, handle_from, library
from weft.runtime.devices.device import Argument
from weft.support.errors import DeviceError, ToolchainError

_NOT_WAITING_FOR_OTHERS: Final = 1
_DLPACK_KIND: Final = 2
_THIS_THREAD: Final = 1
"""A mode of capture."""


class CudaDevice:
    """The first device that there is; see `Device`.

    A kernel takes a buffer as the address at which it begins. Blocks that are freed are kept for the next call, which asks for
    the same sizes; the operations of the stream are in order, so that a block may be taken again at once. A context is current in
    each thread by itself, so every method makes it so. Calls of a model use `calls`, which do the same in C.
    """

    def __init__(self, binaries: Sequence[bytes], kernels: Sequence[str]) -> None:
        """Loads *binaries*, the machine code that each of *kernels* is in.

        Raises `ToolchainError` where there is no device, or it is not of the architecture that the code is for.
        """
        if not (devices := find_devices()):
            told = "driver for CUDA" if library() is None else "device with CUDA"
            raise ToolchainError(f"this machine has no {told}", hint=INSTALL)
        self.found = devices[0]
        self._lock = Lock()
        self._blocks = BlockPool(_block, _release)
        self._calls: CudaCalls | None = None
        self._modules: dict[bytes, int] = {}
        self._context = handle_from("cuDevicePrimaryCtxRetain", c_int(self.found.handle))
        self._enter()
        self._stream = handle_from("cuStreamCreate", c_uint(_NOT_WAITING_FOR_OTHERS))
        self._kernels = [self._function(b, name) for b, name in zip(binaries, kernels, strict=True)]

    @property
    def name(self) -> str:
        """The name by which its driver knows it."""
        return self.found.name

    @property
    def dlpack(self) -> tuple[int, int]:
        """The kind of its memory, and its number."""
        return _DLPACK_KIND, 0

    @property
    def stream(self) -> int:
        """The stream of the operations outside of calls."""
        return self._stream

    def memory(self) -> int:
        """Returns the bytes that are free."""
        self._enter()
        free, whole = c_size_t(), c_size_t()
        call("cuMemGetInfo_v2", byref(free), byref(whole))
        return free.value

    def _enter(self) -> None:
        call("cuCtxSetCurrent", c_void_p(self._context))

    def _function(self, binary: bytes, name: str) -> CudaKernel:
        if binary not in self._modules:
            try:
                self._modules[binary] = handle_from("cuModuleLoadData", binary)
            except DeviceError as error:
                major, minor = self.found.capability
                raise ToolchainError(
                    f"{self.name}, which is sm_{major}{minor}, does not load the kernels: {error.message}",
                    hint="compile them for this machine, with target='cuda'",
                ) from error
        return kernel_in(self._modules[binary], name)

    def calls(self, constants: int) -> CudaCalls:
        """Returns the functions that calls of a model use."""
        self._calls = CudaCalls(self._context, self._kernels, constants)
        return self._calls

    def alloc(self, nbytes: int) -> int:
        """Returns a block of memory of at least so many bytes."""
        self._enter()
        with self._lock:
            return self._blocks.take(nbytes)

    def free(self, block: int) -> None:
        """Keeps a block for the next time."""
        with self._lock:
            self._blocks.give(block)

    def write(self, block: int, at: int, source: int, nbytes: int) -> None:
        """Copies from the host's memory, which may change when this returns."""
        self._copy("cuMemcpyHtoDAsync_v2", c_uint64(block + at), c_void_p(source), c_size_t(nbytes))
        self._wait()

    def read(self, block: int, at: int, to: int, nbytes: int) -> None:
        """Copies to the host's memory."""
        self._copy("cuMemcpyDtoHAsync_v2", c_void_p(to), c_uint64(block + at), c_size_t(nbytes))
        self._wait()

    def move(self, to: Argument, source: Argument, nbytes: int) -> None:
        """Copies inside of the device's memory."""
        self._copy("cuMemcpyDtoDAsync_v2", c_uint64(_place(to)), c_uint64(_place(source)), c_size_t(nbytes))

    def _copy(self, function: str, *arguments: Any) -> None:
        self._enter()
        call(function, *arguments, c_void_p(self._stream))

    def _wait(self) -> None:
        call("cuStreamSynchronize", c_void_p(self._stream))

    def launch(self, kernel: int, grid: Sequence[int], arguments: Sequence[Argument]) -> None:
        """Starts a kernel."""
        check_grid(grid)
        self._enter()
        values = [c_int64(a.at) if a.block is None else c_uint64(_place(a)) for a in arguments]
        launch(self._kernels[kernel], grid, self._stream, [addressof(v) for v in values])

    def seconds(self, work: Callable[[], object]) -> float:
        """Returns the seconds that the device takes for the launches that *work* makes: as one graph, none waits for Python."""
        self._enter()
        graph = self._captured(work)
        made = handle_from("cuGraphInstantiateWithFlags", c_void_p(graph), c_uint64(0))
        call("cuGraphUpload", c_void_p(made), c_void_p(self._stream))
        begin = self._event()
        call("cuGraphLaunch", c_void_p(made), c_void_p(self._stream))
        end = self._event()
        call("cuEventSynchronize", c_void_p(end))
        taken = c_float()
        call("cuEventElapsedTime", byref(taken), c_void_p(begin), c_void_p(end))
        for event in (begin, end):
            call("cuEventDestroy_v2", c_void_p(event))
        call("cuGraphExecDestroy", c_void_p(made))
        call("cuGraphDestroy", c_void_p(graph))
        return taken.value * 1e-3

    def _captured(self, work: Callable[[], object]) -> int:
        """Returns the graph of the launches that *work* makes."""
        graph = c_void_p()
        call("cuStreamBeginCapture_v2", c_void_p(self._stream), c_int(_THIS_THREAD))
        try:
            work()
        finally:
            call("cuStreamEndCapture", c_void_p(self._stream), byref(graph))
        assert graph.value is not None
        return graph.value

    def _event(self) -> int:
        made = handle_from("cuEventCreate", c_uint(0))
        call("cuEventRecord", c_void_p(made), c_void_p(self._stream))
        return made

    def close(self) -> None:
        """Frees all that is on the device; errors are ignored, since the device, or the driver, is gone then."""
        cuda = library()
        if cuda is None:
            return
        if self._calls is not None:
            self._calls.close()
        cuda.cuCtxSetCurrent(c_void_p(self._context))
        cuda.cuStreamSynchronize(c_void_p(self._stream))
        with suppress(DeviceError):
            self._blocks.clear()
        for module in self._modules.values():
            cuda.cuModuleUnload(c_void_p(module))
        cuda.cuStreamDestroy_v2(c_void_p(self._stream))
        cuda.cuDevicePrimaryCtxRelease_v2(c_int(self.found.handle))


def _block(size: int) -> int:
    return handle_from("cuMemAlloc_v2", c_size_t(size))


def _release(block: int) -> None:
    call("cuMemFree_v2", c_uint64(block))


def _place(a: Argument) -> int:
    """Returns the address of a place in the device's memory."""
    assert a.block is not None
    return a.block + a.at
