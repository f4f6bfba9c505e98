"""Buffers of more bytes than a binding may have: kernels find each element in the part that it is in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.codegen.c.networks import NETWORKS
from tests.driver.device.test_models_on_device import inputs_of
from tests.support.devices import needs_webgpu
from tests.support.grid.one_block import one_block

import weft
from weft.codegen import SourceCode, compile_program, link
from weft.driver.build import build
from weft.runtime.devices import Argument, open_device
from weft.support.errors import InputError
from weft.targets import Target
from weft.targets.grid_machines import WEBGPU

PART = 1024
THREADS = 64


def with_small_buffers(buffer_bytes: int) -> Target:
    assert WEBGPU.grid is not None
    return WEBGPU.having(grid=replace(WEBGPU.grid, buffer_bytes=buffer_bytes))


def source(params: str, *lines: str) -> SourceCode:
    target = with_small_buffers(PART)
    made = link([compile_program(one_block(params, lines, THREADS), target)], target)
    assert isinstance(made, SourceCode)
    return made


def run(made: SourceCode, *arrays: np.ndarray[Any, Any]) -> None:
    """Runs a kernel of one block on arrays that lie 288 bytes into blocks of memory, and takes back what it makes of them."""
    device = open_device("wgsl", made.text, list(made.symbols.values()))
    places = [Argument(device.alloc(288 + a.nbytes), 288) for a in arrays]
    for place, a in zip(places, arrays, strict=True):
        device.write(place.block or 0, place.at, a.ctypes.data, a.nbytes)
    device.launch(0, (1, 1, 1, THREADS, 1, 1), places)
    for place, a in zip(places, arrays, strict=True):
        device.read(place.block or 0, place.at, a.ctypes.data, a.nbytes)
    device.close()


@needs_webgpu
@pytest.mark.parametrize(
    ("kind", "dtype"), [("f32", np.float32), ("i64", np.int64), ("i8", np.int8), ("bf16", ml_dtypes.bfloat16)]
)
def test_all_elements_are_found(kind: str, dtype: Any) -> None:
    n = (3 * PART - 512) // np.dtype(dtype).itemsize
    loop = f"for i in range(0, {n // THREADS}):"
    made = source(f"x: {kind}[{n}], y: {kind}[{n}]", loop, f"    y[i * {THREADS} + t] = x[i * {THREADS} + t]")
    assert ": 6 buffers, in 3 3 parts of 1024 bytes\n" in made.text
    x, y = (np.arange(n) % 100).astype(dtype), np.zeros(n, dtype)
    run(made, x, y)
    np.testing.assert_array_equal(y, x)


@needs_webgpu
def test_a_network_whose_weights_are_in_parts() -> None:
    model = NETWORKS["mlp"]()
    made = build(model, with_small_buffers(1024), cache=None)
    assert made.package.replay is not None
    assert made.package.replay.device is not None
    assert "parts of 1024 bytes" in made.package.replay.device.source
    here, there = weft.compile(model), weft.Model(made.package)
    given = inputs_of(here)
    for expected, found in zip(here.run(given), there.run(given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_a_buffer_in_more_parts_than_a_kernel_takes_buffers() -> None:
    with pytest.raises(InputError, match="f: it takes 31 buffers, and a kernel of webgpu takes 30"):
        source(f"x: f32[{31 * PART // 4 - 64}]", "x[t] = 0.0")
