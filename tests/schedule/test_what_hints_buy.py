"""What the primitives that change no result buy, counted on a simple machine; `storage_align` has a cache of its own."""

from __future__ import annotations

from tests.schedule.compiling import check_compiled, lowered
from tests.schedule.programs import Case, blur, matmul
from tests.schedule.stalls import FAR, Machine

from weft.schedule import Schedule

ROWS, COLUMNS, DEPTH = 12, 8, 16


def cycles(case: Case, s: Schedule, units: int = 1) -> int:
    """The cycles that a schedule takes, after a check of its results."""
    check_compiled(case, s.program)
    return Machine(units).run(lowered(s.program))


def test_prefetch_hides_the_way_to_memory() -> None:
    """Each row of B is a line; asked for eight rows before, all but the first eight are there in time."""
    case = matmul(1, 16, 64)
    taken = []
    for distance in (0, 2, 8):
        s = Schedule(case.program)
        _, j, k = s.loops(s.block("C"))
        s.decompose_reduction(s.block("C"), j)
        s.reorder([k, j])
        if distance:
            s.prefetch(k, "B", distance)
        taken.append(cycles(case, s))
    work = 16 + 64 * 16
    assert taken[0] >= work + 64 * FAR
    assert taken[1] < taken[0] / 2
    assert taken[2] <= 2 * work + (8 + 4) * FAR  # a prefetch for each statement; eight rows of B, four lines of A


def copying() -> tuple[Case, Schedule]:
    """A product that copies a row of its left side, which is a line, before it uses it."""
    case = matmul(ROWS, COLUMNS, DEPTH)
    s = Schedule(case.program)
    i, _, _ = s.loops(s.block("C"))
    s.compute_at(s.cache_read(s.block("C"), "A", "local"), i)
    return case, s


def test_software_pipeline_works_while_the_next_row_comes() -> None:
    case, before = copying()
    _, s = copying()
    s.software_pipeline(s.loops(s.block("C"))[0], [0, 1])
    alone, pipelined = cycles(case, before), cycles(case, s)
    assert alone - pipelined >= (ROWS - 1) * FAR * 0.8


def test_double_buffer_lets_the_copies_run_ahead() -> None:
    """With one place for the row, the unit that copies waits until the other has read it; with two, it does not."""
    case, before = copying()
    _, s = copying()
    s.double_buffer(s.block("A_local"), s.loops(s.block("C"))[0])
    one, two = cycles(case, before, units=2), cycles(case, s, units=2)
    assert one - two >= (ROWS - 1) * FAR * 0.8
    work = ROWS * COLUMNS * (DEPTH + 1)
    assert two < 1.5 * work


def test_rolling_buffer_computes_each_row_once() -> None:
    case = blur(8, 16)
    written = []
    for rolls in (False, True):
        s = Schedule(case.program)
        i, _ = s.loops(s.block("B"))
        s.compute_at(s.block("A"), i)
        if rolls:
            s.rolling_buffer(s.block("A"), i)
        check_compiled(case, s.program)
        machine = Machine()
        machine.run(lowered(s.program))
        written.append(machine.stores["A"])
    assert written == [3 * 8 * 16, (8 + 2) * 16]
