"""A device as the table of functions that the native runtime calls (`weft_device` in `native/launch/launch.h`)."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_int32, c_int64, c_uint8, c_void_p
from typing import Any, Final, NamedTuple

import numpy as np

from weft.native import _rt
from weft.runtime.devices.device import Argument, Device

FAILED: Final = -1
"""The status of a call of the device that raised: `DeviceTable.error` has the exception."""


class Launch(NamedTuple):
    """A launch as `Device.launch` takes it: the number of a kernel, its grid, and its arguments."""

    kernel: int
    grid: tuple[int, ...]
    arguments: tuple[Argument, ...]


class _Argument(Structure):
    _fields_ = (("base", c_void_p), ("at", c_int64), ("space", c_int32), ("letter", c_uint8))


_ALLOC: Final = CFUNCTYPE(c_void_p, c_void_p, c_int64)
_FREE: Final = CFUNCTYPE(None, c_void_p, c_void_p)
_COPY: Final = CFUNCTYPE(c_int32, c_void_p, _Argument, _Argument, c_int64)
_LAUNCH: Final = CFUNCTYPE(c_int32, c_void_p, c_int32, POINTER(c_int64), POINTER(_Argument), c_int32)


class _Table(Structure):
    _fields_ = (
        ("state", c_void_p),
        ("alloc", _ALLOC),
        ("free", _FREE),
        ("copy", _COPY),
        ("launch", _LAUNCH),
        ("constants", c_void_p),
    )


class DeviceTable:
    """Keeps a device, and a model's constants in its memory; `address` is that of the table."""

    def __init__(self, device: Device, constants: _rt.Block) -> None:
        self.device = device
        self.error: BaseException | None = None
        self.noted: list[Launch] | None = None
        weakref.finalize(self, device.close)
        block = device.alloc(constants.nbytes)
        if constants.nbytes:
            device.write(block, 0, np.asarray(memoryview(constants)).ctypes.data, constants.nbytes)
        calls = _Calls(weakref.proxy(self), device)
        self._table = _Table(
            None, _ALLOC(calls.alloc), _FREE(calls.free), _COPY(calls.copy), _LAUNCH(calls.launch), block
        )

    @property
    def address(self) -> int:
        """Where the table is, as long as this object lives."""
        return ctypes.addressof(self._table)

    @contextmanager
    def noting(self) -> Iterator[list[Launch]]:
        """Yields the launches that are made in the block, in order.

        They can be made again for as long as no other call is: what a call frees is kept as it is for the next.
        """
        self.noted = []
        try:
            yield self.noted
        finally:
            self.noted = None

    def repeat(self, launches: Sequence[Launch], times: int = 1) -> float:
        """Makes noted launches again, so many times; returns the seconds that the device takes for them all."""

        def work() -> None:
            for _ in range(times):
                for launch in launches:
                    self.device.launch(*launch)

        return self.device.seconds(work)

    def take_error(self) -> BaseException | None:
        """Returns the exception of the device that made a call fail, once."""
        error, self.error = self.error, None
        return error


class _Calls:
    """The functions of the table: they tell of exceptions by their status."""

    def __init__(self, table: Any, device: Device) -> None:
        self.table = table
        self.device = device

    def guarded(self, work: Callable[[], None]) -> int:
        """Returns the status of *work*."""
        try:
            work()
        except BaseException as error:  # it can't go through C: `Model` raises it when the call is back
            self.table.error = error
            return FAILED
        return 0

    def alloc(self, _: int, nbytes: int) -> int | None:
        """Returns a block; None where there is no memory left."""
        made: list[int] = []
        self.guarded(lambda: made.append(self.device.alloc(nbytes)))
        return made[0] if made else None

    def free(self, _: int, block: int) -> None:
        """Takes a block back."""
        self.guarded(lambda: self.device.free(block))

    def copy(self, _: int, to: _Argument, source: _Argument, nbytes: int) -> int:
        """Copies in the direction that the spaces tell."""
        return self.guarded(lambda: self._copy(to, source, nbytes))

    def _copy(self, to: _Argument, source: _Argument, nbytes: int) -> None:
        if nbytes == 0:
            return
        if to.space == 0:
            self.device.read(source.base, source.at, to.base + to.at, nbytes)
        elif source.space == 0:
            self.device.write(to.base, to.at, source.base + source.at, nbytes)
        else:
            self.device.move(Argument(to.base, to.at), Argument(source.base, source.at), nbytes)

    def launch(self, _: int, kernel: int, grid: Any, arguments: Any, count: int) -> int:
        """Starts a kernel; a grid without a block starts none."""
        shape = tuple(grid[:6])
        if 0 in shape:
            return 0
        given = [Argument(a.base if a.letter == ord("b") else None, a.at) for a in arguments[:count]]
        if (noted := self.table.noted) is not None:
            noted.append(Launch(kernel, shape, tuple(given)))
        return self.guarded(lambda: self.device.launch(kernel, shape, given))
