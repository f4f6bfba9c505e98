"""What a kernel reads once is loaded as such: not what several blocks read, nor what is read again."""

from __future__ import annotations

import pytest

from weft.codegen.cuda.backend import BACKEND
from weft.codegen.cuda.read_once import buffers_read_once
from weft.loop import parse_program
from weft.targets.cuda_machines import cuda

KERNEL = """
@function(kernel=1)
def f(x: f32[4096], y: f32[4096]):
    for b in bound(0, 8, thread="blockIdx.x"):
        for t in bound(0, 128, thread="threadIdx.x"):
            at = let({at})
            y[ramp(b * 512 + t * 4, 1, 4)] = {value}
"""


@pytest.mark.parametrize(
    ("at", "value", "once"),
    [
        ("b * 128 + t", "x[ramp(at * 4, 1, 4)]", True),
        ("t", "x[ramp(at * 4, 1, 4)]", False),
        ("b * 128 + t", "x[ramp(at * 4, 1, 4)] + x[ramp(t * 4, 1, 4)]", False),
        ("b * 128 + t", "x[ramp(at * 4, 1, 4)] + y[ramp(at * 4, 1, 4)]", True),
    ],
)
def test_what_is_read_once(at: str, value: str, *, once: bool) -> None:
    program = parse_program(KERNEL.format(at=at, value=value))
    (kernel,) = program.functions
    assert [b.name for b in buffers_read_once(kernel)] == ["x"] * once
    assert BACKEND.write(program, cuda("sm_90")).text.count("weft_once(") == once
