"""A device with OpenCL by itself: memory, copies, launches, and what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from tests.support.devices import needs_opencl

from weft.runtime.devices import Argument, Device, device_names, open_device, opencl_library
from weft.runtime.devices.check_memory import check_memory
from weft.runtime.devices.opencl import OpenCLDevice
from weft.support.errors import DeviceError, ToolchainError

SCALE = """
kernel void scale(global uchar *block, long at, long n) {
  global float *x = (global float *)(block + at);
  x[get_global_id(0)] *= n;
}
"""


@pytest.fixture
def device() -> Iterator[Device]:
    made = open_device("opencl", SCALE, ["scale"])
    yield made
    made.close()


@needs_opencl
def test_copies_and_a_launch(device: Device) -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    block, other = device.alloc(x.nbytes), device.alloc(x.nbytes)
    device.write(block, 0, x.ctypes.data, x.nbytes)
    device.launch(0, (2, 1, 1, 2, 1, 1), [Argument(block, 16), Argument(None, 3)])
    device.move(Argument(other, 4), Argument(block, 0), 28)
    device.read(other, 4, y.ctypes.data, 28)
    assert y.tolist() == [0, 1, 2, 3, 12, 15, 18, 0]


@needs_opencl
def test_freed_blocks_are_taken_again(device: Device) -> None:
    first = device.alloc(1000)
    device.free(first)
    assert device.alloc(1001) == first
    assert device.alloc(0) != first


@needs_opencl
def test_a_failure_names_the_call(device: Device) -> None:
    with pytest.raises(DeviceError, match="clEnqueueReadBuffer of OpenCL failed"):
        device.read(device.alloc(64), 1 << 40, 0, 64)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (-2, "it is not available"),
        (-34, "its context is no more"),
        (-36, "its queue is no more"),
        (-9999, "a kernel accessed memory outside of its buffers"),
    ],
)
@needs_opencl
def test_a_lost_device(device: Device, status: int, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    block, x = device.alloc(64), np.zeros(16, np.float32)
    with monkeypatch.context() as patch:
        patch.setattr(opencl_library.library(), "clEnqueueReadBuffer", lambda *_: status)
        with pytest.raises(DeviceError) as error:
            device.read(block, 0, x.ctypes.data, 64)
    assert str(error.value) == (
        f"the device is lost: {why} (status {status} of clEnqueueReadBuffer)\n"
        "  hint: start a new process, since this one can't use the device any more; if it happens again, it is a bug in Weft"
    )


@needs_opencl
def test_a_model_that_the_device_has_no_memory_for(device: Device) -> None:
    assert isinstance(device, OpenCLDevice)
    assert device.memory() > 1 << 24
    check_memory(device, 1 << 20, 1 << 20)
    device.found = replace(device.found, memory_bytes=3 << 19)
    with pytest.raises(DeviceError) as error:
        check_memory(device, 5 << 20, 1 << 19)
    assert str(error.value) == (
        "the model takes 5.5 MiB of a device's memory, 5.0 for its constants and 0.5 for a call,"
        f" and {device.name} has 1.5 MiB\n"
        "  hint: close what else uses the device, give the model a smaller batch, or compile it for a cpu target"
    )


@needs_opencl
def test_source_that_the_driver_refuses() -> None:
    with pytest.raises(ToolchainError, match=r"refused the kernels: (.|\n)*nonsense"):
        open_device("opencl", "kernel void f() { nonsense; }", ["f"])


def test_a_machine_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.runtime.devices.opencl.find_devices", tuple)
    with pytest.raises(ToolchainError) as error:
        open_device("opencl", SCALE, ["scale"])
    assert error.value.message == "this machine has no device with OpenCL"
    assert error.value.hint is not None
    assert error.value.hint.startswith("install the driver of a device")


def test_an_unknown_kind() -> None:
    assert device_names("abacus") == []
    with pytest.raises(ToolchainError, match="there are no devices of the kind 'abacus'"):
        open_device("abacus", SCALE, ["scale"])
