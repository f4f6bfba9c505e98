"""Scatters on devices: updates by threads side by side, in every language, give what the processor does in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from tests.runtime.devices.fake_driver import FakeDriver
from tests.support.devices import needs_clang, needs_nvrtc, needs_opencl, needs_webgpu
from tests.support.metal.metal_shim import check_text, use_metal_shim

import weft
from weft.cli.onnx_builder import GraphBuilder
from weft.driver.build import build
from weft.targets.cuda_machines import LISTED

REDUCTIONS = ("none", "add", "mul", "min", "max")
TYPES: dict[int, Any] = {TensorProto.FLOAT: np.float32, TensorProto.INT32: np.int32, TensorProto.UINT32: np.uint32}
WIDE: dict[int, Any] = {TensorProto.DOUBLE: np.float64, TensorProto.INT64: np.int64, TensorProto.UINT64: np.uint64}
ROWS, COLUMNS, UPDATES = 5, 7, 300


def scatters(dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Each reduction of rows, and of elements along an axis, with many updates of each element."""
    g = GraphBuilder("scatters")
    x = g.input("x", (ROWS, COLUMNS), dtype)
    rows, u = g.input("rows", (UPDATES, 1), TensorProto.INT64), g.input("u", (UPDATES, COLUMNS), dtype)
    at = g.input("at", (ROWS, UPDATES), TensorProto.INT64)
    v = g.input("v", (ROWS, UPDATES), dtype)
    for r in REDUCTIONS:
        g.output(g.op("ScatterND", x, rows, u, reduction=r), f"nd_{r}", dtype)
        g.output(g.op("ScatterElements", x, at, v, axis=1, reduction=r), f"elements_{r}", dtype)
    return g.model()


def given(dtype: Any) -> list[np.ndarray[Any, Any]]:
    """Numbers whose sums are exact, and whose products stay in range; indices from both ends."""
    rng = np.random.default_rng(0)
    x, u, v = (rng.choice([1, 2, 3], shape) for shape in ((ROWS, COLUMNS), (UPDATES, COLUMNS), (ROWS, UPDATES)))
    u, v = (np.where(rng.random(y.shape) < 0.9, 1, y) for y in (u, v))
    rows = rng.integers(-ROWS, ROWS, (UPDATES, 1))
    return [x.astype(dtype), rows, u.astype(dtype), rng.integers(-COLUMNS, COLUMNS, (ROWS, UPDATES)), v.astype(dtype)]


def check_on(target: str, dtype: int, kind: Any) -> None:
    """Fails unless threads update as the processor does."""
    model, values = scatters(dtype), given(kind)
    wanted = weft.compile(model, cache=False).run(values)
    for found, expected in zip(weft.compile(model, target=target, cache=False).run(values), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


@needs_opencl
@pytest.mark.parametrize("dtype", TYPES)
def test_with_opencl(dtype: int) -> None:
    check_on("opencl -device=any", dtype, TYPES[dtype])


@needs_webgpu
@pytest.mark.parametrize("dtype", TYPES)
def test_with_webgpu(dtype: int) -> None:
    check_on("webgpu", dtype, TYPES[dtype])


@needs_clang
@pytest.mark.parametrize("dtype", TYPES)
def test_with_metal(dtype: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = build(scatters(dtype), "metal", cache=None).package.kernel_source
    assert "weft_atomic_add_" in source
    check_text(source)
    use_metal_shim(monkeypatch)
    check_on("metal", dtype, TYPES[dtype])


@pytest.mark.parametrize("dtype", [*TYPES, *WIDE])
def test_with_cuda(dtype: int, driver: FakeDriver) -> None:
    check_on("cuda", dtype, (TYPES | WIDE)[dtype])


@needs_nvrtc
@pytest.mark.parametrize("dtype", [*TYPES, *WIDE])
def test_nvrtc_compiles_them(dtype: int) -> None:
    build(scatters(dtype), f"cuda -arch={LISTED[0]}", cache=None)
