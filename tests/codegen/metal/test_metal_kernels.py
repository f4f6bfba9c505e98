"""Kernels as Metal Shading Language: threads, memories and barriers, its numbers, and what the language has no words for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.lower.threaded import tiled_matmul
from tests.schedule.programs import matmul
from tests.support.devices import needs_clang
from tests.support.grid.one_block import one_block
from tests.support.metal.metal_shim import HostMetal, check_text

from weft.codegen import Module, SourceCode, backend_of, compile_program, link
from weft.lower import lower
from weft.runtime.devices import Argument, open_device
from weft.support.dtypes import SCALARS
from weft.support.errors import InputError, ToolchainError
from weft.targets.grid_machines import METAL


def kernel(params: str, *lines: str, threads: int = 64) -> Module:
    return compile_program(one_block(params, lines, threads), METAL)


def source_of(*modules: Module) -> SourceCode:
    made = link(modules, METAL)
    assert isinstance(made, SourceCode)
    return made


def run_on_host(made: SourceCode, threads: int, arrays: Sequence[np.ndarray[Any, Any]], *numbers: int) -> None:
    """Runs the only kernel of a source in one block; *arrays* are changed in place."""
    device = HostMetal(made.text, list(made.symbols.values()))
    blocks = [device.alloc(x.nbytes) for x in arrays]
    for block, x in zip(blocks, arrays, strict=True):
        device.write(block, 0, x.ctypes.data, x.nbytes)
    given = [*[Argument(block, 0) for block in blocks], *[Argument(None, n) for n in numbers]]
    device.launch(0, (1, 1, 1, threads, 1, 1), given)
    for block, x in zip(blocks, arrays, strict=True):
        device.read(block, 0, x.ctypes.data, x.nbytes)
    device.close()


def test_a_tiled_product(golden: Callable[[str], None]) -> None:
    flat = lower(tiled_matmul(matmul(64, 64, 64)).program, METAL, verify=True)
    golden(backend_of(METAL).listing(flat, METAL))


def test_numbers_are_one_buffer() -> None:
    made = source_of(kernel("x: i64[64], n: i64, m: i64", "x[t] = n * 3 + m"))
    assert "constant int64_t *weft_numbers [[buffer(1)]]" in made.text
    x = np.zeros(64, np.int64)
    run_on_host(made, 64, [x], 1 << 40, -5)
    assert (x == 3 * (1 << 40) - 5).all()


def test_a_warp_has_a_barrier_of_its_own() -> None:
    made = source_of(kernel("x: f32[64]", 'call("weft.barrier.warp")', "x[t] = 0.0"))
    assert "simdgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);" in made.text


@pytest.mark.parametrize("kind", ["f32", "i64", "u64", "f16", "bool", "i8"])
def test_threads_of_a_warp_exchange_numbers_of_any_type(kind: str) -> None:
    """The language has no shuffles of 64 bits, of bits of 16-bit floats, or of truths."""
    lines = (
        f'own = alloc("register", {kind}[1])',
        f'taken = alloc("register", {kind}[1])',
        "own[0] = x[t]",
        'call("weft.shuffle.warp", taken.at(0), own.at(0), 31 - t % 32)',
        "x[t] = taken[0]",
    )
    made = source_of(kernel(f"x: {kind}[64]", *lines))
    check_text(made.text)
    dtype = SCALARS[kind].numpy
    x = (
        np.random.default_rng(1).integers(0, 2, 64).astype(dtype)
        if kind == "bool"
        else (np.arange(64) * 3 - 90).astype(dtype)
    )
    given = x.copy()
    run_on_host(made, 64, [x])
    np.testing.assert_array_equal(x, given.reshape(2, 32)[:, ::-1].reshape(-1))


def test_a_type_that_the_language_lacks() -> None:
    for params, line in (("x: f64[64]", "x[t] = f64(0.0)"), ("x: f32[64]", "x[t] = f32(f64(x[t]) * f64(2.0))")):
        with pytest.raises(InputError) as error:
            kernel(params, line)
        assert str(error.value) == (
            'f: Metal Shading Language has no f64\n  hint: compile this model for a cpu target, or for "metal+cpu"'
        )


def test_a_kernel_with_too_many_buffers() -> None:
    names = [f"x{i}" for i in range(31)]
    with pytest.raises(InputError) as error:
        kernel(", ".join([f"{n}: f32[64]" for n in names]), *[f"{n}[t] = 0.0" for n in names])
    assert str(error.value) == (
        "f: it takes 31 buffers, and a kernel of metal takes 30\n"
        "  hint: split the operator, or compile this model for a cpu target"
    )


def test_kernels_are_no_code_of_the_processor() -> None:
    made = source_of(kernel("x: f32[64]", "x[t] = x[t] * 0.5"))
    with pytest.raises(ToolchainError) as error:
        backend_of(METAL).image(made, METAL)
    assert str(error.value) == (
        "kernels in Metal Shading Language are no machine code of this processor\n"
        "  hint: weft.compile loads them on the device"
    )
    with pytest.raises(ToolchainError, match="Weft has no runtime for Metal"):
        open_device("metal", made.text, list(made.symbols.values()))


INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "a + b": lambda a, b: a + b,
    "a * b": lambda a, b: a * b,
    "a // b": lambda a, b: a // b,
    "a % b": lambda a, b: a % b,
    "max(a, b)": np.maximum,
    "a << (b & i64(63))": lambda a, b: a << (b & 63),
    "i64(f32(a))": lambda a, b: a.astype(np.float32).astype(np.int64),
    "i64(i32(a))": lambda a, b: a.astype(np.int32).astype(np.int64),
    "a + i64(9223372036854775807)": lambda a, b: a + np.int64(2**63 - 1),
    "i64(i8(a)) - i64(u16(b))": lambda a, b: a.astype(np.int8).astype(np.int64) - b.astype(np.uint16).astype(np.int64),
}
FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "a / b": lambda a, b: a / b,
    "min(a, b)": np.minimum,
    "floor(a) + ceil(b)": lambda a, b: np.floor(a) + np.ceil(b),
    "round_even(a) - trunc(b)": lambda a, b: np.round(a) - np.trunc(b),
    "sqrt(abs(a))": lambda a, b: np.sqrt(np.abs(a)),
    "copysign(a, b) * 0.1": lambda a, b: np.copysign(a, b) * np.float32(0.1),
    "f32(f16(a)) + f32(bf16(b))": lambda a, b: (
        a.astype(np.float16).astype(np.float32) + b.astype(ml_dtypes.bfloat16).astype(np.float32)
    ),
    "select(is_nan(a), 1e-30, a + 3.4e38)": lambda a, b: np.where(
        np.isnan(a), np.float32(1e-30), a + np.float32(3.4e38)
    ),
}


def compared(formulas: dict[str, Callable[[Any, Any], Any]], kind: str, a: Any, b: Any) -> SourceCode:
    """Fails unless a kernel of all *formulas* of a and b computes what NumPy does; returns its source."""
    n = len(a)
    text = [e.replace("a", "p[t]").replace("b", "q[t]") for e in formulas]
    for word in ("max", "abs", "nan", "trunc", "bf16", "is_nan", "sqrt", "round_even", "select", "copysign"):
        broken = word.replace("a", "p[t]").replace("b", "q[t]")
        text = [e.replace(broken, word) for e in text]
    lines = [f"y[t + {n * i}] = {e}" for i, e in enumerate(text)]
    made = source_of(kernel(f"p: {kind}[{n}], q: {kind}[{n}], y: {kind}[{n * len(text)}]", *lines, threads=n))
    out = np.zeros(n * len(text), a.dtype)
    run_on_host(made, n, [a, b, out])
    with np.errstate(all="ignore"):
        for name, found in zip(formulas, out.reshape(-1, n), strict=True):
            np.testing.assert_array_equal(found, formulas[name](a, b), err_msg=name)
    return made


def test_integers_of_64_bits() -> None:
    rng = np.random.default_rng(0)
    a = np.concatenate([rng.integers(-(1 << 61), 1 << 61, 32), rng.integers(-99, 99, 32)])
    b = np.concatenate([rng.integers(-(1 << 40), 1 << 40, 32), rng.integers(1, 9, 32)])
    made = compared(INTEGERS, "i64", a, b)
    assert "9223372036854775807l" in made.text
    assert "ll" not in [made.text[m : m + 2] for m in range(len(made.text)) if made.text[m - 1 : m].isdigit()]


@needs_clang
def test_floats() -> None:
    rng = np.random.default_rng(1)
    special = [
        0.0,
        -0.0,
        0.5,
        1.5,
        -2.5,
        np.inf,
        -np.inf,
        np.nan,
        1e-7,
        65519.0,
        65520.0,
        3e-8,
        6.1e-5,
        1e38,
        -7.0,
        1.0,
    ]
    a = np.concatenate([np.array(special), rng.standard_normal(48) * 1000]).astype(np.float32)
    b = np.concatenate([rng.standard_normal(48), np.array(special)]).astype(np.float32)
    made = compared(FLOATS, "f32", a, b)
    assert "0x1p" not in made.text  # hexadecimal floats are C++17's
    for options in ((), ("-D__HAVE_BFLOAT__",)):
        check_text(made.text, *options)


def test_all_16_bit_floats() -> None:
    lines = ["y[t + 1024 * k] = f32(x[t + 1024 * k])", "z[t + 1024 * k] = f16(y[t + 1024 * k])"]
    made = source_of(
        kernel(
            "x: f16[65536], y: f32[65536], z: f16[65536]",
            "for k in range(0, 64):",
            *[f"    {s}" for s in lines],
            threads=1024,
        )
    )
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    y, z = np.zeros(1 << 16, np.float32), np.zeros(1 << 16, np.float16)
    run_on_host(made, 1024, [x, y, z])
    np.testing.assert_array_equal(y, x.astype(np.float32))
    np.testing.assert_array_equal(z, x)


@needs_clang
def test_words_of_the_language_are_no_names() -> None:
    names = ["device", "thread", "half", "constant", "template", "uint", "weft_block", "fn_x"]
    made = kernel(", ".join([f"{n}: f32[64]" for n in names]), *[f"{n}[t] = {n}[t] + 1.0" for n in names])
    check_text(source_of(made).text)


@needs_clang
def test_memories_are_checked() -> None:
    text = source_of(kernel("x: f32[64]", "x[t] = 0.0")).text
    check_text(text)
    with pytest.raises(AssertionError, match="cannot initialize a variable of type 'threadgroup float"):
        check_text(text.replace("{\n", "{\n  threadgroup float *y = x;\n  y[0] = 1.0f;\n", 1))
