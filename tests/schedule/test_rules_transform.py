"""Transforms with constant matrices take in what they read, as much of it as they read."""

from __future__ import annotations

import pytest

from weft.ir.expr import Const
from weft.loop.nodes import Alloc, Program
from weft.loop.visit import statements
from weft.lower.pipeline import lower
from weft.ops.winograd import pack_winograd_weight
from weft.schedule.rules import schedule_program
from weft.support.dtypes import f32
from weft.targets.cpu import cpu
from weft.te import placeholder, to_program

WIDE = cpu("avx512")


def allocated(program: Program) -> list[int]:
    """The elements of each buffer that is allocated."""
    made = [s.buffer for f in program.functions for s in statements(f.body) if isinstance(s, Alloc)]
    return [int(n.value) for b in made for n in b.shape if isinstance(n, Const)]


@pytest.mark.parametrize("block", [16, 32, 64])
def test_across_the_vector_nothing_more_is_computed(block: int) -> None:
    """The first half of a weight's transform is read down its columns: a vector of them, for the one row in use."""
    w = placeholder((64, 20, 3, 3), f32, "w")
    program = to_program([w], [pack_winograd_weight(w, tile=4, block=block)], "pack")
    flat = lower(schedule_program(program, WIDE).program, WIDE)
    assert allocated(flat) == [6 * 3 * WIDE.lanes(32)]
