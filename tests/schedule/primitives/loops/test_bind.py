"""`bind`: a loop's iterations become the threads along one axis of a device's grid."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import bias_relu, matmul, stencil, symbolic_matmul
from tests.schedule.running import check, refusal, transition

from weft.loop import parse_program, verify
from weft.lower import lower
from weft.schedule import Schedule
from weft.support.errors import ScheduleError, VerifyError
from weft.targets import cpu


def test_blocks_and_threads(golden: Callable[[str], None]) -> None:
    case = bias_relu(6, 8, 3)
    s = Schedule(case.program)
    i, j = s.loops(s.block("E"))
    block, _, thread, _ = s.tile([i, j], [3, 4])
    s.bind(block, "blockIdx.x")
    s.bind(thread, "threadIdx.x")
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_what_a_thread_uses_alone_is_its_own(golden: Callable[[str], None]) -> None:
    case = stencil()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("C"))
    s.compute_at(s.block("B"), i)
    s.bind(i, "threadIdx.x")
    check(case, s.program)
    golden(str(s.program))


def test_placing_into_a_bound_loop() -> None:
    case = stencil()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("C"))
    s.bind(i, "blockIdx.y")
    s.compute_at(s.block("B"), i)
    check(case, s.program)


def test_symbolic_blocks_and_nested_virtual_threads() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    outer, inner = s.split(j, [2, 2])
    for f, axis in ((i, "blockIdx.z"), (outer, "vthread"), (inner, "vthread")):
        s.bind(f, axis)
    check(case, s.program)


def test_a_cpu_has_no_grid() -> None:
    s = Schedule(matmul().program)
    s.bind(s.loops(s.block("C"))[0], "blockIdx.x")
    with pytest.raises(VerifyError, match="a flat program has no bound loop"):
        verify(lower(s.program, cpu("avx2")), flat=True)


def test_the_verifier_wants_a_thread_axis(golden: Callable[[str], None]) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(parse_program("def main(A: f32[5]):\n    for i in bound(0, 5):\n        A[i] = 1.0\n"))
    golden(f"{caught.value}\n")


def test_refused_along_a_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.bind(s.loops(s.block("C"))[2], "threadIdx.x")))


def test_refused_thread_axis(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.bind(s.loops(s.block("C"))[0], "threadIdx.w")))


def test_refused_twice_on_one_axis(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    i, j, _ = s.loops(s.block("C"))
    s.bind(i, "threadIdx.x")
    golden(refusal(lambda: s.bind(j, "threadIdx.x")))


def test_refused_for_an_unknown_number_of_threads(golden: Callable[[str], None]) -> None:
    s = Schedule(symbolic_matmul().program)
    golden(refusal(lambda: s.bind(s.loops(s.block("C"))[0], "threadIdx.x")))


UPDATED = """
def f(y: f32[8], t: i64[64], z: f32[8]):
    for p in range(0, 64):
        with block("y", vp=unordered(64, p)):
            y[t[vp]] = y[t[vp]] + 1.0
        {also}
"""


def test_threads_update_in_any_order() -> None:
    s = Schedule(parse_program(UPDATED.format(also="")))
    (p,) = s.loops(s.block("y"))
    _, inner = s.split(p, [None, 16])
    s.bind(inner, "threadIdx.x")
    verify(s.program)


@pytest.mark.parametrize("kind", ["parallel", "vectorize"])
def test_others_than_threads_update_in_order(kind: str) -> None:
    s = Schedule(parse_program(UPDATED.format(also="")))
    (p,) = s.loops(s.block("y"))
    _, inner = s.split(p, [None, 16])
    with pytest.raises(ScheduleError, match="combines values along it: its axis vp is of kind unordered"):
        s.apply(kind, inner)


@pytest.mark.parametrize("update", ["z[vq] = y[vq % 8]", "y[vq % 8] = y[vq % 8] * 2.0"])
def test_other_uses_of_elements_that_are_updated_are_refused(update: str) -> None:
    also = f'with block("z", vq=unordered(64, p)):\n            {update.replace("z[vq]", "z[vq % 8]")}'
    s = Schedule(parse_program(UPDATED.format(also=also)))
    (p,) = s.loops(s.block("y"))
    with pytest.raises(ScheduleError):
        s.bind(p, "threadIdx.x")
