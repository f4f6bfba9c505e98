"""Integer division has a value whatever the divisor: a program that divides by zero must not end the process."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft.codegen.interp import run
from weft.driver.function import NativeFunction
from weft.loop import Buffer
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.support.dtypes import DType, i8, i32, i64, u8, u32
from weft.targets import can_run, cpu
from weft.te import placeholder, to_program

Array = np.ndarray[Any, Any]
HERE = next(t for t in (cpu("avx512"), cpu("avx2"), cpu("sse4")) if can_run(t))


def truncated(x: Array, y: Array) -> Array:
    """Divides as Python's integers do, rounded towards zero, so that nothing overflows on the way; the result wraps."""
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    made = [0 if b == 0 else abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1) for a, b in pairs]
    return np.array([v % (1 << 64) for v in made], np.uint64).astype(x.dtype)


CASES: dict[str, Callable[[Array, Array], Array]] = {
    "div": truncated,
    "floor_mod": operator.mod,
    "trunc_mod": np.fmod,
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("length", [3, 37])
@pytest.mark.parametrize("dtype", [i8, i32, i64, u8, u32], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_division_by_zero_and_beyond_the_largest(name: str, dtype: DType, length: int) -> None:
    kind: Any = np.iinfo(np.dtype(dtype.numpy).name)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(kind.min, kind.max, length, dtype=dtype.numpy, endpoint=True) for _ in range(2))
    x[:3], y[:3] = (kind.min, 5, 0), (kind.max if kind.min == 0 else -1, 0, 0)
    a, b = (placeholder((length,), dtype, n) for n in "ab")
    program = to_program([a, b], [OPERATORS[name].build(a, b)], "divide")
    assert isinstance(program.entry.params[2], Buffer)
    made, interpreted = np.zeros_like(x), np.zeros_like(x)
    scheduled = schedule_program(program, HERE).program
    NativeFunction(scheduled, HERE)(x, y, made)
    run(scheduled, [x, y, interpreted])
    with np.errstate(all="ignore"):
        wanted = CASES[name](x, y)
    np.testing.assert_array_equal(made, wanted)
    np.testing.assert_array_equal(interpreted, wanted)
