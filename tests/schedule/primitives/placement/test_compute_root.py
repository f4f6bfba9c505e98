"""`compute_root`: a producer leaves the loops that it was placed in, and computes all of its result before them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, blur, conv2d, stencil, symbolic_rows
from tests.schedule.refusing import refused
from tests.schedule.running import check, loop, refusal, same_results, transition

from weft.loop import parse_program
from weft.schedule import Schedule
from weft.support.errors import ScheduleError


def test_undoes_compute_at(golden: Callable[[str], None]) -> None:
    case = blur()
    s = Schedule(case.program)
    s.compute_at(s.block("A"), s.loops(s.block("B"))[0])
    placed = s.program
    s.compute_root(s.block("A"))
    check_compiled(case, s.program)
    assert str(s.program) == str(case.program)
    golden(transition(placed, s.program))


def test_undoes_reverse_compute_at() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.reverse_compute_at(s.block("D"), s.loops(s.block("C"))[0])
    s.compute_root(s.block("C"))
    check_compiled(case, s.program)
    assert len(s.loops(s.block("C"))) == 3
    assert [b.name for b in s.blocks()] == ["C", "D", "E"]


def test_out_of_a_parallel_loop_its_buffer_is_shared_again(golden: Callable[[str], None]) -> None:
    case = stencil()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("C"))
    s.compute_at(s.block("B"), i)
    s.parallel(i)
    placed = s.program
    s.compute_root(s.block("B"))
    check_compiled(case, s.program)
    golden(transition(placed, s.program))


def test_a_padding_out_of_its_tile() -> None:
    case = conv2d()
    s = Schedule(case.program)
    _, i, _ = s.loops(s.block("Z"))
    outer, _ = s.split(i, [None, 2])
    s.compute_at(s.block("Y"), outer)
    s.compute_at(s.block("P"), outer)
    s.compute_root(s.block("P"))
    check_compiled(case, s.program)


def test_symbolic() -> None:
    case = symbolic_rows()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("B"))
    s.compute_at(s.block("S"), i)
    s.compute_at(s.block("A"), i)
    s.compute_root(s.block("A"))
    s.compute_root(s.block("S"))
    check(case, s.program)


def test_refused_before_its_own_input(golden: Callable[[str], None]) -> None:
    s = Schedule(stencil().program)
    (i,) = s.loops(s.block("C"))
    s.compute_at(s.block("B"), i)
    s.compute_at(s.block("A"), i)
    golden(refusal(lambda: s.compute_root(s.block("B"))))


RUNNING = """
def main(A: f32[8], B: f32[8], C: f32[8]):
    for i in range(0, {n}):
        with block("B", vi=spatial(8, i)):
            B[vi] = A[vi] * 2.0
        with block("C", vi_1=spatial(8, i)):
            C[vi_1] = B[vi_1] + {more}
"""


def test_an_output_that_is_computed_once() -> None:
    program = parse_program(RUNNING.format(n=8, more="1.0"))
    s = Schedule(program)
    s.compute_root(s.block("B"))
    assert [len(s.loops(s.block(n))) for n in ("B", "C")] == [1, 1]
    assert s.loops(s.block("B")) != s.loops(s.block("C"))
    same_results(program, s.program)


def test_refused_for_an_output(golden: Callable[[str], None]) -> None:
    """Its second half keeps what the caller has put there."""
    s = Schedule(parse_program(RUNNING.format(n=4, more="1.0")))
    golden(refusal(lambda: s.compute_root(s.block("B"))))


def test_refused_for_an_output_that_is_read_before() -> None:
    """Each iteration reads an element that the next one overwrites."""
    s = Schedule(parse_program(RUNNING.format(n=8, more="B[min(vi_1 + 1, 7)]")))
    with pytest.raises(ScheduleError, match="B is an output of the function"):
        s.compute_root(s.block("B"))


def test_refused_before_the_start_of_its_reduction() -> None:
    s = Schedule(CASES["bias_relu"]().program)
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    with pytest.raises(ScheduleError, match="the block C_init writes the same buffer as C"):
        s.compute_root(s.block("C"))


def test_one_of_two_copies() -> None:
    """Cutting a loop makes two blocks of one; either can compute the elements of both."""
    case = blur()
    s = Schedule(case.program)
    s.compute_at(s.block("A"), s.loops(s.block("B"))[0])
    s.partition(s.loops(s.block("A"))[1], [2])
    s.compute_root(s.block("A_1"))
    assert [b.name for b in s.blocks()] == ["A_1", "A", "B"]
    check_compiled(case, s.program)


def test_the_start_of_a_reduction() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    s.compute_root(s.block("C_init"))
    assert len(s.loops(s.block("C_init"))) == 2
    assert s.loops(s.block("C_init"))[0] != s.loops(s.block("C"))[0]
    check_compiled(case, s.program)


def test_refused_at_the_root(golden: Callable[[str], None]) -> None:
    s = Schedule(blur().program)
    golden(refusal(lambda: s.compute_root(s.block("A"))))


def test_refused_where_an_input_changes_in_between(golden: Callable[[str], None]) -> None:
    before = parse_program(OVERWRITTEN)
    s = Schedule(before)
    golden(refusal(lambda: s.compute_root(s.block("T"))))
    same_results(before, s.program)


OVERWRITTEN = """
def main(A: f32[4], B: f32[4]):
    T = alloc("global", f32[4])
    for i in range(0, 4):
        for u in range(0, 1):
            with block("A", vi=spatial(4, i)):
                A[vi] = 0.0
        for t in range(0, 1):
            with block("T", vi=spatial(4, i)):
                T[vi] = A[vi] * 2.0
        for j in range(0, 1):
            with block("B", vi=spatial(4, i)):
                B[vi] = T[vi] + 1.0
"""


@pytest.mark.parametrize("name", CASES)
def test_every_producer_of(name: str) -> None:
    case = CASES[name]()
    s = Schedule(case.program)
    last = s.blocks()[-1]
    for b in reversed(s.blocks()[:-1]):
        try:
            s.compute_at(b, s.loops(last)[0])
        except ScheduleError:
            continue
        s.compute_root(b)
    check(case, s.program)


def test_where_a_guard_lets_one_of_many_iterations_run() -> None:
    """The loop runs three times, of which two compute nothing of A: none of its axes depends on it."""
    program = parse_program(
        """
def main(X: f32[4], B: f32[4]):
    A = alloc("global", f32[4])
    for n in range(0, 3):
        for i in range(0, 4):
            with block("A", vi=spatial(4, i), where=(n < 1)):
                reads(X[vi])
                writes(A[vi])
                A[vi] = X[vi] + 1.0
        for j in range(0, 4):
            with block("B", vj=spatial(4, j), where=(n < 1)):
                reads(A[vj])
                writes(B[vj])
                B[vj] = A[vj] * 2.0
"""
    )
    s = Schedule(program)
    s.compute_root(s.block("A"))
    assert len(s.loops(s.block("A"))) == 1
    same_results(program, s.program)


def test_not_where_the_guard_is_never_true() -> None:
    program = parse_program(
        """
def main(X: f32[4], B: f32[4]):
    A = alloc("global", f32[4])
    for n in range(0, 3):
        for i in range(0, 4):
            with block("A", vi=spatial(4, i), where=(2 < n)):
                reads(X[vi])
                writes(A[vi])
                A[vi] = X[vi] + 1.0
        for j in range(0, 4):
            with block("B", vj=spatial(4, j), where=(2 < n)):
                reads(A[vj])
                writes(B[vj])
                B[vj] = A[vj] * 2.0
"""
    )
    s = Schedule(program)
    with pytest.raises(ScheduleError, match="leaves out instances that new loops would run"):
        s.compute_root(s.block("A"))


CUT = """
def main(X: f32[5], C: f32[5]):
    A = alloc("global", f32[5])
    for o in range(0, 3):
        for i in range(0, 2):
            for j in range(0, 2):
                with block("A", vi=spatial(5, o * 2 + i + j), where=(o * 2 + i < 5 and o * 2 + i + j < 5)):
                    A[vi] = X[vi] * 2.0
            with block("C", vi_1=spatial(5, o * 2 + i), where=(o * 2 + i < 5)):
                C[vi_1] = A[vi_1] + 1.0
"""


def test_a_guard_that_only_leaves_out_what_is_beyond() -> None:
    program = parse_program(CUT)
    s = Schedule(program)
    s.compute_root(s.block("A"))
    same_results(program, s.program)


def test_refused_for_a_guard_that_leaves_out_more() -> None:
    s = Schedule(parse_program(CUT.replace("o * 2 + i < 5 and", "o * 2 + i < 4 and")))
    with pytest.raises(ScheduleError, match="the guard of A leaves out instances that new loops would run"):
        s.compute_root(s.block("A"))


SO_FAR = """
def main(A: f32[4, 5], D: f32[4, 5]):
    C = alloc("global", f32[4])
    for k in range(0, 5):
        for i in range(0, 4):
            with block("C", vi=spatial(4, i), vk=reduce(5, k)):
                with init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]
        for j in range(0, 4):
            with block("D", wi=spatial(4, j), wk=spatial(5, k)):
                D[wi, wk] = C[wi]
"""


@pytest.mark.parametrize("place", ["root", "loop"])
def test_refused_where_sums_are_read_as_far_as_they_are(place: str) -> None:
    s = Schedule(parse_program(SO_FAR))
    refused(
        (lambda: s.compute_root(s.block("C")))
        if place == "root"
        else (lambda: s.compute_at(s.block("C"), loop(s, "j"))),
        "D reads what C has combined so far",
        'with block("D"',
        "a reduction moves as a whole: no other block may be in its loops",
    )


def parts(reads: str = "S[w]", first: str = "Y[v]") -> str:
    """A block of which the later part has loops of its own, with what reads it."""
    return f"""
def main(Y: f32[4], C: f32[6]):
    A = alloc("global", f32[4])
    S = alloc("global", f32[4])
    for a in range(0, 4):
        with block("A", z=spatial(4, a)):
            A[z] = Y[z] + 1.0
    for i in range(0, 1):
        with block("S", v=spatial(4, 0)):
            S[v] = {first} * 2.0
        with block("C", w=spatial(6, 0)):
            C[w] = {reads}
    for j in range(0, 5):
        with block("S_1", v=spatial(4, j + 1), where=(j < 3)):
            S[v] = {first} * 2.0
        with block("C_1", w=spatial(6, j + 1)):
            C[w] = select(0 <= w and w < 4, {reads}, 0.0)
"""


def test_a_part_that_comes_after_the_others() -> None:
    """It computes what they have, too, and nobody reads theirs any more."""
    program = parse_program(parts())
    s = Schedule(program)
    s.compute_root(s.block("S_1"))
    same_results(program, s.program)


@pytest.mark.parametrize(
    "text", [parts("S[w] + S[0]"), parts(first="A[v]")], ids=["read after it", "read from a result"]
)
def test_refused_for_a_part_that_would_take_the_place_of_others(text: str) -> None:
    s = Schedule(parse_program(text))
    with pytest.raises(ScheduleError, match="the block S writes the same buffer as S_1"):
        s.compute_root(s.block("S_1"))


def sums() -> Schedule:
    """A sum of which a loop was cut in two, both parts of it in one loop with what reads them."""
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.reverse_compute_at(s.block("D"), s.loops(s.block("C"))[0])
    s.partition(s.loops(s.block("C"))[1], [3])
    return s


def test_the_first_part_of_a_sum_that_was_cut() -> None:
    """The other part computes its results once more."""
    s = sums()
    s.compute_root(s.block("C"))
    check_compiled(CASES["bias_relu"](), s.program)


def test_refused_for_the_first_of_two_sums_that_add_up() -> None:
    """The second goes on with what the first has left."""
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.reverse_compute_at(s.block("D"), s.loops(s.block("C"))[0])
    s.partition(s.loops(s.block("C"))[2], [1])
    with pytest.raises(ScheduleError):
        s.compute_root(s.block("C"))
