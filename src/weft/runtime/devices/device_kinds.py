"""The kinds of devices by name, each opened by the library of its driver, which need not be there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.runtime.devices.device import Device
from weft.runtime.devices.opencl import OpenCLDevice
from weft.runtime.devices.opencl_library import find_devices
from weft.support.errors import ToolchainError

APIS: Final = ("opencl",)
"""The kinds of devices that there are."""


def open_device(api: str, source: str, kernels: Sequence[str]) -> Device:
    """Returns a device of this kind with the *kernels* of *source* on it, by which they are numbered.

    Raises `ToolchainError` where there is none, or its compiler refuses the source.
    """
    if api not in APIS:
        raise ToolchainError(f"there are no devices of the kind {api!r}", hint=f"there are {', '.join(APIS)}")
    return OpenCLDevice(source, kernels)


def device_names(api: str) -> list[str]:
    """Returns the names of the devices of this kind that this machine has, the preferred one first."""
    return [d.name for d in find_devices()] if api in APIS else []
