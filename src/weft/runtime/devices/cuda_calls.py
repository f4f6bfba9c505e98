"""The functions of a device with CUDA in C (`native/cuda`): a call runs them one after another, without Python in between."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_void_p, cast

from weft.native import _rt
from weft.runtime.devices.cuda_kernel import CudaKernel
from weft.runtime.devices.cuda_library import failure, library, too_many_blocks
from weft.runtime.devices.device import Argument, Launch
from weft.support.errors import DeviceError


class CudaCalls:
    """The table of a device; see `Calls`. *context* is the driver's handle, *constants* an address."""

    def __init__(self, context: int, kernels: Sequence[CudaKernel], constants: int) -> None:
        functions = [cast(getattr(library(), name), c_void_p).value or 0 for name in _rt.CUDA_FUNCTIONS]
        self._native = _rt.CudaCalls(functions, context, [(k.handle, k.shared, k.waits) for k in kernels], constants)

    @property
    def address(self) -> int:
        """Where the table is."""
        return self._native.address

    def note(self, launches: list[Launch] | None) -> None:
        """Has launches added to a list."""
        self._native.note(None if launches is None else _Noted(launches))

    def take_error(self) -> DeviceError | None:
        """Returns the error that made a call of this thread fail, once."""
        if (told := self._native.take_failure()) is None:
            return None
        function, status, axis, blocks = told
        return failure(function, status) if function else too_many_blocks(axis, blocks)

    def counts(self) -> dict[str, int]:
        """Returns how often launches were made one by one, how often as a graph, and how many graphs were captured."""
        return dict(zip(("plain", "replayed", "captured"), self._native.counts, strict=True))

    def close(self) -> None:
        """Gives back all that calls have on the device."""
        self._native.close()


class _Noted:
    """Takes launches as the native runtime tells of them."""

    def __init__(self, launches: list[Launch]) -> None:
        self.launches = launches

    def append(self, told: tuple[int, tuple[int, ...], list[tuple[bool, int]]]) -> None:
        """Adds a launch."""
        kernel, grid, given = told
        # blocks are addresses here, so that where a buffer begins is one, too
        arguments = [Argument(value, 0) if is_buffer else Argument(None, value) for is_buffer, value in given]
        self.launches.append(Launch(kernel, grid, tuple(arguments)))
