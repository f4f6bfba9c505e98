"""The peak arithmetic rates of this machine, measured by generated code: the reference for a kernel's efficiency.

limit = Peak(f32)
print(limit.rate(), "GFLOP/s on one core,", limit.rate(threads=2), "on two")
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.driver.function import NativeFunction
from weft.loop import parse_program
from weft.support.dtypes import DType, bf16, f32, i8, i32, u8
from weft.support.errors import InputError
from weft.targets import Target, host

CHAINS: Final = {16: 12, 32: 16}
"""Independent sums by the number of registers: more than latency times ports of any core, fewer than there are registers."""

STEPS: Final = 200_000
_SECOND: Final = {f32: (f32, f32, 1), u8: (i8, i32, 4), bf16: (bf16, f32, 2)}
"""The type of the second factor, the type of the sum, and the products per lane, by the type of the first factor."""

_PROGRAM: Final = """
def peak(x: {a}[{wide}], y: {b}[{wide}], z: {c}[{total} * n], n: i64, steps: i64):
    first = let(x[ramp(0, 1, {wide})])
    second = let(y[ramp(0, 1, {wide})])
    for thread in parallel(0, n):
        sums = alloc("register", {c}[{total}])
        for i in unrolled(0, {chains}):
            sums[ramp(i * {lanes}, 1, {lanes})] = z[ramp(thread * {total} + i * {lanes}, 1, {lanes})]
        for step in range(0, steps):
            for i_1 in unrolled(0, {chains}):
                sums[ramp(i_1 * {lanes}, 1, {lanes})] = {sum}
        for i_2 in unrolled(0, {chains}):
            z[ramp(thread * {total} + i_2 * {lanes}, 1, {lanes})] = sums[ramp(i_2 * {lanes}, 1, {lanes})]
"""


class Peak:
    """A loop of nothing but multiply-adds, in enough chains to keep the machine busy.

    *dtype* selects the product: f32 by f32, u8 by i8 summed in i32, or bf16 by bf16 summed in f32. Raises `LoweringError` for
    those that the target has no instruction for, `InputError` for other types. With fewer *chains*, each multiply-add waits for
    the one before it.
    """

    def __init__(self, dtype: DType = f32, target: Target | None = None, chains: int | None = None) -> None:
        if dtype not in _SECOND:
            raise InputError(f"no peak is known for {dtype}", hint=f"use one of {', '.join(map(str, _SECOND))}")
        chosen = target if target is not None else host()
        second, result, group = _SECOND[dtype]
        lanes, chains = chosen.lanes(32), chains or CHAINS[min(32, chosen.isa.vector_registers)]
        self.total, wide = lanes * chains, lanes * group
        part = f"sums[ramp(i_1 * {lanes}, 1, {lanes})]"
        formula = f"{part} * first + second" if group == 1 else f"dot({part}, first, second)"
        source = _PROGRAM.format(
            a=dtype, b=second, c=result, wide=wide, total=self.total, chains=chains, lanes=lanes, sum=formula
        )
        self.function = NativeFunction(parse_program(source), chosen)
        self.factors = np.full(wide, 0.5).astype(dtype.numpy), np.full(wide, 0.5).astype(second.numpy)
        self.sums = result.numpy
        self.operations = 2 * self.total * group

    def rate(self, threads: int = 1, repeats: int = 30, steps: int = STEPS) -> float:
        """Returns the best rate of *repeats* runs, of all threads together, in 10**9 operations per second (two per product)."""
        sums = np.zeros(self.total * threads, self.sums)
        arguments = (*self.factors, sums, threads, steps)
        best = min(self.function.time(*arguments, threads=threads, repeats=1) for _ in range(repeats))
        return threads * steps * self.operations / best / 1e9


def fma_peak(target: Target | None = None, repeats: int = 150) -> float:
    """Returns the best rate of float32 multiply-adds of one core, in GFLOP/s (two operations each)."""
    return Peak(f32, target).rate(repeats=repeats)
