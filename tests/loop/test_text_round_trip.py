"""What is printed reads back as the same thing, and prints as the same text."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.strategies import INTS, SCALARS, exprs, programs
from tests.support.sampling import tried

from weft.ir import Add, Broadcast, Expr, Names, Ramp, Var, parse_expr, print_expr
from weft.loop import Program, canonical_text, parse_program, print_program
from weft.loop.alpha_equivalence import check_same
from weft.support.dtypes import i64

VARIABLES = [Var(f"{t}_{k}", t) for t in SCALARS for k in "ab"]
SCOPE = {v.name: v for v in VARIABLES}


@tried(75, 300, st.sampled_from(SCALARS).flatmap(lambda t: exprs(t, VARIABLES, depth=4)))
def test_expression_reads_back_as_itself(e: Expr) -> None:
    assert parse_expr(print_expr(e), SCOPE) is e


@tried(15, 60, st.sampled_from(INTS).flatmap(lambda t: exprs(t, VARIABLES)), st.integers(2, 16))
def test_vector_reads_back_as_itself(e: Expr, lanes: int) -> None:
    v = Add(Broadcast(e, lanes), Ramp(e, e, lanes))
    assert parse_expr(print_expr(v), SCOPE) is v


@tried(20, 80, programs())
def test_program_reads_back_as_the_same(program: Program) -> None:
    text = print_program(program)
    again = parse_program(text)
    check_same(program, again)
    assert print_program(again) == text
    assert canonical_text(again) == canonical_text(program)


def test_a_sum_of_thousand_terms_reads_back() -> None:
    x = Var("x")
    e: Expr = x
    for _ in range(999):
        e = Add(e, x)
    assert parse_expr(print_expr(e), {"x": x}) is e


def test_shared_parts_are_written_out() -> None:
    x = Var("x", i64)
    e: Expr = x
    for _ in range(5):
        e = Add(e, e)
    assert print_expr(e, Names()).count("x") == 32
