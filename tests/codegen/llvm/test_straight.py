"""Host programs without loops are compiled with little effort; whatever may run often with all of it."""

from __future__ import annotations

import pytest

from weft.codegen.llvm import object_code
from weft.codegen.llvm.object_code import QUICK, THOROUGH, compile_function_module
from weft.loop import parse_program
from weft.targets import Target, parse_target

STRAIGHT = """
@function(entry=("main", ("in0", "out0")))
def main(x: f32[4], y: f32[4]):
    y[0] = x[3] + 1.0
"""

LOOP = """
@function(entry=("main", ("in0", "out0")))
def main(x: f32[4], y: f32[4]):
    for i in range(0, 4):
        y[i] = x[i] + 1.0
"""

KERNEL = """
def kernel(x: f32[4], y: f32[4]):
    y[0] = x[3] + 1.0
"""

WHILE = """
@function(entry=("main", ("in0", "out0")))
def main(x: i64[1], y: f32[4]):
    while y[0] < 4.0:
        y[0] = y[0] + 1.0
"""


def effort(monkeypatch: pytest.MonkeyPatch, text: str, target: str) -> int:
    """Returns the effort with which *text* is compiled."""
    asked: list[int] = []
    tools = object_code._tools

    def noted(machine: Target, wanted: int) -> object_code._Tools:
        asked.append(wanted)
        return tools(machine, wanted)

    monkeypatch.setattr(object_code, "_tools", noted)
    compile_function_module(parse_program(text), parse_target(target))
    return asked[0]


def test_a_host_program_without_loops_is_compiled_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    assert effort(monkeypatch, STRAIGHT, "cpu -mattr=sse4") == QUICK


@pytest.mark.parametrize("text", [LOOP, WHILE, KERNEL])
def test_loops_and_kernels_are_compiled_thoroughly(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert effort(monkeypatch, text, "cpu -mattr=sse4") == THOROUGH


def test_another_instruction_selector_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert effort(monkeypatch, STRAIGHT, "aarch64") == THOROUGH
