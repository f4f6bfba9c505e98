"""The parallel split: weighed by the cycles that a nest takes, against those of waking a thread."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.machines import SERVER

from weft.cost import Parallel, cheapest, nest_cycles, parallel_plans
from weft.ir import Expr, apply
from weft.loop import For, LoopKind, Program, sub_statements
from weft.schedule import schedule_program
from weft.te import compute, placeholder, reduce_axis, sum_, to_program

FACTS = SERVER.having(cores=2, fork_cycles=2000, wake_cycles=8000)


def loops(extents: list[int], cycles: float, cores: int = 2, least: list[int] | None = None) -> int:
    """Returns how many outer loops are shared."""
    decision = cheapest(list(parallel_plans(extents, least or extents, cycles, FACTS.having(cores=cores)))).decision
    assert isinstance(decision, Parallel)
    return decision.loops


def test_little_work_stays_on_one_core() -> None:
    assert loops([1000], 5000) == 0
    assert loops([1000], 1e6) == 1
    assert loops([1], 1e6) == 0, "a single iteration"
    assert loops([2, 1000], 1e6) == 2, "two pieces would leave a core idle"


def test_a_symbolic_loop_is_joined_by_those_inside() -> None:
    """A batch is often one: threads share the loops inside of it, too, until there is certainly enough for each."""
    assert loops([64, 4, 64, 64], 1e9, least=[1, 4, 1, 1]) == 4
    assert loops([64, 24, 64, 64], 1e9, least=[1, 24, 1, 1]) == 2
    assert loops([64, 64], 1e9, least=[1, 1]) == 2
    assert loops([64, 24], 1e9, least=[64, 24]) == 1


def test_before_another_thread_has_joined_nothing_is_gained() -> None:
    assert loops([1000], FACTS.core.wake_cycles, cores=64) == 0
    assert loops([1000], 2 * FACTS.core.wake_cycles, cores=64) == 1


def is_shared(program: Program) -> bool:
    stack = [schedule_program(program, FACTS).program.entry.body]
    while stack:
        s = stack.pop()
        if isinstance(s, For) and s.kind is LoopKind.PARALLEL:
            return True
        stack += sub_statements(s)
    return False


def elementwise(n: int, formula: Callable[[Expr], Expr]) -> Program:
    x = placeholder((n,), name="x")
    return to_program([x], [compute((n,), lambda i: formula(x[i]), "y")], "f")


def matmul(n: int) -> Program:
    a, b, r = placeholder((n, n), name="a"), placeholder((n, n), name="b"), reduce_axis(n, "r")
    return to_program([a, b], [compute((n, n), lambda i, j: sum_(a[i, r] * b[r, j], [r]), "c")], "f")


def test_expensive_loops_are_shared_before_cheap_ones() -> None:
    def twice(e: Expr) -> Expr:
        return e * 2.0

    def activation(e: Expr) -> Expr:
        return apply("tanh", e) * apply("exp", e) + apply("erf", e)

    assert not is_shared(elementwise(1 << 14, twice))
    assert is_shared(elementwise(1 << 18, twice))
    assert is_shared(elementwise(1 << 14, activation))
    assert not is_shared(matmul(32)), "as many multiply-adds as the larger copy has elements take much less"
    assert is_shared(matmul(128))


def test_blocks_of_one_loop_share_its_cost() -> None:
    x = placeholder((64, 64), name="x")
    r, q = reduce_axis(64, "r"), reduce_axis(64, "q")
    total = compute((64,), lambda i: sum_(x[i, r], [r]), "total")
    squares = compute((64,), lambda i: sum_((x[i, q] - total[i]) * (x[i, q] - total[i]), [q]), "squares")
    program = schedule_program(to_program([x], [squares], "f"), FACTS).program
    assert nest_cycles(program.entry.body, FACTS) == pytest.approx(64 * 64, rel=0.9), "a few cycles for each vector"
