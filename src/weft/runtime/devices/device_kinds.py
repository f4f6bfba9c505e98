"""The kinds of devices by name, each opened by the library of its driver, which need not be there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft.runtime.devices import opencl_library, webgpu_library
from weft.runtime.devices.device import Device
from weft.runtime.devices.opencl import OpenCLDevice
from weft.runtime.devices.webgpu import WebGPUDevice
from weft.support.errors import ToolchainError


@dataclass(frozen=True)
class DeviceKind:
    """A kind of device: how one is opened, the names of those that are here, and how to get one."""

    open: Callable[[str, Sequence[str]], Device]
    names: Callable[[], list[str]]
    install: str


def _opencl() -> list[str]:
    return [d.name for d in opencl_library.find_devices()]


def _webgpu() -> list[str]:
    return [webgpu_library.adapter_name(a) for a in webgpu_library.find_adapters()]


APIS: Final[Mapping[str, DeviceKind]] = {
    "opencl": DeviceKind(OpenCLDevice, _opencl, opencl_library.INSTALL),
    "wgsl": DeviceKind(WebGPUDevice, _webgpu, webgpu_library.INSTALL),
}
"""The kinds of devices that there are, by the language of their kernels."""


def open_device(api: str, source: str, kernels: Sequence[str]) -> Device:
    """Returns a device of this kind with the *kernels* of *source* on it, by which they are numbered.

    Raises `ToolchainError` where there is none, or its compiler refuses the source.
    """
    if api not in APIS:
        raise ToolchainError(f"there are no devices of the kind {api!r}", hint=f"there are {', '.join(APIS)}")
    return APIS[api].open(source, kernels)


def device_names(api: str) -> list[str]:
    """Returns the names of the devices of this kind that this machine has, the preferred one first."""
    return APIS[api].names() if api in APIS else []
