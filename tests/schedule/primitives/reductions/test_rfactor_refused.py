"""`rfactor`: what it refuses, and what it says would be legal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import CASES, matmul
from tests.schedule.refusing import refused
from tests.schedule.running import loop, refusal

from weft import te
from weft.ir import select
from weft.loop import parse_program
from weft.schedule import BlockRef, Schedule
from weft.support.dtypes import f32


def test_a_spatial_loop(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.rfactor(s.block("C"), s.loops(s.block("C"))[0])))


def test_a_loop_elsewhere() -> None:
    s = Schedule(CASES["bias_relu"]().program)
    k = s.loops(s.block("D"))[1]
    refused(
        lambda: s.rfactor(s.block("C"), k),
        "C does not reduce over j_1",
        'with block("C"',
        "the loops that it reduces over: k",
    )


def test_a_block_that_reduces_nothing() -> None:
    s = Schedule(CASES["bias_relu"]().program)
    k = s.loops(s.block("D"))[1]
    refused(
        lambda: s.rfactor(s.block("D"), k),
        "D does not reduce over j_1",
        'with block("D"',
        "the loops that it reduces over: none",
    )


def test_a_block_that_is_not_there() -> None:
    s = Schedule(matmul().program)
    refused(
        lambda: s.rfactor(BlockRef("D"), loop(s, "k")), "there is no block D in the program", hint="its blocks are: C"
    )


def test_a_dimension_that_there_is_not() -> None:
    s = Schedule(matmul().program)
    refused(
        lambda: s.rfactor(s.block("C"), loop(s, "k"), 3),
        "the partial results can't be dimension 3",
        'with block("C"',
        "choose an axis from 0 to 2",
    )


def test_a_loop_over_results_and_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    fused = s.fuse(s.loops(s.block("C")))
    golden(refusal(lambda: s.rfactor(s.block("C"), fused)))


def test_after_decomposing() -> None:
    s = Schedule(matmul().program)
    *_, k = s.loops(s.block("C"))
    s.decompose_reduction(s.block("C"), k)
    refused(
        lambda: s.rfactor(s.block("C"), k),
        "the block C_init writes the same buffer as C",
        'with block("C_init"',
        "place a block before decomposing its reduction",
    )


def changed(*changes: tuple[str, str]) -> Schedule:
    """A sum of rows with parts of its text replaced."""
    text = SUM
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return Schedule(parse_program(text))


SUM = """
def main(A: f32[4, 6], B: f32[4]):
    for i in range(0, 4):
        for k in range(0, 6):
            with block("B", vi=spatial(4, i), vk=reduce(6, k)):
                with init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
"""

INIT = "                with init():\n                    B[vi] = 0.0\n"
FORM = "B is not of the form C = C op x for +, *, max, min, and, or, xor, nor the place and the value of a largest or smallest"
OPERATORS = "write the reduction with one of these operators"


@pytest.mark.parametrize(
    "update",
    [
        "B[vi] - A[vi, vk]",
        "A[vi, vk]",
        "A[vi, vk] * 2.0",
        "B[vi] + A[vi, vk] * B[vi]",
        "(B[vi] + A[vi, vk]) * 0.5",
        "select(B[vi] < A[vi, vk], A[vi, vk], B[vi])",
    ],
    ids=["minus", "last", "no result", "twice", "average", "by select"],
)
def test_another_operator(update: str) -> None:
    s = changed(("B[vi] + A[vi, vk]", update))
    refused(lambda: s.rfactor(s.block("B"), loop(s, "k")), FORM, 'with block("B"', OPERATORS)


def test_a_reduction_without_an_initialisation() -> None:
    s = changed((INIT, ""))
    refused(
        lambda: s.rfactor(s.block("B"), loop(s, "k")),
        "B has no initialisation",
        'with block("B"',
        "rfactor before decompose_reduction",
    )


def test_a_reduction_in_order() -> None:
    s = changed(("reduce(6", "ordered(6"), (INIT, ""))
    refused(
        lambda: s.rfactor(s.block("B"), loop(s, "k")),
        "the block B has ordered or opaque axes",
        'with block("B"',
        "only blocks with spatial and reduce axes can move",
    )


def test_a_part_of_a_reduction() -> None:
    s = changed(("range(0, 6)", "range(0, 5)"))
    refused(
        lambda: s.rfactor(s.block("B"), loop(s, "k")), "B does not reduce over whole loops", 'with block("B"', WHOLE
    )


def test_a_reduction_that_begins_elsewhere() -> None:
    s = changed(("reduce(6, k)", "reduce(6, 5 - k)"))
    refused(
        lambda: s.rfactor(s.block("B"), loop(s, "k")), "B does not reduce over whole loops", 'with block("B"', WHOLE
    )


WHOLE = "each reduced axis must begin at 0 with its loops, and take all of its values in them"


def test_results_that_are_computed_again() -> None:
    s = Schedule(parse_program(REPEATED))
    refused(
        lambda: s.rfactor(s.block("B"), loop(s, "k")),
        "k computes some results of B more than once",
        "for k in range(0, 2)",
        "move the loop that repeats them outside",
    )


REPEATED = """
def main(A: f32[2, 3], B: f32[1]):
    for k in range(0, 2):
        for r in range(0, 2):
            for u in range(0, 3):
                with block("B", v=spatial(1, 0), vk=reduce(2, k), vu=reduce(3, u)):
                    with init():
                        B[v] = 0.0
                    B[v] = B[v] + A[vk, vu]
"""


def test_a_result_that_another_block_uses_on_the_way() -> None:
    s = Schedule(parse_program(PREFIX))
    refused(
        lambda: s.rfactor(s.block("B"), loop(s, "k")),
        "C uses the results of B in the loop, too",
        'with block("C"',
        "move C out of the loop k",
    )


PREFIX = """
def main(A: f32[4, 6], B: f32[4], C: f32[4, 6]):
    for i in range(0, 4):
        for k in range(0, 6):
            with block("B", vi=spatial(4, i), vk=reduce(6, k)):
                with init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
            with block("C", vi=spatial(4, i), vk=spatial(6, k)):
                C[vi, vk] = B[vi]
"""


def test_a_statement_outside_of_any_block() -> None:
    s = Schedule(
        parse_program(
            PREFIX.replace('            with block("C", vi=spatial(4, i), vk=spatial(6, k)):\n    ', "").replace(
                "C[vi, vk] = B[vi]", "C[i, k] = 1.0"
            )
        )
    )
    refused(
        lambda: s.rfactor(s.block("B"), loop(s, "k")),
        "a statement outside of any block may do anything",
        "C[i, k] = 1.0",
        "put it into a block",
    )


def test_a_guard_on_results_and_lanes_together() -> None:
    s = changed(("vk=reduce(6, k)", "vk=reduce(6, k), where=i + k < 7"))
    refused(
        lambda: s.rfactor(s.block("B"), loop(s, "k")), "B does not reduce over whole loops", 'with block("B"', WHOLE
    )


def test_places_among_which_equals_are_not_told_apart() -> None:
    """Without a rule for equal values, it would depend on the order which place is kept."""
    last = te.reducer(
        lambda a, b: (select(a[1] < b[1], b[0], a[0]), select(a[1] < b[1], b[1], a[1])), te.argmax.identity, "any_best"
    )
    x, k = te.placeholder((3, 6), f32, "X"), te.reduce_axis(6, "k")
    s = Schedule(te.to_program([x], te.compute_many((3,), lambda i: last((k, x[i, k]), [k]), "B")))
    refused(lambda: s.rfactor(s.block("B"), loop(s, "k")), FORM, 'with block("B"', OPERATORS)


def test_a_pair_of_which_one_is_computed_from_the_other() -> None:
    both = te.reducer(lambda a, b: (a[0] + b[0], a[1] + a[0] * b[1]), te.sum_.identity, "both")
    both = te.reducer(both.combine, lambda t: (te.sum_.identity(t[:1])[0], te.sum_.identity(t[1:])[0]), "both")
    x, k = te.placeholder((3, 6), f32, "X"), te.reduce_axis(6, "k")
    s = Schedule(te.to_program([x], te.compute_many((3,), lambda i: both((x[i, k], x[i, k]), [k]), "B")))
    refused(lambda: s.rfactor(s.block("B"), loop(s, "k")), FORM, 'with block("B"', OPERATORS)


def test_one_result_assigned_twice() -> None:
    s = changed(("B[vi] = B[vi] + A[vi, vk]\n", "B[vi] = B[vi] + A[vi, vk]\n                B[vi] = B[vi] + 1.0\n"))
    refused(
        lambda: s.rfactor(s.block("B"), loop(s, "k")),
        "B is not an assignment to each of its results",
        'with block("B"',
        "give each result one assignment, with values worked out before",
    )
