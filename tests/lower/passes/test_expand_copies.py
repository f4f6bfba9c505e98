"""Copies of a host program become loops for the host's compilers; memory of devices is refused."""

from __future__ import annotations

import numpy as np
import pytest

from weft.codegen import compile_program, link_here
from weft.codegen.interp import ExecutionError, run
from weft.loop import COPY, Call, parse_program, statements, verify
from weft.lower import expand_copies
from weft.native import _rt
from weft.support.errors import LoweringError
from weft.targets import host

TEXT = """
def main(A: {t}[64], C: {t}[64], at: i64, begin: i64, n: i64):
    call("weft.copy", C.at(at), A.at(begin), n)
"""


@pytest.mark.parametrize("dtype", ["f32", "u8", "bool", "i64"])
@pytest.mark.parametrize(("at", "begin", "n"), [(0, 0, 64), (3, 1, 37), (5, 60, 4), (64, 0, 0), (1, 2, 1)])
def test_loops_copy_what_the_interpreter_copies(dtype: str, at: int, begin: int, n: int) -> None:
    program = parse_program(TEXT.format(t=dtype))
    expanded = expand_copies(program)
    verify(expanded, flat=True)
    assert not any(isinstance(s, Call) for s in statements(expanded.entry.body))
    given = np.random.default_rng(0).integers(0, 2, 64).astype(program.entry.params[0].dtype.numpy)
    wanted = np.zeros_like(given)
    wanted[at : at + n] = given[begin : begin + n]
    for p in (program, expanded):
        c = np.zeros_like(given)
        run(p, [given, c, at, begin, n])
        np.testing.assert_array_equal(c, wanted)


def test_compiled_copies() -> None:
    image = link_here([compile_program(expand_copies(parse_program(TEXT.format(t="f32"))), host())], host())
    a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    _rt.call(image.code, image.symbols["main"], [a, c], [3, 1, 37])
    np.testing.assert_array_equal(c, [*[0] * 3, *range(1, 38), *[0] * 24])


def test_the_interpreter_refuses_copies_outside_and_over_themselves() -> None:
    program = parse_program(TEXT.format(t="f32"))
    a = np.zeros(64, np.float32)
    with pytest.raises(ExecutionError, match="a copy of 5 elements at 60 reaches outside of memory of 64"):
        run(program, [a, np.zeros(64, np.float32), 0, 60, 5])
    with pytest.raises(ExecutionError, match="a copy overlaps the elements that it reads"):
        run(program, [a, a, 0, 8, 16])


def test_memory_of_a_device_is_refused() -> None:
    text = 'def main(A: buffer("global@2", f32[8]), C: f32[8]):\n    call("weft.copy", C.at(0), A.at(0), 8)\n'
    with pytest.raises(LoweringError) as told:
        expand_copies(parse_program(text))
    assert str(told.value) == (
        "in main: A is in global@2 memory, which code of the host can't use\n"
        "  hint: write the host program as bytes, and replay it with that device"
    )


def test_a_program_without_copies_stays_itself() -> None:
    program = parse_program("def main(A: f32[8]):\n    A[0] = 1.0\n")
    assert expand_copies(program) is program
    assert COPY == "weft.copy"
