"""Models for CUDA: their kernels run on a driver that pretends to be a GPU, and NVRTC compiles them for each architecture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.codegen.c.networks import NETWORKS, OTHERS
from tests.driver.device.test_models_on_device import inputs_of
from tests.models import mlp
from tests.runtime.devices.fake_driver import FakeDriver
from tests.support.cuda_resources import check_resources
from tests.support.devices import needs_nvrtc

import weft
from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.support.errors import DeviceError, ToolchainError
from weft.targets import parse_target
from weft.targets.cuda_machines import LISTED

MODELS = {**NETWORKS, **OTHERS}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_results_are_those_of_the_processor(make: Callable[[], onnx.ModelProto], driver: FakeDriver) -> None:
    model = make()
    here, there = weft.compile(model), weft.compile(model, target="cuda", cache=False)
    given = inputs_of(here)
    for _ in range(3):  # the second call has memory of the first, and the third its graph
        for expected, made in zip(here.run(given), there.run(given), strict=True):
            np.testing.assert_allclose(made, expected, rtol=2e-5, atol=2e-5)
    del there
    assert set(driver.live().values()) == {0}


@needs_nvrtc
@pytest.mark.sampled(1)
@pytest.mark.parametrize("arch", LISTED)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_nvrtc_compiles_all_kernels(
    make: Callable[[], onnx.ModelProto], arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each architecture has plans and instructions of its own."""
    check_resources(make(), arch, monkeypatch)


def half_product(dtype: int, *, transposed: bool) -> onnx.ModelProto:
    """Returns a product of 64 rows by 64 columns with a bias, all of 16 bits: `x` [64, 32] -> `y`."""
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(s) for s in ((64, 32) if transposed else (32, 64), (64,))]
    weights = [helper.make_tensor(n, dtype, v.shape, v.reshape(-1)) for n, v in zip("wb", values, strict=True)]
    gemm = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=int(transposed))
    x, y = (helper.make_tensor_value_info(n, dtype, (64, k)) for n, k in (("x", 32), ("y", 64)))
    graph = helper.make_graph([gemm], "product", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16])
def test_products_by_warps(driver: FakeDriver, dtype: int, transposed: bool) -> None:
    model = half_product(dtype, transposed=transposed)
    made = build(model, "cuda", cache=None)
    assert any("warp.mma" in k.flat for k in made.kernels.values())
    here, there = weft.compile(model), weft.Model(made.package)
    given = inputs_of(here)
    expected, found = [m.run(given)[0].astype(np.float32) for m in (here, there)]
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", [onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16])
def test_vectors_of_sixteen_bits(driver: FakeDriver, dtype: int) -> None:
    """Eight elements are loaded and stored at once, in a softmax of one kernel and in what is computed element by element."""
    nodes = [helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Softmax", ["s"], ["y"], axis=-1)]
    x, s, y = (helper.make_tensor_value_info(n, dtype, (8, 512)) for n in "xsy")
    graph = helper.make_graph(nodes, "rows", [x], [s, y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    here, there = weft.compile(model), weft.compile(model, target="cuda", cache=False)
    made = build(model, "cuda", cache=None)
    assert [k.flat.count("@function(kernel=1)") for k in made.kernels.values()] == [1, 1]
    given = inputs_of(here)
    for expected, found in zip(here.run(given), there.run(given), strict=True):
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), rtol=1e-2, atol=1e-3)


def test_products_rounded_to_bf16(driver: FakeDriver) -> None:
    model = mlp(batch=128, widths=(768, 768, 64))
    made = build(model, "cuda", CompileOptions(precision="bf16"), cache=None)
    assert any("cuda.wgmma_bf16" in k.flat for k in made.kernels.values())
    here, there = weft.compile(model), weft.Model(made.package)
    given = inputs_of(here)
    expected, found = [m.run(given)[0] for m in (here, there)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-2 * np.abs(expected).max())
    assert np.abs(found - expected).max() > 1e-5  # it is rounded


def test_kernels_are_for_the_device(driver: FakeDriver) -> None:
    assert parse_target("cuda").isa.cpu == "sm_90"
    assert weft.targets.can_run(parse_target("cuda"))


def test_a_model_that_the_device_has_no_memory_for(driver: FakeDriver) -> None:
    """It is refused before anything is copied: the weights have 2 MiB, beside 8 KiB for a call."""
    driver.reset(memory=1 << 20)
    with pytest.raises(DeviceError) as error:
        weft.compile(mlp(batch=2, widths=(512, 512, 512)), target="cuda", cache=False)
    assert str(error.value) == (
        "the model takes 2.0 MiB of a device's memory, 2.0 for its constants and 0.0 for a call,"
        " and Pretended GPU 0 has 1.0 MiB\n"
        "  hint: close what else uses the device, give the model a smaller batch, or compile it for a cpu target"
    )
    assert not any(call.startswith("cuMemAlloc") for call in driver.calls())


def test_a_machine_without_a_gpu(driver: FakeDriver) -> None:
    driver.reset(0)
    with pytest.raises(ToolchainError) as error:
        weft.compile(NETWORKS["mlp"](), target="cuda")
    assert str(error.value) == (
        "code for 'cuda' does not run here: there is no device\n"
        "  hint: install NVIDIA's driver; code for CUDA can be compiled without one, and needs a GPU to run"
    )
