"""A device with OpenCL: one context, one queue that runs commands in order, the kernels of one model, and freed memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import byref, c_int64, c_size_t, c_uint32, c_uint64, c_void_p, sizeof
from threading import Lock

from weft.runtime.devices.block_pool import BlockPool
from weft.runtime.devices.device import Argument
from weft.runtime.devices.opencl_library import INSTALL, build_log, call, end_of, find_devices, source_program
from weft.support.errors import DeviceError, ToolchainError

_READ_WRITE, _WAIT, _PROFILING = 1, c_uint32(1), 2


class OpenCLDevice:
    """The first GPU, else the first device that there is; see `Device`.

    A kernel takes a buffer as two arguments: the block, and how many bytes into it the buffer begins. Blocks that are freed are
    kept for the next call, which asks for the same sizes; commands run in order, so that a block may be taken again at once.
    """

    def __init__(self, source: str, kernels: Sequence[str]) -> None:
        """Compiles *source*; raises `ToolchainError` where there is no device, or its compiler refuses the source."""
        if not (devices := find_devices()):
            raise ToolchainError("this machine has no device with OpenCL", hint=INSTALL)
        self.found = devices[0]
        self._lock = Lock()
        self._blocks = BlockPool(self._buffer, _release)
        handle = (c_void_p * 1)(self.found.handle)
        self._context = call("clCreateContext", None, c_uint32(1), handle, None, None)
        self._queue = call(
            "clCreateCommandQueue", c_void_p(self._context), c_void_p(self.found.handle), c_uint64(_PROFILING)
        )
        self._program = self._compiled(source)
        self._kernels = [call("clCreateKernel", c_void_p(self._program), name.encode()) for name in kernels]

    @property
    def name(self) -> str:
        """The name by which its driver knows it."""
        return self.found.name

    def memory(self) -> int:
        """Returns the bytes of all of its memory: OpenCL does not tell what is free."""
        return self.found.memory_bytes

    def _compiled(self, source: str) -> int:
        options = "-cl-std=CL1.2" + (" -cl-fp32-correctly-rounded-divide-sqrt" if self.found.rounds_divisions else "")
        assert self._context is not None
        program, handle = source_program(self._context, source), (c_void_p * 1)(self.found.handle)
        try:
            call("clBuildProgram", c_void_p(program), c_uint32(1), handle, options.encode(), None, None)
        except DeviceError as error:
            told = build_log(program, self.found.handle) or error.message
            raise ToolchainError(
                f"the compiler of {self.name} refused the kernels: {told}",
                hint="this is a bug in Weft, or in the driver",
            ) from error
        return program

    def alloc(self, nbytes: int) -> int:
        """Returns a block of memory of at least so many bytes."""
        with self._lock:
            return self._blocks.take(nbytes)

    def _buffer(self, size: int) -> int:
        made = call("clCreateBuffer", c_void_p(self._context), c_uint64(_READ_WRITE), c_size_t(size), None)
        assert made is not None
        return made

    def free(self, block: int) -> None:
        """Keeps a block for the next time."""
        with self._lock:
            self._blocks.give(block)

    def write(self, block: int, at: int, source: int, nbytes: int) -> None:
        """Copies from the host's memory."""
        where = c_void_p(block), _WAIT, c_size_t(at), c_size_t(nbytes), c_void_p(source)
        call("clEnqueueWriteBuffer", c_void_p(self._queue), *where, c_uint32(0), None, None)

    def read(self, block: int, at: int, to: int, nbytes: int) -> None:
        """Copies to the host's memory."""
        where = c_void_p(block), _WAIT, c_size_t(at), c_size_t(nbytes), c_void_p(to)
        call("clEnqueueReadBuffer", c_void_p(self._queue), *where, c_uint32(0), None, None)

    def move(self, to: Argument, source: Argument, nbytes: int) -> None:
        """Copies inside of the device's memory."""
        where = c_void_p(source.block), c_void_p(to.block), c_size_t(source.at), c_size_t(to.at), c_size_t(nbytes)
        call("clEnqueueCopyBuffer", c_void_p(self._queue), *where, c_uint32(0), None, None)

    def launch(self, kernel: int, grid: Sequence[int], arguments: Sequence[Argument]) -> None:
        """Starts a kernel."""
        handle = c_void_p(self._kernels[kernel])
        threads = (c_size_t * 3)(*grid[3:])
        whole = (c_size_t * 3)(*[b * t for b, t in zip(grid[:3], grid[3:], strict=True)])
        with self._lock:  # between the arguments and the launch, no other thread may set its own
            n = 0
            for a in arguments:
                if a.block is not None:
                    block = c_void_p(a.block)
                    call("clSetKernelArg", handle, c_uint32(n), c_size_t(sizeof(block)), byref(block))
                    n += 1
                value = c_int64(a.at)
                call("clSetKernelArg", handle, c_uint32(n), c_size_t(sizeof(value)), byref(value))
                n += 1
            run = handle, c_uint32(3), None, whole, threads, c_uint32(0), None, None
            call("clEnqueueNDRangeKernel", c_void_p(self._queue), *run)

    def seconds(self, work: Callable[[], object]) -> float:
        """Returns the seconds between two markers on the device's clock, before and after the operations of *work*."""
        call("clFinish", c_void_p(self._queue))
        begin = self._marker()
        work()
        end = self._marker()
        call("clFinish", c_void_p(self._queue))
        return (end_of(end) - end_of(begin)) * 1e-9

    def _marker(self) -> c_void_p:
        made = c_void_p()
        call("clEnqueueMarkerWithWaitList", c_void_p(self._queue), c_uint32(0), None, byref(made))
        return made

    def close(self) -> None:
        """Releases all that there is on the device."""
        call("clFinish", c_void_p(self._queue))
        self._blocks.clear()
        for kernel in self._kernels:
            call("clReleaseKernel", c_void_p(kernel))
        call("clReleaseProgram", c_void_p(self._program))
        call("clReleaseCommandQueue", c_void_p(self._queue))
        call("clReleaseContext", c_void_p(self._context))


def _release(block: int) -> None:
    call("clReleaseMemObject", c_void_p(block))
