"""`set_scope`: an intermediate result is kept in another memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, argmax, matmul, symbolic_rows
from tests.schedule.refusing import refused
from tests.schedule.running import check, refusal, transition

from weft.schedule import Schedule


def test_an_intermediate_result(golden: Callable[[str], None]) -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.set_scope(s.block("C"), "register")
    check(case, s.program)
    golden(transition(case.program, s.program))


@pytest.mark.parametrize("scope", ["global", "shared", "local", "register", "warp", "acc"])
def test_into(scope: str) -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.set_scope(s.block("D"), scope)
    assert f'D = alloc("{scope}"' in str(s)
    check(case, s.program)


def test_all_results_of_a_block() -> None:
    case = argmax()
    s = Schedule(case.program)
    s.set_scope(s.block("top"), "local")
    assert str(s).count('alloc("local"') == 2
    check(case, s.program)


def test_symbolic() -> None:
    case = symbolic_rows()
    s = Schedule(case.program)
    s.set_scope(s.block("S"), "local")
    check_compiled(case, s.program)


def test_strides_stay() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.storage_align(s.block("C"), 0, 16)
    s.set_scope(s.block("C"), "local")
    assert 'alloc("local", f32[5, 7], strides=(16, 1))' in str(s)
    check_compiled(case, s.program)


def test_by_any_of_its_writers() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    start = s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    s.set_scope(start, "register")
    check(case, s.program)


def test_changed_again() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.set_scope(s.block("C"), "shared")
    s.set_scope(s.block("C"), "global")
    assert str(s) == str(case.program)


def test_in_a_parallel_loop_that_has_it_for_itself() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("D"))
    s.compute_at(s.block("C"), i)
    s.parallel(i)
    s.set_scope(s.block("C"), "register")
    check_compiled(case, s.program)


def test_refused_for_an_output(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.set_scope(s.block("C"), "register")))


def test_refused_for_what_is_no_memory() -> None:
    s = Schedule(CASES["bias_relu"]().program)
    refused(
        lambda: s.set_scope(s.block("C"), "L1 cache"),
        "'L1 cache' is not the name of a memory",
        None,
        "use one of global, shared, swizzled, dynamic, warp, fragment, local, register, or of an accelerator's own",
    )
