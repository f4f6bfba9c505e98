from __future__ import annotations

from random import Random

from hypothesis import strategies as st
from tests.ir.evaluate import Undefined, evaluate
from tests.ir.strategies import BOUNDS, CONDITIONS, INDICES, SUMS, environment
from tests.support.sampling import tried

from weft.ir import TRUE, Bounds, Expr, Var, all_of, assume, ceil_div, eq, index, minimum, prove, simplify

N, M = Var("n"), Var("m")
IO, II, X, Y, Z = Var("io"), Var("ii"), Var("x"), Var("y"), Var("z")
TILES = Bounds().bind(N, 1, None).bind(IO, 0, ceil_div(N, 4) - 1).bind(II, 0, 3)


def test_a_guard_bounds_the_inner_loop() -> None:
    inside = assume(IO * 4 + II < N, TILES)
    assert prove(IO * 4 + II < N, inside)
    assert prove(II < 4, inside)
    assert simplify(minimum(IO * 4 + II, N - 1), inside) is simplify(IO * 4 + II)
    assert not prove(IO * 4 + II < N, TILES)


def test_conjunctions_and_both_sides() -> None:
    inside = assume(all_of([X >= 1, X < 5, Y * 2 <= X + 8]), Bounds().bind(X, None, None).bind(Y, None, None))
    assert inside.of(X) == (1, 4)
    assert prove(Y < 7, inside)


def test_equality() -> None:
    assert simplify(X + Y, assume(eq(X, 3), Bounds())) is simplify(Y + 3)
    assert prove(eq(X * 2, Y * 2 + 2), assume(eq(X, Y + 1), Bounds()))


def test_what_is_certain_or_unknown_changes_nothing() -> None:
    assert assume(TRUE, TILES) is TILES
    assert assume((X < 1) | (Y < 1), TILES) is TILES


def test_ranges_never_speak_of_one_another() -> None:
    inside = assume(all_of([X < Y, Y < 10, X < Y + 3, Y <= X + 2, Z <= X, Y <= Z]), Bounds())
    assert inside.of(Y).hi == 9
    assert prove((X < Y) & (Y <= X + 2) & (Z <= X), inside)


@tried(75, 300, CONDITIONS, st.one_of(INDICES, SUMS, CONDITIONS), st.integers(0, 1 << 30))
def test_values_are_kept_where_the_condition_holds(cond: Expr, e: Expr, seed: int) -> None:
    inside = assume(cond, BOUNDS)
    after = simplify(e, inside)
    random = Random(seed)
    for _ in range(20):
        env = environment(random)
        try:
            if evaluate(cond, env):
                expected = evaluate(e, env)
                assert evaluate(after, env) == expected
                assert inside.of(e).holds(int(expected))
        except Undefined:
            continue


def test_a_constant_condition_that_never_holds_is_harmless() -> None:
    inside = assume(index(0) > X, Bounds().bind(X, 0, 5))
    assert simplify(X + 0, inside) is X
