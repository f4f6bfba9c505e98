from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.ir.evaluate import Undefined, evaluate
from tests.support.sampling import tried

from weft.ir import (
    Bounds,
    Expr,
    Lt,
    Ramp,
    Var,
    broadcast,
    ceil_div,
    eq,
    extremes,
    index,
    linear_terms,
    maximum,
    minimum,
    ne,
    prove,
    simplify,
)
from weft.ir.simplifier import elimination

N, M = Var("n"), Var("m")
I, J, IO, II, T = Var("i"), Var("j"), Var("io"), Var("ii"), Var("t")  # noqa: E741
BOUNDS = (
    Bounds()
    .bind(N, 1, None)
    .bind(M, 1, None)
    .bind(I, 0, N - 1)
    .bind(J, 0, M - 1)
    .bind(IO, 0, ceil_div(N, 4) - 1)
    .bind(II, 0, 3)
    .bind(T, 0, minimum(index(4), N - IO * 4) - 1)
)

TRUE_ALWAYS = {
    "in range": I < N,
    "flattened": I * M + J < N * M,
    "flattened twice": (I * M + J) * 4 + II < N * M * 4,
    "not negative": I * M + J >= 0,
    "rounded up": ceil_div(N, 4) * 4 > IO * 4 + II,
    "tile begins inside": IO * 4 < N,
    "tile ends not far outside": IO * 4 + II < N + 3,
    "clipped tile": IO * 4 + T < N,
    "round up is no less": ceil_div(N, 4) * 4 >= N,
    "round down is no more": N // 4 * 4 <= N,
    "division is monotone": ceil_div(N, 4) > I // 4,
    "remainder": I % M < M,
    "division by a symbol": (I * M + J) // M <= N - 1,
    "triangle": I * I <= N * N,
    "conjunction": (I < N) & (J < M),
    "disjunction": (I < N) | (N < 0),
    "equal": eq(I * (M + 1), I * M + I),
    "unequal": ne(I, N),
    "unequal by divisibility": ne(I * 2, J * 4 + 1),
    "negation": ~(N <= I),
    "minimum": minimum(I + 4, N) <= N,
    "minimum of a tile": minimum(IO * 4 + 4, N) - IO * 4 <= 4,
    "maximum": maximum(I, J) >= I,
    "vector": Ramp(IO * 4, index(1), 4) < broadcast(N + 3, 4),
}
NOT_CERTAIN = {
    "one short": I < N - 1,
    "tile without its guard": IO * 4 + II < N,
    "other way round": N < I,
    "sizes": N < M,
    "equal": eq(I, J),
    "product": I * M + J < N * M - 1,
    "disjunction": (I < 1) | (J < 1),
}


@pytest.mark.parametrize("name", TRUE_ALWAYS)
def test_proved(name: str) -> None:
    assert prove(TRUE_ALWAYS[name], BOUNDS)


@pytest.mark.parametrize("name", NOT_CERTAIN)
def test_not_proved(name: str) -> None:
    assert not prove(NOT_CERTAIN[name], BOUNDS)


EXTREMES = {
    "inner loop": (IO * 4 + II, [II], (IO * 4, IO * 4 + 3)),
    "both loops": (I * M + J, [I, J], (index(0), N * M - 1)),
    "counting down": (5 - II, [II], (index(2), index(5))),
    "symbolic factor": (II * N + I, [II], (I, N * 3 + I)),
    "negative symbolic factor": (I - II * N, [II], (I - N * 3, I)),
    "window": (I * 2 + II - 1, [II], (I * 2 - 1, I * 2 + 2)),
    "division": ((IO * 4 + II) // 2, [II], (IO * 2, IO * 2 + 1)),
    "no such variable": (I + 1, [II], (I + 1, I + 1)),
    "remainder of another's multiple": ((IO * 4 + II) % 8, [II], (IO % 2 * 4, IO % 2 * 4 + 3)),
    "minimum": (minimum(II + IO, N), [II], (minimum(IO, N), minimum(IO + 3, N))),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes(name: str) -> None:
    e, variables, expected = EXTREMES[name]
    found = extremes(e, variables, BOUNDS)
    assert found is not None
    assert found == tuple(simplify(x, BOUNDS) for x in expected)


def test_extremes_follow_ranges_that_depend_on_one_another() -> None:
    found = extremes(IO * 4 + T, [IO, T], BOUNDS)
    assert found is not None
    assert found[0] is index(0)
    assert prove(found[1] <= ceil_div(N, 4) * 4, BOUNDS)


FREE = Var("free")


@pytest.mark.parametrize("e", [I * (N - M), FREE + I], ids=["sign unknown", "no range"])
def test_no_extremes(e: Expr) -> None:
    assert extremes(e, [I, FREE], BOUNDS) is None


A, B, C = Var("a"), Var("b"), Var("c")
BOX = {A: 5, B: 4, C: 3}
VARIABLES = st.sampled_from([A, B, C])
SMALL = st.integers(1, 4)
PARTS = st.one_of(
    st.tuples(VARIABLES, st.integers(-4, 4)).map(lambda p: p[0] * p[1]),
    st.tuples(VARIABLES, VARIABLES).map(lambda p: p[0] * p[1]),
    st.tuples(VARIABLES, SMALL).map(lambda p: p[0] // p[1]),
    st.tuples(VARIABLES, SMALL).map(lambda p: p[0] % p[1]),
    st.tuples(VARIABLES, st.integers(-3, 3), VARIABLES).map(lambda p: minimum(p[0] + p[1], p[2])),
    st.tuples(VARIABLES, SMALL, VARIABLES).map(lambda p: (p[0] * p[1] + p[2]) // 4),
)


@tried(75, 300, st.lists(PARTS, min_size=1, max_size=3), st.sets(st.sampled_from([A, B, C]), min_size=1))
def test_extremes_hold_all_values(parts: list[Expr], variables: set[Var]) -> None:
    e = sum(parts[1:], parts[0])
    bounds = Bounds()
    for v, extent in BOX.items():
        bounds = bounds.bind(v, 0, extent - 1)
    found = extremes(e, variables, bounds)
    if found is None:
        return
    for point in itertools.product(*map(range, BOX.values())):
        env = dict(zip(BOX, point, strict=True))
        value = evaluate(e, env)
        assert evaluate(found[0], env) <= value <= evaluate(found[1], env)
    if linear_terms(e, [A, B, C]) is not None:
        check_reached(e, found, variables)


def check_reached(e: Expr, found: tuple[Expr, Expr], variables: set[Var]) -> None:
    """Extremes of a linear form are values of it."""
    outer = [v for v in BOX if v not in variables]
    inner = [v for v in BOX if v in variables]
    for point in itertools.product(*[range(BOX[v]) for v in outer]):
        env = dict(zip(outer, point, strict=True))
        values = [
            evaluate(e, {**env, **dict(zip(inner, p, strict=True))})
            for p in itertools.product(*[range(BOX[v]) for v in inner])
        ]
        assert (min(values), max(values)) == (evaluate(found[0], env), evaluate(found[1], env))


def test_linear_terms() -> None:
    found = linear_terms(I * 4 + J * N - I + M + 5, [I, J])
    assert found is not None
    factors, rest = found
    assert factors == {I: index(3), J: N}
    assert rest is simplify(M + 5)


@pytest.mark.parametrize("e", [I * I, I * J, I // 2 + I, minimum(I, N)])
def test_not_linear(e: Expr) -> None:
    assert linear_terms(e, [I, J]) is None


def test_nothing_is_proved_of_undefined_values() -> None:
    x = Var("x")
    with pytest.raises(Undefined):
        evaluate(x // (x - x), {x: 3})
    assert not prove(Lt(x // (x - x), index(0)))


def test_what_was_looked_for_is_not_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each division may be relaxed before or after each variable goes: ways to the same few polynomials, which are many."""
    h, a, b, c, d = (Var(x) for x in "habcd")
    rows, columns = (h + 7) // 8, (M + 7) // 8
    bounds = BOUNDS.bind(h, 1, None).bind(a, 0, N - 1).bind(b, 0, 7).bind(c, 0, (h + 1) // 8 - 1)
    bounds = bounds.bind(d, (M + 1) // 8, columns - 1).bind(J, 0, 2).bind(II, 0, 3)
    image = rows * columns * 8 + rows * 4 + columns
    place = (
        image * (a * 64 + b * 8)
        + columns * (c * 64 + J * 8 + II * 16)
        + a * 32
        + b * 4
        + c * 32
        + d * 8
        + J * 4
        + II * 8
    )
    tried: list[Any] = []
    relax = elimination._relax_division

    def counted(*given: Any) -> int | None:
        tried.append(given)
        return relax(*given)

    monkeypatch.setattr(elimination, "_relax_division", counted)
    assert not prove(place + 8 < N * 32 + image * N * 64, bounds)
    assert len(tried) < 2000
