"""`split` and `fuse` together and among other primitives: loops of any range, of any kind of block, in any order."""

from __future__ import annotations

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, conv2d, matmul, symbolic_matmul, symbolic_rows
from tests.schedule.refusing import refused
from tests.schedule.running import check, loop, same_results

from weft.loop import parse_program
from weft.schedule import Schedule

# Ranges


SHIFTED = """
def main(A: f32[10, 4]):
    for i in range({begin}, {end}):
        for j in range(0, 4):
            with block("A", v={kind}(10, {at}), w=spatial(4, j)):
                A[v, w] = 1.0
"""


def shifted(kind: str = "spatial", begin: int = 2, end: int = 8, at: str = "i") -> Schedule:
    return Schedule(parse_program(SHIFTED.format(kind=kind, begin=begin, end=end, at=at)))


def test_a_split_loop_that_does_not_begin_at_0() -> None:
    s = shifted()
    before = s.program
    s.split(loop(s, "i"), [None, 4])
    assert "i_0 * 4 + i_1 + 2" in str(s)
    same_results(before, s.program)


def test_fused_loops_that_do_not_begin_at_0() -> None:
    s = shifted()
    before = s.program
    s.fuse([loop(s, "i"), loop(s, "j")])
    assert "in range(0, 24)" in str(s)
    same_results(before, s.program)


def test_a_loop_that_counts_down() -> None:
    s = shifted(begin=0, end=10, at="9 - i")
    before = s.program
    outer, inner = s.split(loop(s, "i"), [None, 4])
    s.reorder([inner, outer])
    s.parallel(inner)
    s.vectorize(loop(s, "j"))
    same_results(before, s.program)


@pytest.mark.parametrize("kind", ["ordered", "opaque"])
def test_loops_that_keep_their_order(kind: str) -> None:
    s = shifted(kind)
    before = s.program
    outer, _ = s.split(loop(s, "i"), [None, 4])
    s.fuse([outer, s.loops(s.block("A"))[1]])
    same_results(before, s.program)


def test_pieces_of_a_triangle() -> None:
    text = SHIFTED.format(kind="spatial", begin=0, end=4, at="i").replace(
        "for j in range(0, 4)", "for j in range(0, i + 1)"
    )
    s = Schedule(parse_program(text))
    before = s.program
    s.split(loop(s, "i"), [None, 3])
    s.split(loop(s, "j"), [None, 2])
    same_results(before, s.program)


def test_pieces_of_a_part() -> None:
    case = matmul()
    s = Schedule(case.program)
    _, rest = s.partition(s.loops(s.block("C"))[0], [2])
    s.split(rest, [None, 2])
    check_compiled(case, s.program)


# Boundary


@pytest.mark.parametrize("factors", [[1, None], [None, 1], [None, 5], [5, None], [1, 5, 1]], ids=str)
def test_pieces_of_one_iteration(factors: list[int | None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    assert len(s.split(s.loops(s.block("C"))[0], factors)) == len(factors)
    check_compiled(case, s.program)


def test_a_loop_of_one_iteration() -> None:
    case = matmul(1, 7, 3)
    s = Schedule(case.program)
    s.split(s.loops(s.block("C"))[0], [None, 4])
    check_compiled(case, s.program)


def test_a_unit_loop_goes_when_it_is_fused() -> None:
    case = matmul()
    s = Schedule(case.program)
    k = s.loops(s.block("C"))[2]
    fused = s.fuse([k, s.add_unit_loop(s.block("C"))])
    assert s.extent(fused) == 3
    check(case, s.program)


def test_in_four_pieces() -> None:
    case = matmul(3, 47, 2)
    s = Schedule(case.program)
    made = s.split(s.loops(s.block("C"))[1], [2, None, 3, 4])
    assert [s.extent(f) for f in made] == [2, 2, 3, 4]
    check_compiled(case, s.program)


# Fused, then split


@pytest.mark.parametrize("piece", [2, 3, 4, 7, 35])
def test_pieces_of_fused_loops(piece: int) -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    outer, inner = s.split(s.fuse([i, j]), [None, piece])
    s.reorder([inner, outer])
    check_compiled(case, s.program)


def test_pieces_of_fused_pieces() -> None:
    case = conv2d()
    s = Schedule(case.program)
    _, i, j, *_ = s.loops(s.block("Z"))
    i0, i1 = s.split(i, [None, 2])
    j0, j1 = s.split(j, [None, 4])
    s.reorder([i0, j0, i1, j1])
    tiles, within = s.fuse([i0, j0]), s.fuse([i1, j1])
    s.split(within, [None, 3])
    s.parallel(tiles)
    check_compiled(case, s.program)


def test_pieces_of_a_fused_reduction_and_its_results() -> None:
    case = matmul()
    s = Schedule(case.program)
    s.split(s.fuse(s.loops(s.block("C"))[1:]), [None, 4])
    check_compiled(case, s.program)


def test_split_apart_at_another_place() -> None:
    """Six rows of four become four of six."""
    case = CASES["reshaped"]()
    s = Schedule(case.program)
    made = s.split(s.fuse(s.loops(s.block("C"))), [4, 6])
    assert [s.extent(f) for f in made] == [4, 6]
    s.parallel(made[0])
    check_compiled(case, s.program)


def test_consumers_in_pieces_of_fused_loops_are_placed_in() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    outer, _ = s.split(s.fuse(s.loops(s.block("D"))), [None, 4])
    s.compute_at(s.block("C"), outer)
    check_compiled(case, s.program)


# Symbolic


def test_fused_symbolic_loops() -> None:
    case = symbolic_rows()
    s = Schedule(case.program)
    assert s.extent(s.fuse(s.loops(s.block("A")))) is None
    check_compiled(case, s.program)


def test_pieces_of_fused_symbolic_loops() -> None:
    case = symbolic_rows(3, 5)
    s = Schedule(case.program)
    outer, inner = s.split(s.fuse(s.loops(s.block("A"))), [None, 4])
    s.parallel(outer)
    s.vectorize(inner)
    check_compiled(case, s.program)


def test_a_number_of_pieces_of_symbolic_size() -> None:
    case = symbolic_matmul(7)
    s = Schedule(case.program)
    outer, _ = s.split(s.loops(s.block("C"))[0], [4, None])
    s.parallel(outer)
    check_compiled(case, s.program)


def test_tiles_of_two_symbols() -> None:
    case = symbolic_rows(5, 7)
    s = Schedule(case.program)
    tiles = s.tile(s.loops(s.block("B")), [2, 4])
    s.compute_at(s.block("S"), tiles[0])
    s.parallel(s.fuse([tiles[0]]))
    check_compiled(case, s.program)


# Refused


def test_refused_for_too_few_of_a_symbolic_loop() -> None:
    s = Schedule(symbolic_rows().program)
    refused(
        lambda: s.split(s.loops(s.block("A"))[0], [4, 4]),
        "the factors [4, 4] cover fewer iterations than the loop has",
        "for i in range(0, n)",
        "make one factor None",
    )


@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
def test_refused_to_fuse_a_loop_with_a_kind(kind: str) -> None:
    s = Schedule(matmul().program)
    i, j, _ = s.loops(s.block("C"))
    s.apply(kind, j)
    shown = {"parallel": "parallel", "vectorize": "vectorized", "unroll": "unrolled"}[kind]
    refused(
        lambda: s.fuse([i, j]), f"the loop j is {shown} already", "for j in", "fuse before choosing how a loop runs"
    )


def test_refused_to_lose_a_note() -> None:
    s = Schedule(matmul().program)
    i, j, _ = s.loops(s.block("C"))
    s.annotate(i, "grain", 4)
    for step in (lambda: s.split(i, [None, 2]), lambda: s.fuse([i, j])):
        refused(step, "the note grain of the loop i would be lost", "for i in", "take this step before annotating")


def test_refused_to_fuse_around_several_blocks() -> None:
    s = Schedule(CASES["bias_relu"]().program)
    i, j, k = s.loops(s.block("C"))
    s.decompose_reduction(s.block("C"), k)
    refused(
        lambda: s.fuse([i, j, k]),
        "there is something else between the loops j and k",
        "for j in range(0, 7)",
        "move it out of the outer loop first",
    )
