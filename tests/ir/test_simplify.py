from __future__ import annotations

from random import Random

from hypothesis import strategies as st
from tests.ir.evaluate import Undefined, evaluate, same
from tests.ir.strategies import BOUNDS, CONDITIONS, INDICES, SUMS, environment
from tests.support.sampling import tried

from weft.ir import Bounds, Expr, prove, simplify

SEEDS = st.integers(0, 1 << 30)


def fresh() -> Bounds:
    """The bounds of the tests, with no memory of earlier expressions."""
    made = Bounds()
    for v, (lo, hi) in BOUNDS.ranges.items():
        made = made.bind(v, lo, hi)
    return made


def check_same_value(before: Expr, after: Expr, seed: int) -> None:
    random = Random(seed)
    for _ in range(12):
        env = environment(random)
        try:
            expected = evaluate(before, env)
        except Undefined:
            continue
        found = evaluate(after, env)
        assert same(expected, found), (before, after, {v.name: x for v, x in env.items()}, expected, found)


@tried(100, 400, st.one_of(INDICES, SUMS, CONDITIONS), SEEDS)
def test_the_value_is_kept(e: Expr, seed: int) -> None:
    check_same_value(e, simplify(e, fresh()), seed)


@tried(100, 400, st.one_of(INDICES, SUMS, CONDITIONS))
def test_a_second_time_changes_nothing(e: Expr) -> None:
    once = simplify(e, fresh())
    assert simplify(once, fresh()) is once


@tried(100, 400, st.one_of(INDICES, SUMS), SEEDS)
def test_an_interval_holds_every_value(e: Expr, seed: int) -> None:
    interval = BOUNDS.of(e)
    random = Random(seed)
    for _ in range(12):
        try:
            value = int(evaluate(e, environment(random)))
        except Undefined:
            continue
        assert interval.holds(value)


@tried(100, 400, CONDITIONS, SEEDS)
def test_what_is_proved_holds(cond: Expr, seed: int) -> None:
    if prove(cond, fresh()):
        random = Random(seed)
        for _ in range(20):
            try:
                assert evaluate(cond, environment(random))
            except Undefined:
                continue
