"""Kernels as WGSL: threads, memories and barriers, numbers of 64 bits, and what the language has no words for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.lower.threaded import tiled_matmul
from tests.schedule.programs import matmul
from tests.support.devices import needs_webgpu
from tests.support.grid.one_block import one_block

from weft import te
from weft.codegen import Module, SourceCode, backend_of, compile_program, link
from weft.ir import apply
from weft.lower import lower
from weft.runtime.devices import Argument, open_device
from weft.schedule import schedule_program
from weft.support.dtypes import f32
from weft.support.errors import InputError, LoweringError, ToolchainError
from weft.targets.grid_machines import WEBGPU


def kernel(params: str, *lines: str, threads: int = 64) -> Module:
    return compile_program(one_block(params, lines, threads), WEBGPU)


def test_a_tiled_product(golden: Callable[[str], None]) -> None:
    flat = lower(tiled_matmul(matmul(64, 64, 64)).program, WEBGPU, verify=True)
    golden(backend_of(WEBGPU).listing(flat, WEBGPU))


def test_a_warp_has_no_barrier_of_its_own() -> None:
    with pytest.raises(LoweringError, match=r"WGSL has no weft\.barrier\.warp"):
        kernel("x: f32[64]", 'call("weft.barrier.warp")', "x[t] = 0.0")


def test_a_type_that_the_language_lacks() -> None:
    with pytest.raises(InputError) as error:
        kernel("x: f64[64]", "x[t] = f64(0.0)")
    assert str(error.value) == 'f: WGSL has no f64\n  hint: compile this model for a cpu target, or for "webgpu+cpu"'


def test_a_kernel_with_too_many_buffers() -> None:
    names = [f"x{i}" for i in range(31)]
    with pytest.raises(InputError) as error:
        kernel(", ".join([f"{n}: f32[64]" for n in names]), *[f"{n}[t] = 0.0" for n in names])
    assert str(error.value) == (
        "f: it takes 31 buffers, and a kernel of webgpu takes 30\n"
        "  hint: split the operator, or compile this model for a cpu target"
    )


def test_kernels_of_one_name_are_not_joined() -> None:
    made = kernel("x: f32[64]", "x[t] = x[t] * 0.5")
    with pytest.raises(ToolchainError, match="the kernel f is defined twice"):
        link([made, made], WEBGPU)
    assert isinstance(link([made, replace(made, renamed=(("f", "g"),))], WEBGPU), SourceCode)


WIDE: dict[str, Callable[[Any, Any], Any]] = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a // b": lambda a, b: a // b,
    "a % b": lambda a, b: a % b,
    "min(a, b)": np.minimum,
    "max(a, b)": np.maximum,
    "i64(a < b)": lambda a, b: (a < b).astype(np.int64),
    "i64(a <= b)": lambda a, b: (a <= b).astype(np.int64),
    "a << (b & i64(63))": lambda a, b: a << (b & 63),
    "a >> (b & i64(63))": lambda a, b: a >> (b & 63),
    "i64(f32(a))": lambda a, b: a.astype(np.float32).astype(np.int64),
    "i64(i32(a))": lambda a, b: a.astype(np.int32).astype(np.int64),
}


@needs_webgpu
def test_numbers_of_two_words() -> None:
    """All operators of i64 in one kernel, whose results are those of NumPy's."""
    rng = np.random.default_rng(0)
    a = np.concatenate([rng.integers(-(1 << 61), 1 << 61, 32), rng.integers(-99, 99, 32), 1 << rng.integers(0, 62, 32)])
    b = np.concatenate(
        [rng.integers(-(1 << 40), 1 << 40, 32), rng.integers(1, 9, 32), rng.integers(-(1 << 61), -1, 32)]
    )
    text = [e.replace("a", "p[t]").replace("b", "q[t]").replace("mp[t]x", "max") for e in WIDE]
    lines = [f"y[t + {96 * i}] = {e}" for i, e in enumerate(text)]
    made = link([kernel(f"p: i64[96], q: i64[96], y: i64[{96 * len(WIDE)}]", *lines, threads=96)], WEBGPU)
    assert isinstance(made, SourceCode)
    device = open_device("wgsl", made.text, list(made.symbols.values()))
    out = np.zeros(96 * len(WIDE), np.int64)
    blocks = [device.alloc(x.nbytes) for x in (a, b, out)]
    for block, x in zip(blocks, (a, b, out), strict=True):
        device.write(block, 0, x.ctypes.data, x.nbytes)
    device.launch(0, (1, 1, 1, 96, 1, 1), [Argument(block, 0) for block in blocks])
    device.read(blocks[2], 0, out.ctypes.data, out.nbytes)
    device.close()
    for name, found in zip(WIDE, out.reshape(len(WIDE), 96), strict=True):
        np.testing.assert_array_equal(found, WIDE[name](a, b), err_msg=name)


def test_a_choice_between_vectors_that_are_read() -> None:
    """Exponentials choose between values of what they read: both are read, which no device minds."""
    x = te.placeholder((1024, 1024), f32, "X")
    y = te.compute((1024, 1024), lambda i, j: apply("exp", x[i, j]), "Y")
    scheduled = schedule_program(te.to_program([x], [y]), WEBGPU).program
    assert "array<vec4<f32>>" in backend_of(WEBGPU).listing(lower(scheduled, WEBGPU), WEBGPU)
