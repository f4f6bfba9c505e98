"""The peak rate of a core's matrix registers, measured by generated code: products of tiles that stay where they are."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.driver.function import NativeFunction
from weft.loop import parse_program
from weft.support.dtypes import DType, bf16, f32, i8, i32, u8
from weft.support.errors import LoweringError
from weft.targets import Target
from weft.targets.instructions import CONFIGURE, MOST_ROWS, RELEASE, TileOperation, intrinsics_of

STEPS: Final = 5_000
PRODUCTS: Final = 16
"""Products of a step for each tile of sums: the factors are loaded once a step."""

_KINDS: Final = {bf16: (bf16, f32), u8: (i8, i32)}
"""The types of the second factor and of the sum, by that of the first."""

_PROGRAM: Final = """
def peak(x: {a}[16, 16, {g}], y: {b}[16, 16, {g}], z: {c}[1024 * n], n: i64, steps: i64):
    for thread in parallel(0, n):
        sums = alloc("tile", {c}[1024])
        call("{configure}", 16)
        for i in unrolled(0, 4):
            call("{zero}", sums.at(i * 256), 16)
        for step in range(0, steps):
            for r in unrolled(0, {products}):
                for i_1 in unrolled(0, 4):
                    call("{multiply}", sums.at(i_1 * 256), x.at(0, 0, 0), y.at(0, 0, 0), 16, {row}, {row})
        for i_2 in unrolled(0, 4):
            call("{store}", z.at(thread * 1024 + i_2 * 256), sums.at(i_2 * 256), 16, 16)
        call("{release}")
"""


class MatrixPeak:
    """A loop of nothing but products of tiles, of bf16 summed in float32 or of bytes summed in 32 bits, on four tiles of sums.

    Raises `LoweringError` for a target without such instructions.
    """

    def __init__(self, dtype: DType, target: Target) -> None:
        second, result = _KINDS[dtype]
        multiply = TileOperation("multiply", MOST_ROWS, result, dtype, second)
        if multiply.name not in {i.name for i in intrinsics_of(target)}:
            raise LoweringError(f"there are no matrix registers for {dtype}", hint="use vectors")
        source = _PROGRAM.format(
            a=dtype,
            b=second,
            c=result,
            g=multiply.group,
            row=16 * multiply.group,
            products=PRODUCTS,
            configure=CONFIGURE,
            release=RELEASE,
            multiply=multiply.name,
            zero=TileOperation("zero", MOST_ROWS, result).name,
            store=TileOperation("store", MOST_ROWS, result).name,
        )
        self.function = NativeFunction(parse_program(source), target)
        shape = (16, 16, multiply.group)
        self.factors = np.full(shape, 1).astype(dtype.numpy), np.full(shape, 1).astype(second.numpy)
        self.sums = np.zeros(1024, result.numpy)
        self.operations = 2 * 16 * 16 * 16 * multiply.group * 4 * PRODUCTS

    def rate(self, repeats: int = 30, steps: int = STEPS) -> float:
        """Returns the best rate of *repeats* runs of one core, in 10**9 operations a second (two per product)."""
        arguments = (*self.factors, self.sums, 1, steps)
        best = min(self.function.time(*arguments, threads=1, repeats=1) for _ in range(repeats))
        return steps * self.operations / best / 1e9
