"""A device with CUDA by itself, on a driver that runs kernels on the processor: calls, failures, and what is freed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from tests.runtime.devices.fake_driver import FakeDriver, forget_driver, host_text, pretended_cubin, use_fake_driver

from weft.runtime.devices import Argument, Device, compute_capability, device_names, open_device
from weft.support.errors import DeviceError, ToolchainError

SCALE = """/* {"helpers": [], "kernels": ["scale"]} */
extern "C" __global__ void __launch_bounds__(4)
fn_scale(float *x, int64_t n) {
  x[blockIdx.x * 2 + threadIdx.x] *= n;
}
"""


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield use_fake_driver(monkeypatch)
    monkeypatch.undo()
    forget_driver()


def opened() -> Device:
    return open_device("cuda", "", ["fn_scale", "fn_scale"], [pretended_cubin(host_text(SCALE))] * 2)


def test_copies_and_a_launch(driver: FakeDriver) -> None:
    device = opened()
    assert device.name == "Pretended GPU 0"
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    block, other = device.alloc(x.nbytes), device.alloc(x.nbytes)
    device.write(block, 0, x.ctypes.data, x.nbytes)
    device.launch(1, (2, 1, 1, 2, 1, 1), [Argument(block, 16), Argument(None, 3)])
    device.move(Argument(other, 4), Argument(block, 0), 28)
    device.read(other, 4, y.ctypes.data, 28)
    assert y.tolist() == [0, 1, 2, 3, 12, 15, 18, 0]
    assert driver.calls() == [
        "cuDevicePrimaryCtxRetain 0",
        "cuStreamCreate 1",
        "cuModuleLoadData",  # once for both kernels
        "cuModuleGetFunction fn_scale",
        "cuModuleGetGlobal_v2 fn_scale_shared_bytes",  # it asks for no memory
        "cuModuleGetGlobal_v2 fn_scale_waits",  # nor to be launched early
        "cuModuleGetFunction fn_scale",
        "cuModuleGetGlobal_v2 fn_scale_shared_bytes",  # it asks for no memory
        "cuModuleGetGlobal_v2 fn_scale_waits",  # nor to be launched early
        "cuMemAlloc_v2 256",
        "cuMemAlloc_v2 256",
        "cuMemcpyHtoDAsync_v2 32",
        "cuStreamSynchronize",
        "cuLaunchKernelEx 2 1 1 2 1 1",
        "cuMemcpyDtoDAsync_v2 28",
        "cuMemcpyDtoHAsync_v2 28",
        "cuStreamSynchronize",
    ]


def test_a_kernel_that_waits_by_itself_is_launched_early(driver: FakeDriver) -> None:
    waiting = SCALE.replace("extern", 'extern "C" const unsigned int fn_scale_waits = 1;\nextern', 1)
    device = open_device("cuda", "", ["fn_scale"], [pretended_cubin(host_text(waiting))])
    block = device.alloc(8)
    device.launch(0, (1, 1, 1, 2, 1, 1), [Argument(block, 0), Argument(None, 3)])
    assert driver.calls()[-1] == "cuLaunchKernelEx 1 1 1 2 1 1 early"


def test_all_is_given_back(driver: FakeDriver) -> None:
    device = opened()
    device.free(device.alloc(10))
    device.alloc(5000)
    assert driver.live() == {"blocks": 2, "modules": 1, "streams": 1, "contexts": 1, "pinned": 0, "graphs": 0}
    device.close()
    assert set(driver.live().values()) == {0}


def test_freed_blocks_are_taken_again(driver: FakeDriver) -> None:
    device = opened()
    first = device.alloc(1000)
    device.free(first)
    assert device.alloc(1024) == first
    assert device.alloc(0) != first


def test_a_context_is_current_in_every_thread(driver: FakeDriver) -> None:
    device = opened()
    made: list[int] = []
    worker = threading.Thread(target=lambda: made.append(device.alloc(8)))
    worker.start()
    worker.join()
    x = np.ones(2, np.float32)
    device.write(made[0], 0, x.ctypes.data, 8)


def test_kept_blocks_make_room(driver: FakeDriver) -> None:
    driver.reset(memory=4096)
    device = opened()
    device.free(device.alloc(2048))
    device.alloc(4096)
    assert driver.live()["blocks"] == 1


def test_no_memory_left(driver: FakeDriver) -> None:
    driver.reset(memory=4096)
    device = opened()
    with pytest.raises(DeviceError) as error:
        device.alloc(5000)
    assert str(error.value) == (
        "cuMemAlloc_v2 of CUDA failed: there is no memory left on the device\n"
        "  hint: give it less at a time, or see whether the device works"
    )
    device.alloc(4096)


def test_a_lost_device(driver: FakeDriver) -> None:
    device = opened()
    x = np.ones(2, np.float32)
    block = device.alloc(8)
    driver.fail("cuStreamSynchronize", 700)
    with pytest.raises(DeviceError) as error:
        device.read(block, 0, x.ctypes.data, 8)
    assert str(error.value) == (
        "the device is lost: a kernel accessed memory outside of its buffers"
        " (CUDA_ERROR_ILLEGAL_ADDRESS in cuStreamSynchronize)\n"
        "  hint: start a new process, since this one can't use the device any more; if it happens again, it is a bug in Weft"
    )
    with pytest.raises(DeviceError, match="the device is lost"):
        device.alloc(1 << 20)
    device.close()  # tells nothing more


def test_a_failure_names_the_call(driver: FakeDriver) -> None:
    device = opened()
    x = np.ones(4, np.float32)
    with pytest.raises(DeviceError, match="cuMemcpyHtoDAsync_v2 of CUDA failed: CUDA_ERROR_INVALID_VALUE"):
        device.write(device.alloc(4), 600, x.ctypes.data, 16)


def test_more_blocks_than_cuda_starts(driver: FakeDriver) -> None:
    with pytest.raises(DeviceError) as error:
        opened().launch(0, (1, 1, 65536, 2, 1, 1), [])
    assert str(error.value) == (
        "a kernel is to run 65536 blocks along z, but CUDA starts 65535 at most\n"
        "  hint: give it less at a time, such as a smaller batch"
    )


def test_code_for_another_architecture(driver: FakeDriver) -> None:
    with pytest.raises(ToolchainError) as error:
        open_device("cuda", "", ["fn_scale"], [b"for another"])
    assert str(error.value) == (
        "Pretended GPU 0, which is sm_90, does not load the kernels: cuModuleLoadData of CUDA failed: the kernels are for another"
        " architecture\n  hint: compile them for this machine, with target='cuda'"
    )


def test_a_missing_kernel(driver: FakeDriver) -> None:
    with pytest.raises(DeviceError, match="cuModuleGetFunction of CUDA failed: status 500"):
        open_device("cuda", "", ["fn_other"], [pretended_cubin(host_text(SCALE))])


@pytest.mark.parametrize(("devices", "told"), [(0, "device with CUDA"), (-1, "driver for CUDA")])
def test_a_machine_without_devices(driver: FakeDriver, devices: int, told: str) -> None:
    driver.reset(devices)
    assert device_names("cuda") == []
    assert compute_capability() is None
    with pytest.raises(ToolchainError) as error:
        opened()
    assert str(error.value) == (
        f"this machine has no {told}\n"
        "  hint: install NVIDIA's driver; code for CUDA can be compiled without one, and needs a GPU to run"
    )


def test_what_the_device_is(driver: FakeDriver) -> None:
    driver.reset(2)
    assert device_names("cuda") == ["Pretended GPU 0", "Pretended GPU 1"]
    assert compute_capability() == (9, 0)
