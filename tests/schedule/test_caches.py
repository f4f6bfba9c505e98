"""`cache_read`, `cache_write` and `set_scope`: where values are kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import CASES, matmul, symbolic_matmul
from tests.schedule.running import check, refusal, transition

from weft.loop.parser import parse_program
from weft.schedule import Schedule
from weft.support.errors import ScheduleError


def test_read(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    copy = s.cache_read(s.block("C"), "B", "local")
    assert copy == s.block("B_local")
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_write(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    copy = s.cache_write(s.block("C"), "register")
    assert copy == s.block("C_write")
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_symbolic() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    s.compute_at(s.cache_read(s.block("C"), "A", "local"), s.loops(s.block("C"))[0])
    s.cache_write(s.block("D"), "local")
    check(case, s.program)


def test_twice_gets_new_names() -> None:
    case = matmul()
    s = Schedule(case.program)
    first, second = s.cache_read(s.block("C"), "A", "local"), s.cache_read(s.block("C"), "B", "local")
    third = s.cache_read(s.block("C"), "B_local", "local")
    assert [b.name for b in (first, second, third)] == ["A_local", "B_local", "B_local_local"]
    s.cache_write(s.block("C"), "local")
    s.cache_write(s.block("C"), "local")
    check(case, s.program)


def test_set_scope(golden: Callable[[str], None]) -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.set_scope(s.block("C"), "register")
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_set_scope_of_an_output_is_refused(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.set_scope(s.block("C"), "register")))


def test_read_of_something_else_is_refused(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.cache_read(s.block("C"), "C", "local")))


def test_read_of_what_the_nest_makes_is_refused(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    s.compute_at(s.block("C"), s.loops(s.block("D"))[0])
    golden(refusal(lambda: s.cache_read(s.block("D"), "C", "local")))


def test_write_of_what_the_nest_reads_is_refused(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    s.compute_at(s.block("C"), s.loops(s.block("D"))[0])
    golden(refusal(lambda: s.cache_write(s.block("C"), "local")))


def test_write_of_a_decomposed_reduction_is_refused() -> None:
    s = Schedule(matmul().program)
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    with pytest.raises(ScheduleError, match="the block C_init writes the same buffer as C"):
        s.cache_write(s.block("C"), "local")


def test_write_of_several_buffers_is_refused() -> None:
    s = Schedule(CASES["argmax"]().program)
    with pytest.raises(ScheduleError, match="top writes 2 buffers, not one"):
        s.cache_write(s.block("top"), "local")


@pytest.mark.parametrize(
    ("axes", "store"),
    [
        ("v=spatial(3, i)", "A[v] = 1.0"),
        ("v=spatial(4, i), where=i < 3", "A[v] = 1.0"),
        ("v=spatial(4, i)", "A[v] = A[v] + 1.0"),
    ],
)
def test_write_of_a_part_is_refused(axes: str, store: str) -> None:
    """The copy would overwrite the other elements with what happens to be in the new buffer."""
    n = 3 if "spatial(3" in axes else 4
    text = f'def main(A: f32[4]):\n    for i in range(0, {n}):\n        with block("A", {axes}):\n            {store}\n'
    s = Schedule(parse_program(text))
    with pytest.raises(ScheduleError, match="A may not write all of A"):
        s.cache_write(s.block("A"), "local")
