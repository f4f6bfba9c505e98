"""Refuses a model that a device has no memory for, before its constants are copied there."""

from __future__ import annotations

from typing import Final

from weft.runtime.devices.device import Device, TellsMemory
from weft.support.errors import DeviceError

MIB: Final = 1 << 20


def check_memory(device: Device, constants: int, arena: int) -> None:
    """Raises `DeviceError` where the bytes of a model's constants and of a call's arena are more than a device tells it has."""
    needed = constants + arena
    if not isinstance(device, TellsMemory) or (there := device.memory()) >= needed:
        return
    raise DeviceError(
        f"the model takes {needed / MIB:.1f} MiB of a device's memory, {constants / MIB:.1f} for its constants and"
        f" {arena / MIB:.1f} for a call, and {device.name} has {there / MIB:.1f} MiB",
        hint="close what else uses the device, give the model a smaller batch, or compile it for a cpu target",
    )
