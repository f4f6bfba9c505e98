"""`rfactor`: a reduction is cut into partial results. What it does; what it refuses is in `test_rfactor_refused`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, Array, Case, argmax, case, matmul, symbolic_rows
from tests.schedule.running import check, loop, same_results, transition

from weft import te
from weft.ir import Add, BitXor, Expr, Max, Min, Mul, Var, const
from weft.ir.expr.constructors import binary
from weft.loop import parse_program
from weft.schedule import BlockRef, Schedule
from weft.support.dtypes import DType, bool_, f32, i8, i32, i64
from weft.te import Reducer


def of_rows(reducer: Reducer, n: int = 3, m: int = 6, dtype: DType = f32) -> Schedule:
    """A reduction A[i] of the rows of X."""
    x, k = te.placeholder((n, m), dtype, "X"), te.reduce_axis(m, "k")
    return Schedule(te.to_program([x], [te.compute((n,), lambda i: reducer(x[i, k], [k]), "A")]))


def factored(s: Schedule, name: str = "A", pieces: int | None = None, axis: int | None = None) -> BlockRef:
    """Cuts the innermost loop of a block, or pieces of it; fails unless the results stay the same."""
    before, block = s.program, s.block(name)
    k = s.loops(block)[-1]
    made = s.rfactor(block, k if pieces is None else s.split(k, [None, pieces])[1], axis)
    same_results(before, s.program)
    return made


# What is cut


def test_along_a_piece(golden: Callable[[str], None]) -> None:
    case = matmul(4, 3, 6)
    s = Schedule(case.program)
    *_, k = s.loops(s.block("C"))
    _, ki = s.split(k, [None, 2])
    partial = s.rfactor(s.block("C"), ki)
    assert partial == s.block("C_rf")
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_along_the_loop_over_pieces() -> None:
    case = matmul(4, 3, 6)
    s = Schedule(case.program)
    ko, _ = s.split(s.loops(s.block("C"))[2], [None, 2])
    partial = s.rfactor(s.block("C"), ko)
    assert [f.var.name for f in s.loops(partial)] == ["i", "j", "k_0", "k_1"]
    assert [f.var.name for f in s.loops(s.block("C"))] == ["i", "j", "k_0"]
    check(case, s.program)


def test_a_whole_reduction_leaves_copies_to_combine() -> None:
    s = of_rows(te.sum_)
    partial = factored(s)
    assert s.loops(partial)[-1].var.name == "k"
    assert "A_rf[vi, vk] = A_rf[vi, vk] + X[vi, vk]" in str(s)


@pytest.mark.parametrize("which", [0, 1], ids=["outer", "inner"])
def test_one_of_two_reduced_loops(which: int) -> None:
    case = CASES["pool"]()
    s = Schedule(case.program)
    s.rfactor(s.block("Y"), s.loops(s.block("Y"))[2 + which])
    check(case, s.program)


def test_references_stay_with_the_partial_results() -> None:
    s = Schedule(matmul(4, 3, 6).program)
    i, j, k = s.loops(s.block("C"))
    partial = s.rfactor(s.block("C"), k)
    assert s.loops(partial) == (i, j, k)
    assert k not in s.loops(s.block("C"))


def test_the_notes_of_the_block_stay_with_its_results() -> None:
    s = of_rows(te.sum_)
    s.annotate(s.block("A"), "kind", "sum")
    factored(s)
    assert str(s).count('kind="sum"') == 1


# What it is reduced by


REDUCERS = {"sum": te.sum_, "product": te.prod, "largest": te.max_, "smallest": te.min_}


@pytest.mark.parametrize("reducer", REDUCERS.values(), ids=REDUCERS)
def test_by(reducer: Reducer) -> None:
    factored(of_rows(reducer), pieces=2)


@pytest.mark.parametrize("reducer", [te.any_, te.all_], ids=["any", "all"])
def test_of_truth_values(reducer: Reducer) -> None:
    factored(of_rows(reducer, dtype=bool_), pieces=2)


def test_by_an_operator_on_bits() -> None:
    xor = te.reducer(lambda a, b: (binary(BitXor, a[0], b[0]),), lambda t: (const(0, t[0]),))
    factored(of_rows(xor, dtype=i32), pieces=3)


def test_sums_that_wrap_around() -> None:
    s = of_rows(te.prod, 2, 40, i8)
    factored(s, pieces=5)
    assert "i8[2, 5]" in str(s)


def test_the_new_value_may_come_first() -> None:
    s = Schedule(parse_program(UPDATE.format(init="0.0", value="A[vi, vk] + B[vi]")))
    factored(s, "B", 2)


def test_an_initial_value_is_added_once() -> None:
    """Partial sums start from zero, not from what the sum starts from."""
    s = Schedule(parse_program(UPDATE.format(init="5.0", value="B[vi] + A[vi, vk]")))
    factored(s, "B", 2)
    assert str(s).count("= 5.0") == 1


def test_sums_that_an_outer_loop_repeats() -> None:
    text = UPDATE.format(init="0.0", value="B[vi] + A[vi, vk]")
    s = Schedule(parse_program(text.replace("        for k", "        for r in range(0, 2):\n         for k")))
    factored(s, "B", 2)


def test_an_initial_value_of_a_largest_one_may_be_taken_again() -> None:
    s = Schedule(parse_program(UPDATE.format(init="2.0", value="max(B[vi], A[vi, vk])")))
    factored(s, "B", 2)
    assert str(s).count("= 2.0") == 2


UPDATE = """
def main(A: f32[4, 6], B: f32[4]):
    for i in range(0, 4):
        for k in range(0, 6):
            with block("B", vi=spatial(4, i), vk=reduce(6, k)):
                with init():
                    B[vi] = {init}
                B[vi] = {value}
"""


def test_a_condition_in_the_formula() -> None:
    x, k = te.placeholder((4, 6), f32, "X"), te.reduce_axis(6, "k")
    factored(Schedule(te.to_program([x], [te.compute((4,), lambda i: te.sum_(x[i, k], [k], k <= i), "A")])))


def test_a_gathered_value() -> None:
    x, t, k = te.placeholder((5,), f32, "X"), te.placeholder((3, 6), i64, "T"), te.reduce_axis(6, "k")
    total = te.compute((3,), lambda i: te.sum_(x[t[i, k]], [k]), "A")
    c = case([x, t], [total], lambda v, w: [v[w].sum(1)])
    s = Schedule(c.program)
    s.rfactor(s.block("A"), s.loops(s.block("A"))[1])
    check(c, s.program)


# Several results


def test_the_place_of_the_largest(golden: Callable[[str], None]) -> None:
    case = argmax()
    s = Schedule(case.program)
    s.rfactor(s.block("top"), s.loops(s.block("top"))[1])
    check(case, s.program)
    golden(str(s))


def extreme(reducer: Reducer, *, swapped: bool = False) -> Case:
    x, k = te.placeholder((3, 8), f32, "X"), te.reduce_axis(8, "k")
    at, top = te.compute_many((3,), lambda i: reducer((k, x[i, k]), [k]), "A")
    pick = np.argmin if reducer is te.argmin else np.argmax
    return case([x], [top, at] if swapped else [at, top], lambda v: _extreme(v, pick(v, 1), swapped))


def _extreme(v: Array, at: Array, swapped: bool) -> list[np.ndarray]:
    top = np.take_along_axis(v, at[:, None], 1)[:, 0]
    return [top, at] if swapped else [at, top]


@pytest.mark.parametrize("reducer", [te.argmin, te.argmax], ids=["smallest", "largest"])
@pytest.mark.parametrize("pieces", [2, 3])
def test_the_first_place_among_equals_wins(reducer: Reducer, pieces: int) -> None:
    c = extreme(reducer)
    s = Schedule(c.program)
    factored(s, pieces=pieces)
    for seed in range(4):
        check(c, s.program, seed)


def test_the_value_before_its_place() -> None:
    """Which of the two results is compared does not depend on their order."""
    best = te.reducer(_value_first, lambda t: (const(float("-inf"), t[0]), const(99, t[1])))
    x, k = te.placeholder((3, 8), f32, "X"), te.reduce_axis(8, "k")
    top, at = te.compute_many((3,), lambda i: best((x[i, k], k), [k]), "A")
    factored(Schedule(te.to_program([x], [top, at])), pieces=4)


def _value_first(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, ...]:
    place, value = te.argmax.combine((a[1], a[0]), (b[1], b[0]))
    return value, place


def test_results_combined_each_by_itself() -> None:
    ops = (Add, Max, Min, Mul)
    each = te.reducer(
        lambda a, b: tuple([binary(op, x, y) for op, x, y in zip(ops, a, b, strict=True)]),
        lambda t: (const(0, t[0]), const(-99, t[1]), const(99, t[2]), const(1, t[3])),
    )
    x, k = te.placeholder((3, 6), f32, "X"), te.reduce_axis(6, "k")
    made = te.compute_many((3,), lambda i: each((x[i, k], x[i, k], x[i, k] * 2.0, x[i, k]), [k]), "A")
    factored(Schedule(te.to_program([x], made)), pieces=3)


# Where the partial results are


@pytest.mark.parametrize(("axis", "shape"), [(0, "2, 4, 3"), (1, "4, 2, 3"), (2, "4, 3, 2"), (None, "4, 3, 2")])
def test_the_dimension_of_partial_results(axis: int | None, shape: str) -> None:
    s = Schedule(matmul(4, 3, 6).program)
    factored(s, "C", 2, axis)
    assert f'C_rf = alloc("global", f32[{shape}])' in str(s)


def test_of_several_results_too() -> None:
    s = Schedule(argmax().program)
    s.rfactor(s.block("top"), s.loops(s.block("top"))[1], 0)
    assert 'alloc("global", i64[5, 4])' in str(s)
    assert 'alloc("global", f32[5, 4])' in str(s)


# Boundary


def test_a_single_result() -> None:
    x, k = te.placeholder((6,), f32, "X"), te.reduce_axis(6, "k")
    s = Schedule(te.to_program([x], [te.compute((), lambda: te.sum_(x[k], [k]), "A")]))
    factored(s, pieces=2)
    assert 'alloc("global", f32[2])' in str(s)


def test_a_loop_of_one_iteration() -> None:
    factored(of_rows(te.sum_), pieces=6)
    factored(of_rows(te.sum_, 3, 1))


def test_pieces_that_do_not_divide(golden: Callable[[str], None]) -> None:
    """Lanes that run out of values take nothing in, but start like the others."""
    s = of_rows(te.sum_, 3, 7)
    factored(s, pieces=3)
    golden(str(s))


def test_a_number_of_pieces_that_does_not_divide() -> None:
    case = matmul(3, 2, 7)
    s = Schedule(case.program)
    s.rfactor(s.block("C"), s.split(s.loops(s.block("C"))[2], [None, 3])[0])
    check(case, s.program)


def test_the_middle_of_three_pieces() -> None:
    case = matmul(3, 2, 11)
    s = Schedule(case.program)
    s.rfactor(s.block("C"), s.split(s.loops(s.block("C"))[2], [2, 3, 2])[1])
    check(case, s.program)


def test_more_lanes_than_values() -> None:
    factored(of_rows(te.max_, 3, 3), pieces=8)


def test_places_in_pieces_that_do_not_divide() -> None:
    c = extreme(te.argmax)
    s = Schedule(c.program)
    factored(s, pieces=5)
    check(c, s.program)


def test_of_the_outer_piece_whose_inner_one_is_guarded_elsewhere() -> None:
    """The guard is on the rows, not on the reduction."""
    case = matmul(5, 3, 6)
    s = Schedule(case.program)
    i, _, k = s.loops(s.block("C"))
    s.split(i, [None, 2])
    ko, _ = s.split(k, [None, 3])
    s.rfactor(s.block("C"), ko)
    check(case, s.program)


# Symbolic


def test_symbolic() -> None:
    case = symbolic_rows()
    s = Schedule(case.program)
    s.rfactor(s.block("S"), s.loops(s.block("S"))[1])
    check(case, s.program)


@pytest.mark.parametrize("which", [0, 1], ids=["pieces", "lanes"])
def test_a_symbolic_reduction_in_pieces(which: int) -> None:
    case = symbolic_rows(3, 7)
    s = Schedule(case.program)
    s.rfactor(s.block("S"), s.split(s.loops(s.block("S"))[1], [None, 4])[which])
    check(case, s.program)


def test_a_symbolic_sum_over_two_symbols() -> None:
    n, m = Var("n"), Var("m")
    x, a, b = te.placeholder((n, m), f32, "X"), te.reduce_axis(n, "a"), te.reduce_axis(m, "b")
    c = case([x], [te.compute((1,), lambda i: te.sum_(x[a, b], [a, b]), "A")], lambda v: [v.sum().reshape(1)], n=3, m=5)
    s = Schedule(c.program)
    s.rfactor(s.block("A"), s.loops(s.block("A"))[1])
    check(c, s.program)


def test_as_machine_code() -> None:
    case = matmul(3, 4, 19)
    s = Schedule(case.program)
    partial = s.rfactor(s.block("C"), s.split(s.loops(s.block("C"))[2], [None, 8])[1])
    s.reorder(s.loops(partial)[2:])
    s.decompose_reduction(partial, s.loops(partial)[2])
    s.vectorize(s.loops(partial)[-1])
    check_compiled(case, s.program)
    assert loop(s, "k_1") == s.loops(partial)[-1]
