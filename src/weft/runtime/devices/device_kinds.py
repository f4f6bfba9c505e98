"""The kinds of devices by name, each opened by the library of its driver, which need not be there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft.runtime.devices import cuda_library, metal, opencl_library, webgpu_library
from weft.runtime.devices.cuda import CudaDevice
from weft.runtime.devices.device import Device
from weft.runtime.devices.opencl import OpenCLDevice
from weft.runtime.devices.webgpu import WebGPUDevice
from weft.support.errors import ToolchainError


@dataclass(frozen=True)
class DeviceKind:
    """How a device is opened with a source, kernels and their machine code, and the names of those that there are.

    Where there are none, `missing` is the reason, and `install` the remedy.
    """

    open: Callable[[str, Sequence[str], Sequence[bytes]], Device]
    names: Callable[[], list[str]]
    install: str
    missing: str = "there is no device"


APIS: Final[Mapping[str, DeviceKind]] = {
    "opencl": DeviceKind(
        lambda source, kernels, _: OpenCLDevice(source, kernels), opencl_library.names, opencl_library.INSTALL
    ),
    "wgsl": DeviceKind(
        lambda source, kernels, _: WebGPUDevice(source, kernels), webgpu_library.names, webgpu_library.INSTALL
    ),
    "metal": DeviceKind(metal.refuse, metal.names, metal.INSTALL, metal.MISSING),
    "cuda": DeviceKind(lambda _, kernels, code: CudaDevice(code, kernels), cuda_library.names, cuda_library.INSTALL),
}
"""The kinds of devices that there are, by the language of their kernels."""


def open_device(api: str, source: str, kernels: Sequence[str], binaries: Sequence[bytes] = ()) -> Device:
    """Returns a device of this kind with *kernels* on it, by which they are numbered.

    They are those of *source*, or of the machine code in *binaries*, one for each kernel. Raises `ToolchainError` where there is
    no device, or its compiler refuses the source.
    """
    if api not in APIS:
        raise ToolchainError(f"there are no devices of the kind {api!r}", hint=f"there are {', '.join(APIS)}")
    return APIS[api].open(source, kernels, binaries)


def device_names(api: str) -> list[str]:
    """Returns the names of the devices of this kind that this machine has, the preferred one first."""
    return APIS[api].names() if api in APIS else []


def why_missing(api: str) -> str:
    """Returns why nothing of this kind runs here."""
    return APIS[api].missing


def install_hint(api: str) -> str:
    """Returns the hint where there is no device of this kind."""
    return APIS[api].install
