"""`tensorize`: what is in a loop is computed by an instruction of the target."""

from __future__ import annotations

import numpy as np
from tests.schedule.running import refusal

from weft import te
from weft.codegen.interp import run
from weft.ir.expr import cast
from weft.loop.nodes import Program
from weft.schedule import BlockRef, LoopRef, Schedule
from weft.support.dtypes import i8, i32, u8
from weft.support.errors import ScheduleError
from weft.targets.intrinsics import INTRINSICS

M, N, K = 3, 16, 8


def _product() -> Program:
    a = te.placeholder((M, K), u8, "A")
    b = te.placeholder((K // 4, N, 4), i8, "B")
    k0, k1 = te.reduce_axis(K // 4, "k0"), te.reduce_axis(4, "k1")
    c = te.compute((M, N), lambda i, j: te.sum_(cast(a[i, k0 * 4 + k1], i32) * cast(b[k0, j, k1], i32), [k0, k1]), "C")
    return te.to_program([a, b], [c])


def _prepared() -> tuple[Schedule, BlockRef, LoopRef]:
    s = Schedule(_product())
    block = s.block("C")
    i, j, k0, k1 = s.loops(block)
    s.reorder([i, k0, j, k1])
    s.decompose_reduction(block, k0)
    return s, block, j


def test_unknown_instruction_is_refused() -> None:
    s, _, j = _prepared()
    assert "there is no tensor instruction 'nothing'" in refusal(lambda: s.tensorize(j, "nothing"))


def test_dot_products_of_bytes() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 255, (M, K), np.uint8)
    b = rng.integers(-128, 127, (K // 4, N, 4), np.int8)
    wanted = np.einsum("mkl,knl->mn", a.reshape(M, K // 4, 4).astype(np.int32), b.astype(np.int32))
    done = 0
    for name in INTRINSICS:
        s, _, j = _prepared()
        try:
            s.tensorize(j, name)
        except ScheduleError:  # an instruction of another shape or type
            continue
        c = np.zeros((M, N), np.int32)
        run(s.program, [a, b, c])
        np.testing.assert_array_equal(c, wanted)
        done += 1
    assert done >= 1
