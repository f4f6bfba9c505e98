"""`known_divisor` divides the value of an expression, whatever its variables are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.ir.evaluate import evaluate

from weft.ir import Const, Expr, Var, cast, index, known_divisor, maximum, minimum, select
from weft.support.dtypes import i32

X, Y = Var("x"), Var("y")


def expressions() -> st.SearchStrategy[Expr]:
    leaves = st.one_of(st.sampled_from([X, Y]), st.integers(-64, 64).map(index))
    positive = st.integers(1, 24).map(index)

    def deeper(e: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        return st.one_of(
            st.builds(lambda a, b: a + b, e, e),
            st.builds(lambda a, b: a - b, e, e),
            st.builds(lambda a, b: a * b, e, e),
            st.builds(minimum, e, e),
            st.builds(maximum, e, e),
            st.builds(lambda a, b: a // b, e, positive),
            st.builds(lambda a, b: a % b, e, positive),
            st.builds(lambda a, b: select(X < Y, a, b), e, e),
        )

    return st.recursive(leaves, deeper, max_leaves=12)


@given(expressions(), st.integers(-100, 100), st.integers(-100, 100))
def test_it_divides(e: Expr, x: int, y: int) -> None:
    value, divisor = int(evaluate(e, {X: x, Y: y})), known_divisor(e)
    assert value == 0 if divisor == 0 else value % divisor == 0


def test_what_it_knows() -> None:
    assert known_divisor(X * 24 + Y * 12) == 12
    assert known_divisor((X * 8) % index(12)) == 4
    assert known_divisor((X * 8) // index(2)) == 4
    assert known_divisor(cast(cast(X, i32) * Const(4, i32), X.dtype)) == 4
    assert known_divisor(X // index(2)) == 1
