"""Models for Metal: their kernels compile as Apple's compiler takes them, and a shim runs them on the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from tests.codegen.c.networks import NETWORKS, OTHERS
from tests.driver.device.test_models_on_device import doubled, inputs_of
from tests.support.devices import needs_clang
from tests.support.metal.metal_shim import check_text, use_metal_shim

import weft
from weft.driver.build import build
from weft.support.errors import InputError, ToolchainError

MODELS = {**NETWORKS, **OTHERS}
QUICK = ("mlp", "bert")
each_model = pytest.mark.parametrize(
    "make", [pytest.param(m, id=name, marks=() if name in QUICK else pytest.mark.slow) for name, m in MODELS.items()]
)


@needs_clang
@each_model
def test_all_kernels_compile(make: Callable[[], onnx.ModelProto]) -> None:
    source = build(make(), "metal", cache=None).package.kernel_source
    assert source.count("kernel void") >= 2
    check_text(source)


@each_model
def test_results_are_those_of_the_processor(
    make: Callable[[], onnx.ModelProto], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_metal_shim(monkeypatch)
    model = make()
    here, there = weft.compile(model), weft.compile(model, target="metal", cache=False)
    given = inputs_of(here)
    for _ in range(2):  # the second call has memory of the first
        for expected, made in zip(here.run(given), there.run(given), strict=True):
            np.testing.assert_allclose(made, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "INT16", "INT64", "UINT64", "FLOAT16", "BFLOAT16"])
def test_types(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_metal_shim(monkeypatch)
    there = weft.compile(doubled(getattr(onnx.TensorProto, dtype), ["n"]), target="metal", cache=False)
    kind = there.inputs[0].dtype.numpy
    values: Any = [0, 1, 2.5, 3e-6, -7, 65000, np.inf, np.nan] if "FLOAT" in dtype else [0, 1, 99, 1 << 62, -5]
    x = np.array(values).astype(kind)
    with np.errstate(all="ignore"):
        found, wanted = there.run([x])[0], x + x
    if "FLOAT" in dtype:
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_array_equal(found, wanted)


def test_a_type_that_metal_lacks() -> None:
    with pytest.raises(InputError) as error:
        build(doubled(onnx.TensorProto.DOUBLE, [4]), "metal")
    assert str(error.value) == (
        "Add twice: x is of type f64, which metal does not compute with\n"
        '  hint: convert the model to float32, or compile it for a cpu target, or for "metal+cpu"'
    )


def test_nothing_runs_without_a_runtime() -> None:
    with pytest.raises(ToolchainError) as error:
        weft.compile(NETWORKS["mlp"](), target="metal")
    assert str(error.value) == (
        "code for 'metal' does not run here: Weft has no runtime for Metal\n"
        "  hint: use the target webgpu, which runs on a Mac's GPU by way of Metal; or write the kernels' source, "
        "weft.build(model, 'metal').package.kernel_source, for a program of your own"
    )
    made = build(NETWORKS["mlp"](), "metal")
    with pytest.raises(ToolchainError, match="Weft has no runtime for Metal"):
        weft.Model(made.package)
