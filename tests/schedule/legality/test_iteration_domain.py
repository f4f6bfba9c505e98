"""The iterations of a block: its loops cut to where its guard can hold, against trying out all iterations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ir.evaluate import evaluate

from weft.ir import Bounds, Const, Expr, Var, index, substitute
from weft.loop import Block, For, parse_program
from weft.schedule.cursors.tree import Path, bind_loop, loops_on, paths
from weft.schedule.legality.bijection import is_bijective
from weft.schedule.legality.iteration_domain import Domain, domain_of

NEST = """
def main(X: f32[99]):
    for i in range({i}):
        for j in range({j}):
            for k in range({k}):
                with block("X", v=spatial(99, i * 9 + j * 3 + k), where=({where})):
                    X[v] = 1.0
"""


def block_path(where: str, i: str = "0, 3", j: str = "0, 3", k: str = "0, 4") -> tuple[Path, Bounds]:
    """The path to a block under a guard in three loops, and the ranges of these."""
    program = parse_program(NEST.format(where=where, i=i, j=j, k=k))
    path = next(p for p in paths(program.entry.body) if isinstance(p[-1], Block))
    bounds = Bounds()
    for f in loops_on(path):
        bounds = bind_loop(bounds, f)
    return path, bounds


def cut(where: str, **ranges: str) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """The ranges and the guard that are left, as text."""
    path, bounds = block_path(where, **ranges)
    block = path[-1]
    assert isinstance(block, Block)
    found = domain_of(block, loops_on(path), bounds)
    return {v.name: (str(b), str(n)) for v, (b, n) in found.loops.items()}, [str(c) for c in found.guard]


def test_a_guard_ends_loops() -> None:
    assert cut("i * 3 + j < 3 and k < 2") == ({"i": ("0", "1"), "j": ("0", "3"), "k": ("0", "2")}, [])


def test_a_guard_begins_loops() -> None:
    assert cut("1 < k and 0 < i * 2 + j") == ({"i": ("0", "3"), "j": ("0", "3"), "k": ("2", "2")}, ["0 < i * 2 + j"])


def test_what_another_condition_says_too_is_left_out() -> None:
    _, left = cut("i * 9 + j * 3 + k < 20 and i * 3 + j < 7")
    assert left == ["i * 9 + j * 3 + k < 20"]
    _, left = cut("i * 9 + j * 3 + k < 16 and i * 3 + j < 5")
    assert left == ["i * 9 + j * 3 + k < 16", "i * 3 + j < 5"]


def test_of_two_conditions_that_say_the_same_one_is_left() -> None:
    _, left = cut("i * 2 + j < 4 and i * 4 + j * 2 < 7")
    assert len(left) == 1


def test_a_divided_loop() -> None:
    assert cut("k // 2 < 1") == ({"i": ("0", "3"), "j": ("0", "3"), "k": ("0", "2")}, [])


def test_a_block_that_never_runs_is_left_as_it_is() -> None:
    assert cut("k < 2 and 2 < k") == ({"i": ("0", "3"), "j": ("0", "3"), "k": ("0", "4")}, ["k < 2", "2 < k"])


@pytest.mark.parametrize(
    ("k", "where", "once"), [("0, 5", "1 < k", True), ("2, 5", "0 < k", True), ("1, 5", "0 < k", False)]
)
def test_instances_are_counted_from_where_their_loop_begins(k: str, where: str, once: bool) -> None:
    text = NEST.format(where=where, i="0, 1", j="0, 1", k=k)
    program = parse_program(text.replace("i * 9 + j * 3 + k", "k - 2").replace("spatial(99", "spatial(3"))
    path = next(p for p in paths(program.entry.body) if isinstance(p[-1], Block))
    assert is_bijective(program.entry, path) is once


TERM = st.sampled_from(["i", "j", "k", "k // 2", "k % 2", "j // 2"])
SUM = st.lists(st.tuples(st.integers(-3, 4), TERM), min_size=1, max_size=3).map(
    lambda terms: " + ".join(f"{c} * ({t})" for c, t in terms)
)
CONDITION = st.tuples(SUM, st.sampled_from(["<", "<="]), st.integers(-4, 12)).map(lambda c: f"{c[0]} {c[1]} {c[2]}")


def iterations(domain: Domain) -> Iterator[dict[Var, Expr]]:
    """All values that the loops of a domain take."""
    ranges = [range(number(b), number(b) + number(n)) for b, n in domain.loops.values()]
    for values in product(*ranges):
        yield {v: index(x) for v, x in zip(domain.loops, values, strict=True)}


def number(e: Expr) -> int:
    assert isinstance(e, Const)
    return int(e.value)


def holds(guard: tuple[Expr, ...], at: dict[Var, Expr]) -> bool:
    return all(evaluate(substitute(c, at), {}) for c in guard)


@given(st.lists(CONDITION, min_size=1, max_size=4))
def test_the_same_iterations_are_left(conditions: list[str]) -> None:
    path, bounds = block_path(" and ".join(conditions))
    block = path[-1]
    assert isinstance(block, Block)
    loops = [s for s in path if isinstance(s, For)]
    whole = Domain({f.var: (f.begin, f.extent) for f in loops}, (block.predicate,), bounds)
    left = domain_of(block, loops, bounds)
    assert [at for at in iterations(left) if holds(left.guard, at)] == [
        at for at in iterations(whole) if holds(whole.guard, at)
    ]


def test_the_memo_keeps_nothing_that_refers_to_it() -> None:
    path, bounds = block_path("i * 4 + k < 9999")
    block, loops = path[-1], loops_on(path)
    assert isinstance(block, Block)
    assert domain_of(block, loops, bounds).bounds is bounds
    assert domain_of(block, loops, bounds).bounds is bounds  # from the memo
    assert bounds not in [part for entry in bounds.memo_for("domain").values() for part in entry]
