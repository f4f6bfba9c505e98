"""A device with WebGPU by itself: memory, copies of any bytes, launches of any grid, and what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.support.devices import needs_webgpu

from weft.runtime.devices import Argument, Device, device_names, open_device, webgpu_library
from weft.support.errors import DeviceError, ToolchainError

SCALE = """
const ONE = 1.0f;
// kernel scale: 1 buffers
struct Given { x_at: u32, n: u32, n_high: u32 }
@group(0) @binding(0) var<uniform> given: Given;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(2) fn scale(@builtin(workgroup_id) b: vec3<u32>, @builtin(local_invocation_id) t: vec3<u32>) {
  x[given.x_at / 4u + (b.y * 65535u + b.x) * 2u + t.x] *= f32(given.n) * ONE;
}
"""


@pytest.fixture
def device() -> Iterator[Device]:
    made = open_device("wgsl", SCALE, ["scale"])
    yield made
    made.close()


@needs_webgpu
def test_copies_and_launches(device: Device) -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    block, other = device.alloc(x.nbytes), device.alloc(x.nbytes)
    device.write(block, 0, x.ctypes.data, x.nbytes)
    for _ in range(2):
        device.launch(0, (2, 1, 1, 2, 1, 1), [Argument(block, 16), Argument(None, 3)])
    device.move(Argument(other, 4), Argument(block, 0), 28)
    device.read(other, 4, y.ctypes.data, 28)
    assert y.tolist() == [0, 1, 2, 3, 36, 45, 54, 0]


@needs_webgpu
def test_copies_of_parts_of_words(device: Device) -> None:
    x, y = np.arange(40, dtype=np.uint8), np.zeros(40, np.uint8)
    block, other = device.alloc(40), device.alloc(40)
    for b in (block, other):
        device.write(b, 0, y.ctypes.data, 40)
    device.write(block, 3, x.ctypes.data, 9)
    device.move(Argument(other, 1), Argument(block, 2), 11)
    device.move(Argument(other, 20), Argument(other, 0), 12)
    device.read(other, 19, y.ctypes.data, 13)
    assert y[:13].tolist() == [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0]


@needs_webgpu
def test_a_grid_that_is_longer_than_an_axis(device: Device) -> None:
    x = np.ones(2 * 70_000 + 2 * 65_535, np.float32)
    block = device.alloc(x.nbytes)
    device.write(block, 0, x.ctypes.data, x.nbytes)
    device.launch(0, (35_000, 2, 1, 2, 1, 1), [Argument(block, 0), Argument(None, 5)])
    device.read(block, 0, x.ctypes.data, x.nbytes)
    assert (x[: 2 * 70_000] == 5).all()


@needs_webgpu
def test_a_failure_names_the_call(device: Device) -> None:
    with pytest.raises(DeviceError, match="a copy from the device by WebGPU failed: "):
        device.read(device.alloc(64), 1 << 40, 0, 64)


@needs_webgpu
def test_a_lost_device() -> None:
    """Nothing can be done on it any more; a model that is loaded afterwards opens it anew."""
    x = np.ones(16, np.float32)
    webgpu_library.open_adapter.cache_clear()  # others keep theirs
    device = open_device("wgsl", SCALE, ["scale"])
    block = device.alloc(64)
    webgpu_library.open_adapter().destroy()
    with pytest.raises(DeviceError) as error:
        device.write(block, 0, x.ctypes.data, 64)
    assert str(error.value) == (
        "the device is lost: a copy to the device by WebGPU failed\n"
        "  hint: load the model again, which opens the device anew; if it happens again, it is a bug in Weft"
    )
    again = open_device("wgsl", SCALE, ["scale"])
    again.write(again.alloc(64), 0, x.ctypes.data, 64)
    device.close()  # tells nothing more
    again.close()


@needs_webgpu
def test_memory_beyond_the_limit_of_a_buffer(device: Device) -> None:
    with pytest.raises(DeviceError, match=r"1099511627776 bytes are more than the \d+ that a buffer of .* may have"):
        device.alloc(1 << 40)


@needs_webgpu
def test_source_that_the_driver_refuses() -> None:
    with pytest.raises(ToolchainError, match=r"refused the kernel f: (.|\n)*nonsense"):
        open_device("wgsl", "// kernel f: 0 buffers\n@compute @workgroup_size(1) fn f() { nonsense; }", ["f"])


@needs_webgpu
def test_a_kernel_with_too_many_buffers() -> None:
    with pytest.raises(ToolchainError, match=r"the kernel f takes 9999 buffers, and .* binds no more than \d+"):
        open_device("wgsl", "// kernel f: 9999 buffers\n", ["f"])


def test_a_machine_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    webgpu_library.open_adapter.cache_clear()
    monkeypatch.setattr("weft.runtime.devices.webgpu_library.find_adapters", tuple)
    with pytest.raises(ToolchainError) as error:
        open_device("wgsl", SCALE, ["scale"])
    assert error.value.message == "this machine has no device with WebGPU"
    assert error.value.hint is not None
    assert error.value.hint.startswith("install Weft with its extra 'webgpu', pip install '.[webgpu]'")


def test_a_machine_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.runtime.devices.webgpu_library.find_spec", lambda name: None)
    webgpu_library.find_adapters.cache_clear()
    assert device_names("wgsl") == []
    webgpu_library.find_adapters.cache_clear()
