"""`tile`: nested loops become loops over tiles, and inside them loops over the elements of a tile."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import matmul, symbolic_matmul
from tests.schedule.running import check, refusal, transition

from weft.schedule import Schedule


def test_two_loops(golden: Callable[[str], None]) -> None:
    case = matmul(4, 6, 2)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    made = s.tile([i, j], [2, 3])
    assert s.loops(s.block("C")) == (*made, k)
    assert [s.extent(f) for f in made] == [2, 2, 2, 3]
    check_compiled(case, s.program)
    golden(transition(case.program, s.program))


def test_sizes_that_do_not_divide(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    s.tile([i, j], [2, 4])
    check_compiled(case, s.program)
    golden(str(s.program))


def test_is_split_and_reorder() -> None:
    texts = []
    for use_tile in (True, False):
        s = Schedule(matmul().program)
        i, j, k = s.loops(s.block("C"))
        if use_tile:
            s.tile([i, j, k], [2, 4, 2])
        else:
            split = [s.split(f, [None, n]) for f, n in ((i, 2), (j, 4), (k, 2))]
            s.reorder([*[a for a, _ in split], *[b for _, b in split]])
        texts.append(str(s.program))
    assert texts[0] == texts[1]


def test_symbolic() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    s.tile([i, j], [4, 2])
    check(case, s.program)


def test_an_old_reference_leads_to_the_loop_over_tiles() -> None:
    case = matmul(4, 6, 2)
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    tiles, *_ = s.tile([i, j], [2, 3])
    s.parallel(i)
    assert f"for {tiles.var.name} in parallel(0, 2)" in str(s)
    check_compiled(case, s.program)


@pytest.mark.parametrize("sizes", [[2], [2, 0]], ids=["too few", "zero"])
def test_refused_sizes(sizes: list[int], golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    i, j, _ = s.loops(s.block("C"))
    golden(refusal(lambda: s.tile([i, j], sizes)))


def test_refused_for_loops_that_are_not_nested(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    _, j, k = s.loops(s.block("C"))
    s.decompose_reduction(s.block("C"), k)
    golden(refusal(lambda: s.tile([j, k], [2, 2])))
