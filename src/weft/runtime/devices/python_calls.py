"""The functions of a device that calls of a model use, by the methods of `Device`."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, Structure, c_int32, c_int64, c_uint8, c_void_p
from typing import Any, Final

from weft.runtime.devices.device import Argument, Device, Launch

FAILED: Final = -1
"""The status of a call of the device that raised: `PythonCalls.take_error` has the exception."""


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
        ("begin", c_void_p),
        ("wait", c_void_p),
        ("end", c_void_p),
        ("submit", c_void_p),
        ("again", c_void_p),
        ("follow", c_void_p),
        ("discard", c_void_p),
    )


class PythonCalls:
    """The table of a device's methods; see `Calls`."""

    def __init__(self, device: Device, constants: int) -> None:
        self.error: BaseException | None = None
        self.noted: list[Launch] | None = None
        calls = _Functions(weakref.proxy(self), device)
        self._table = _Table(
            None, _ALLOC(calls.alloc), _FREE(calls.free), _COPY(calls.copy), _LAUNCH(calls.launch), constants
        )

    @property
    def address(self) -> int:
        """Where the table is."""
        return ctypes.addressof(self._table)

    def note(self, launches: list[Launch] | None) -> None:
        """Has launches added to a list."""
        self.noted = launches

    def take_error(self) -> BaseException | None:
        """Returns the exception of the device that made a call fail, once."""
        error, self.error = self.error, None
        return error

    def counts(self) -> dict[str, int]:
        """Returns nothing: each launch is a call of the device."""
        return {}


class _Functions:
    """The functions of the table: they tell of exceptions by their status."""

    def __init__(self, calls: Any, device: Device) -> None:
        self.calls = calls
        self.device = device

    def guarded(self, work: Callable[[], None]) -> int:
        """Returns the status of *work*."""
        try:
            work()
        except BaseException as error:  # it can't go through C: `Model` raises it when the call is back
            self.calls.error = error
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
        if (noted := self.calls.noted) is not None:
            noted.append(Launch(kernel, shape, tuple(given)))
        return self.guarded(lambda: self.device.launch(kernel, shape, given))
