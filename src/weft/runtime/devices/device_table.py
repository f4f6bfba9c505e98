"""A device with the constants of a model in its memory, as the native runtime calls it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from weft.native import _rt
from weft.runtime.devices.check_memory import check_memory
from weft.runtime.devices.device import Calls, Device, HasCalls, Launch, Shared
from weft.runtime.devices.python_calls import PythonCalls


class DeviceTable:
    """Keeps a device, and a model's constants in its memory; `address` is that of the table of its functions.

    `dlpack` is the kind and the number of its memory for other libraries, None where none has tensors there, and `stream` the one
    on which these are asked to be ready.
    """

    def __init__(self, device: Device, constants: _rt.Block, arena: int = 0) -> None:
        """Copies *constants*; raises `DeviceError` where the device has no memory for them and a call's *arena*, in bytes."""
        self.device = device
        self.dlpack: tuple[int, int] | None = device.dlpack if isinstance(device, Shared) else None
        self.stream = device.stream if isinstance(device, Shared) else 0
        weakref.finalize(self, device.close)
        check_memory(device, constants.nbytes, arena)
        block = device.alloc(constants.nbytes)
        if constants.nbytes:
            device.write(block, 0, np.asarray(memoryview(constants)).ctypes.data, constants.nbytes)
        self.calls: Calls = device.calls(block) if isinstance(device, HasCalls) else PythonCalls(device, block)

    @property
    def address(self) -> int:
        """Where the table is, as long as this object lives."""
        return self.calls.address

    @contextmanager
    def noting(self) -> Iterator[list[Launch]]:
        """Yields the launches that are made in the block, in order.

        They can be made again for as long as no other call is: the blocks that a call frees are kept as they are for the next.
        """
        noted: list[Launch] = []
        self.calls.note(noted)
        try:
            yield noted
        finally:
            self.calls.note(None)

    def repeat(self, launches: Sequence[Launch], times: int = 1) -> float:
        """Makes noted launches again, so many times; returns the seconds that the device takes for them all."""

        def work() -> None:
            for _ in range(times):
                for launch in launches:
                    self.device.launch(*launch)

        return self.device.seconds(work)

    def take_error(self) -> BaseException | None:
        """Returns the exception of the device that made a call fail, once."""
        return self.calls.take_error()
