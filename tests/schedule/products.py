"""Matrix products of small integers and of bf16, as tensor instructions take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.schedule.programs import Case, case

from weft import te
from weft.ir import Expr, cast
from weft.schedule import BlockRef, LoopRef, Schedule
from weft.support.dtypes import DType, f32, i8, i32, u8
from weft.te import Reduction


def product(n: int, m: int, k: int, a_type: DType = u8, b_type: DType = i8, *, swapped: bool = False) -> Case:
    """C[i, j] = sum of A[i, k] * B[k, j]; *swapped* multiplies in the other order."""
    to = i32 if a_type.is_int else f32
    a, b = te.placeholder((n, k), a_type, "A"), te.placeholder((k, m), b_type, "B")
    r = te.reduce_axis(k, "k")

    def formula(i: Expr, j: Expr) -> Reduction:
        x, y = cast(a[i, r], to), cast(b[r, j], to)
        return te.sum_(y * x if swapped else x * y, [r])

    c = te.compute((n, m), formula, "C")

    def oracle(x: Any, y: Any) -> list[Any]:
        return [(x.astype(np.float64) @ y.astype(np.float64)).astype(to.numpy)]

    return case([a, b], [c], oracle)


def tiled(s: Schedule, columns: int, group: int) -> tuple[BlockRef, LoopRef]:
    """Orders the loops as `i, j_0, k_0, j_1, k_1`; returns the block and the loop `j_1`."""
    block = s.block("C")
    i, j, k = s.loops(block)
    j0, j1 = s.split(j, [None, columns])
    k0, k1 = s.split(k, [None, group])
    s.reorder([i, j0, k0, j1, k1])
    return block, j1


def packed(s: Schedule, columns: int, group: int) -> tuple[BlockRef, LoopRef]:
    """Packs B for dot products, starts the sums apart, and orders the loops; returns the block and the loop `j_1`."""
    block, j1 = tiled(s, columns, group)
    s.pack(block, "B", f"k, j -> j // {columns}, k // {group}, j % {columns}, k % {group}", "local")
    s.decompose_reduction(block, s.loops(block)[2])
    return block, j1
