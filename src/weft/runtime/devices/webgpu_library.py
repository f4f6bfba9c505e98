"""The package `wgpu`, which runs WebGPU over Vulkan, Metal or Direct3D 12: the devices that it offers, and one of them, opened.

It is imported where it is first asked for, and need not be there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

from weft.support.errors import DeviceError, ToolchainError
from weft.support.lazy_import import resolve

INSTALL: Final = (
    "install Weft with its extra 'webgpu', pip install '.[webgpu]' in the folder of the checkout, and the driver of a device; "
    "without any, apt install mesa-vulkan-drivers libvulkan1 runs Vulkan on the processor"
)

_LIMITS: Final = (
    "max-storage-buffers-per-shader-stage",
    "max-storage-buffer-binding-size",
    "max-buffer-size",
    "min-storage-buffer-offset-alignment",
)
"""The limits that are asked for as the device has them; of all others, those that every device has are enough."""

LOST: Final = "device is lost"
"""Words of the errors of all that is done on a lost device: its driver failed, or stopped a kernel that took too long."""

_NATIVE: Final = ("Vulkan", "Metal", "D3D12")
_KINDS: Final = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "CPU")


@contextmanager
def calling(what: str) -> Iterator[None]:
    """Turns the exceptions of `wgpu` in the statements inside into `DeviceError`s, which tell that *what* failed."""
    try:
        yield
    except DeviceError:
        raise
    except Exception as error:  # the package has a class of errors of its own, and raises others as well
        told = " ".join(str(error).split()) or type(error).__name__
        if LOST in told:
            open_adapter.cache_clear()  # models that are loaded from now on open it again
            raise DeviceError(
                f"the device is lost: {what} by WebGPU failed",
                hint="load the model again, which opens the device anew; if it happens again, it is a bug in Weft",
            ) from error
        raise DeviceError(
            f"{what} by WebGPU failed: {told}", hint="give it less at a time, or see whether the device works"
        ) from error


@contextmanager
def _with_runtime_directory() -> Iterator[None]:
    """Gives drivers a directory for their sockets while they start: without it they complain on the terminal."""
    if "XDG_RUNTIME_DIR" in os.environ:
        yield
        return
    os.environ["XDG_RUNTIME_DIR"] = tempfile.gettempdir()
    try:
        yield
    finally:
        del os.environ["XDG_RUNTIME_DIR"]


@cache
def find_adapters() -> tuple[Any, ...]:
    """Returns the devices of all drivers, GPUs first; none where the package is missing, or there is no driver."""
    if find_spec("wgpu") is None:
        return ()
    gpu, refusal = resolve("wgpu:gpu"), resolve("wgpu:GPUError")
    with _with_runtime_directory():
        try:
            found = [a for a in gpu.enumerate_adapters_sync() if a.info["backend_type"] in _NATIVE]
        except (OSError, RuntimeError, refusal):  # its library does not load here, or finds no driver
            return ()
    return tuple(sorted(found, key=_rank))


def _rank(adapter: Any) -> int:
    kind = adapter.info["adapter_type"]
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)


def adapter_name(adapter: Any) -> str:
    """Returns the name by which a driver knows its device."""
    return str(adapter.info["device"])


def names() -> list[str]:
    """Returns the names of the adapters that this machine has, the preferred one first."""
    return [adapter_name(a) for a in find_adapters()]


@cache
def open_adapter() -> Any:
    """Returns the first device, opened once for all models; raises `ToolchainError` where there is none."""
    if not (adapters := find_adapters()):
        raise ToolchainError("this machine has no device with WebGPU", hint=INSTALL)
    wanted = {name: adapters[0].limits[name] for name in _LIMITS}
    with calling("opening a device"), _with_runtime_directory():
        return adapters[0].request_device_sync(required_limits=wanted)
