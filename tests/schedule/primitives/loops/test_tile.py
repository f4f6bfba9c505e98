"""`tile`: nested loops become loops over tiles, and inside them loops over the elements of a tile."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, matmul, symbolic_matmul
from tests.schedule.refusing import refused
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


def test_three_loops_with_the_reduction() -> None:
    case = matmul(5, 7, 6)
    s = Schedule(case.program)
    assert len(s.tile(s.loops(s.block("C")), [2, 4, 3])) == 6
    check_compiled(case, s.program)


def test_tiles_of_tiles() -> None:
    case = matmul(9, 11, 2)
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    *_, i1, j1 = s.tile([i, j], [4, 6])
    s.tile([i1, j1], [2, 3])
    check_compiled(case, s.program)


def test_tiles_larger_than_the_loops() -> None:
    case = matmul(3, 2, 2)
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    s.tile([i, j], [4, 4])
    check_compiled(case, s.program)


def test_tiles_of_one() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    assert [s.extent(f) for f in s.tile([i, j], [1, 1])] == [5, 7, 1, 1]
    check_compiled(case, s.program)


def test_a_producer_is_placed_in_a_tile() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    _, j0, *_ = s.tile(s.loops(s.block("E")), [2, 4])
    for name in ("D", "C"):
        s.compute_at(s.block(name), j0)
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


def test_refused_for_one_loop() -> None:
    s = Schedule(matmul().program)
    refused(
        lambda: s.tile(s.loops(s.block("C"))[:1], [2]),
        "1 loops and 1 sizes were given",
        None,
        "a tile takes two or more loops, a size each",
    )


def test_refused_for_a_loop_with_a_kind() -> None:
    s = Schedule(matmul().program)
    i, j, _ = s.loops(s.block("C"))
    s.unroll(j)
    refused(
        lambda: s.tile([i, j], [2, 2]),
        "the loop is unrolled already",
        "for j in unrolled(0, 7)",
        "split before choosing how a loop runs",
    )
