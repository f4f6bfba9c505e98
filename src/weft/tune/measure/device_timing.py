"""Kernels on a device: their results come by the way of any model's, and their launches are timed again, without copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.runtime import load
from weft.support.errors import InputError
from weft.tune.measure.turns import TurnTimer

Array = np.ndarray[Any, Any]


class DeviceKernel:
    """A saved model of one kernel (`package_kernel`) on its device, which reads *inputs* and writes *outputs*."""

    def __init__(self, saved: bytes, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        self._model = load(saved)
        if self._model.device is None:
            raise InputError("the kernel is none of a device", hint="build it for a target such as opencl")
        self._device = self._model.device
        self._inputs, self._outputs = inputs, outputs
        self.call()

    def call(self) -> None:
        """Calls the kernel once: its outputs are written."""
        with self._device.noting() as self._launches:
            self._model.run(self._inputs, out=self._outputs)

    def seconds(self, number: int) -> float:
        """Returns the seconds that a call takes on the device, made *number* times one after another."""
        return self._device.repeat(self._launches, number) / number


class DeviceTimer(TurnTimer[DeviceKernel]):
    """Times kernels of a device within *limits*, by the device's clock."""

    def first(self, call: DeviceKernel) -> float:
        """Calls a kernel; returns the seconds that a call takes once the driver has seen it."""
        call.call()
        return call.seconds(1)

    def times(self, calls: Sequence[DeviceKernel], repeats: int, number: int = 1) -> list[list[float]]:
        """Returns the seconds of each of *calls*, called *number* times one after another, for each of *repeats* turns."""
        return [[call.seconds(number) for call in calls] for _ in range(repeats)]
