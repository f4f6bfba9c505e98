"""`partition`: a loop becomes several, one after another, and guards that are decided in one of them are gone there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, matmul, stencil, symbolic_matmul
from tests.schedule.running import check, loop, refusal, transition

from weft.schedule import Schedule


def test_drops_a_decided_guard(golden: Callable[[str], None]) -> None:
    case = stencil(10)
    s = Schedule(case.program)
    outer, _ = s.split(s.loops(s.block("C"))[0], [None, 4])
    before = s.program
    first, second = s.partition(outer, [-1])
    assert (s.extent(first), s.extent(second)) == (2, 1)
    check_compiled(case, s.program)
    golden(transition(before, s.program))


def test_a_reduction_starts_in_the_first_part_only(golden: Callable[[str], None]) -> None:
    case = matmul(2, 3, 5)
    s = Schedule(case.program)
    s.partition(s.loops(s.block("C"))[2], [1, 3])
    check_compiled(case, s.program)
    golden(transition(case.program, s.program))


def test_a_block_that_never_runs_in_a_part_is_left_out() -> None:
    case = CASES["two_outputs"]()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("A"))
    outer, _ = s.split(i, [4, 2])
    s.partition(outer, [3])
    assert [b.name for b in s.blocks()] == ["A", "B", "C"]
    check_compiled(case, s.program)


def test_parts_are_scheduled_apart() -> None:
    case = matmul(7, 8, 3)
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    main, _ = s.partition(i, [4])
    s.vectorize(j)
    s.parallel(main)
    assert [f.var.name for f in s.loops(s.block("C_1"))] == ["i", "j", "k"]
    flat = check_compiled(case, s.program)
    assert len(flat.functions) == 2


def test_what_is_allocated_inside_is_copied() -> None:
    case = stencil()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("C"))
    s.compute_at(s.block("B"), i)
    s.parallel(i)
    s = Schedule(s.program)
    with_copy = s.loops(s.block("B"))[1]
    s.partition(with_copy, [1])
    check_compiled(case, s.program)


def test_a_reference_leads_to_the_first_part() -> None:
    s = Schedule(matmul().program)
    i, *_ = s.loops(s.block("C"))
    first, _ = s.partition(i, [2])
    assert s.extent(i) == s.extent(first) == 2


def test_symbolic() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    _, j, k = s.loops(s.block("C"))
    s.partition(k, [1])
    s.partition(j, [-1])
    check(case, s.program)


@pytest.mark.parametrize("name", CASES)
def test_every_loop_of(name: str) -> None:
    case = CASES[name]()
    s = Schedule(case.program)
    for block in s.blocks():
        for f in s.loops(block):
            if (s.extent(f) or 0) > 1:
                s.partition(f, [1])
    check(case, s.program)


@pytest.mark.parametrize("points", [[], [0], [5], [3, 2], [-5]], ids=["none", "begin", "end", "order", "before"])
def test_refused_points(points: list[int], golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.partition(s.loops(s.block("C"))[0], points)))


def test_refused_where_the_extent_is_not_known(golden: Callable[[str], None]) -> None:
    s = Schedule(symbolic_matmul().program)
    golden(refusal(lambda: s.partition(s.loops(s.block("C"))[0], [1])))


def test_refused_for_a_parallel_loop(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    s.parallel(loop(s, "i"))
    golden(refusal(lambda: s.partition(loop(s, "i"), [2])))


def test_each_part_has_registers_of_its_own() -> None:
    case = matmul(8, 16, 6)
    s = Schedule(case.program)
    block = s.block("C")
    copy = s.cache_write(block, "register")
    i, _ = s.loops(copy)
    i0, _ = s.split(i, [None, 2])
    s.compute_at(block, i0)
    s.set_scope(block, "register")
    s.partition(i0, [1, 3])
    assert str(s).count('alloc("register"') == 3
    s.parallel(i0)
    check_compiled(case, s.program)


def test_memory_stays_where_it_is() -> None:
    case = stencil()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("C"))
    s.compute_at(s.block("B"), i)
    s.partition(i, [2])
    assert str(s).count("alloc(") == str(Schedule(case.program)).count("alloc(")
    check_compiled(case, s.program)


def test_columns_that_take_turns_are_known_to_be_apart() -> None:
    """Even and odd columns: two loops that write them may both stand in a parallel loop over the rows."""
    case = matmul(4, 8, 3)
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    j0, j1 = s.split(j, [None, 2])
    s.reorder([i, j1, j0])
    s.parallel(i)
    s.partition(j1, [1])
    check_compiled(case, s.program)


def test_registers_of_a_tile_that_ends_inside_the_buffer() -> None:
    """Two groups of five rows in tiles of three: what a tile reads of its own registers was written in that iteration."""
    case = matmul(10, 8, 3)
    s = Schedule(case.program)
    copy = s.cache_write(s.block("C"), "register")
    i, j = s.loops(copy)
    group, rest = s.split(i, [2, 5])
    tile, row = s.split(rest, [None, 3])
    left, right = s.split(j, [None, 4])
    s.reorder([group, tile, left, row, right])
    s.compute_at(s.block("C"), left)
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[-1])
    s.partition(left, [1])
    check_compiled(case, s.program)
    assert sum("alloc(" in line for line in str(s).splitlines()) == 2
