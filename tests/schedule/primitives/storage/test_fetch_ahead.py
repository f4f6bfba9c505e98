"""`fetch_ahead`: copies of what a loop's iterations read are made some iterations before they are used."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.threaded import barriers, run_case, tiled_matmul, without_barrier
from tests.schedule.programs import Case, matmul
from tests.schedule.running import refusal, transition

from weft.codegen.interp.threads.races import RaceError
from weft.loop import ASYNC_COPY, ASYNC_WAIT, Call, Program, statements
from weft.lower import StmtRewriter, lower
from weft.lower.stmt_rewriter import Visited
from weft.schedule import Schedule
from weft.targets import Target
from weft.targets.cuda_machines import cuda
from weft.targets.grid_machines import GENERIC_THREADS

SM_80 = cuda("sm_80")


def ahead(copies: int, steps: int, depth: int = 64) -> tuple[Case, Program, Schedule]:
    """A product in tiles of 16 x 16 whose right factor is fetched ahead, with the program before."""
    case = matmul(16, 16, depth)
    s = tiled_matmul(case)
    before = s.program
    for name in ("A_shared", "B_shared"):
        s.fetch_ahead(s.block(name), s.loops(s.block("C"))[2], copies, steps)
    return case, before, s


def test_of_a_tile(golden: Callable[[str], None]) -> None:
    _, before, s = ahead(3, 2)
    golden(transition(before, s.program))


def test_lowered(golden: Callable[[str], None]) -> None:
    golden(str(lower(ahead(3, 2)[2].program, SM_80, verify=True)))


@pytest.mark.parametrize("target", [SM_80, GENERIC_THREADS], ids=["copies go on", "copies are stores"])
@pytest.mark.parametrize(("copies", "steps", "depth"), [(2, 1, 64), (3, 2, 64), (4, 2, 64), (4, 3, 32), (3, 2, 16)])
def test_results(target: Target, copies: int, steps: int, depth: int) -> None:
    case, _, s = ahead(copies, steps, depth)
    flat = lower(s.program, target, verify=True)
    found = {x.callee for f in flat.functions for x in statements(f.body) if isinstance(x, Call)}
    assert ({ASYNC_COPY, ASYNC_WAIT} <= found) == (target is SM_80)
    run_case(case, flat, target)


def test_one_barrier_an_iteration_is_enough() -> None:
    for copies, steps in ((3, 2), (4, 2)):
        case, _, s = ahead(copies, steps, 128)
        assert run_case(case, lower(s.program, SM_80), SM_80).barriers <= 8 + 1


def test_no_barrier_can_be_left_out() -> None:
    case, _, s = ahead(3, 2)
    flat = lower(s.program, SM_80)
    last = len(barriers(flat)) - 1
    with pytest.raises(RaceError, match="with no barrier between them"):
        run_case(case, without_barrier(flat, last), SM_80)


class _Hurry(StmtRewriter):
    """Lets threads wait for one group less."""

    def visit_call(self, s: Call) -> Visited:
        return Call(s.callee, (s.args[0] + 1, *s.args[1:])) if s.callee == ASYNC_WAIT else s


def test_what_is_not_waited_for_is_not_there() -> None:
    case, _, s = ahead(3, 2)
    flat = lower(s.program, SM_80)
    with pytest.raises((AssertionError, RaceError)):
        run_case(case, Program(tuple([f.with_body(_Hurry().rewrite(f.body)) for f in flat.functions])), SM_80)


def test_refused_without_a_place_to_fill(golden: Callable[[str], None]) -> None:
    golden(refusal(lambda: ahead(2, 2)))


def test_refused_for_what_is_computed(golden: Callable[[str], None]) -> None:
    case = matmul(4, 6, 8)
    s = Schedule(case.program)
    copy = s.cache_write(s.block("C"), "local")
    s.compute_at(s.block("C"), s.loops(copy)[0])
    golden(refusal(lambda: s.fetch_ahead(s.block("C"), s.loops(copy)[0], 3, 1)))


def test_refused_twice(golden: Callable[[str], None]) -> None:
    _, _, s = ahead(3, 2)
    golden(refusal(lambda: s.fetch_ahead(s.block("A_shared"), s.loops(s.block("C"))[2], 3, 2)))
