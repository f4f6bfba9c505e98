"""The machine's own limits, measured by generated code: what kernels are judged against."""

from __future__ import annotations

import numpy as np

from weft.driver.function import NativeFunction
from weft.loop.parser import parse_program
from weft.targets.cpu import host
from weft.targets.target import Target

CHAINS = 12
"""Independent sums: more than latency times ports of any core, fewer than its vector registers."""

STEPS = 200_000

_PROGRAM = """
def fma_peak(x: f32[{lanes}], y: f32[{total}], n: i64):
    factor = let(x[ramp(0, 1, {lanes})])
    sums = alloc("register", f32[{total}])
    for i in unrolled(0, {chains}):
        sums[ramp(i * {lanes}, 1, {lanes})] = factor
    for step in range(0, n):
        for i_1 in unrolled(0, {chains}):
            sums[ramp(i_1 * {lanes}, 1, {lanes})] = sums[ramp(i_1 * {lanes}, 1, {lanes})] * factor + factor
    for i_2 in unrolled(0, {chains}):
        y[ramp(i_2 * {lanes}, 1, {lanes})] = sums[ramp(i_2 * {lanes}, 1, {lanes})]
"""


def fma_peak(target: Target | None = None, repeats: int = 50) -> float:
    """Returns the best rate of float32 multiply-adds of one core, in GFLOP/s (two operations each)."""
    chosen = target if target is not None else host()
    lanes = chosen.lanes(32)
    total = CHAINS * lanes
    program = parse_program(_PROGRAM.format(lanes=lanes, total=total, chains=CHAINS))
    function = NativeFunction(program, chosen)
    x, y = np.full(lanes, 0.5, np.float32), np.zeros(total, np.float32)
    best = min(function.time(x, y, STEPS, repeats=3) for _ in range(repeats))
    return 2.0 * STEPS * total / best / 1e9
