"""Plans: decisions as text that reads back, planners that choose and planners that follow."""

from __future__ import annotations

import pytest

from weft.cost import Candidate, Choosing, Following, Parallel, Plan, Rule, Step, Tile, WindowTile, cheapest, parse_plan
from weft.cost.plans.planner import VectorLength
from weft.support.errors import ParseError, ScheduleError
from weft.targets import cpu

PLAN = Plan(
    (
        Step("*", VectorLength(512)),
        Step("matmul", Rule("tiled")),
        Step("matmul", Tile(rows=6, columns=1, width=64, outer_rows=1)),
        Step("pool", WindowTile(((2, 4), (3, 16)))),
        Step("matmul", Parallel(2)),
    )
)
TEXT = """\
*: VectorLength(bits=512)
matmul: Rule(name='tiled')
matmul: Tile(rows=6, columns=1, width=64, outer_rows=1)
pool: WindowTile(sizes=((2, 4), (3, 16)))
matmul: Parallel(loops=2)
"""


def test_a_plan_is_a_line_for_each_decision_and_reads_back() -> None:
    assert str(PLAN) == TEXT
    assert parse_plan(TEXT) == PLAN
    assert parse_plan(f"# of a kernel\n\n{TEXT}#   1.25 x  Parallel(loops=1)\n") == PLAN


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("matmul", "it has no `name: Decision(...)`"),
        ("matmul: 3", "a decision is written Name(field=value, ...)"),
        ("matmul: Tile(1, 2, 3, 4)", "a decision is written Name(field=value, ...)"),
        ("matmul: Parallel(loops=print)", "malformed node or string"),
        ("matmul: Parallel()", "Parallel has the fields loops"),
        ("matmul: Parallel(loops=1, threads=2)", "Parallel has the fields loops"),
        ("matmul: Exec(code='')", "there is no decision Exec; there are "),
        ("matmul: Parallel(loops=", "'(' was never closed"),
    ],
)
def test_a_line_that_is_no_decision(line: str, reason: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_plan(f"*: VectorLength(bits=512)\n{line}\n")
    assert raised.value.message.startswith(f"line 2 of a plan is no decision: {line!r} (")
    assert reason in raised.value.message
    assert raised.value.hint == "a line is a block's name, a colon and a decision, as `weft inspect --plan` prints them"


def test_the_first_of_those_that_cost_about_the_same_is_chosen() -> None:
    costs = [Candidate(Parallel(n), c) for n, c in ((1, 100.0), (2, 99.95), (3, 99.0), (4, 98.99), (5, 120.0))]
    assert cheapest(costs).decision == Parallel(3)


def test_a_choice_is_recorded_and_followed_without_a_machine() -> None:
    asked = Choosing(cpu("avx2"))
    candidates = [Candidate(Parallel(1), 2.0), Candidate(Parallel(2), 1.0)]
    assert asked.decide("a", Parallel, lambda _: candidates) == Parallel(2)
    assert asked.lanes(32) == 8
    assert str(asked.plan) == "a: Parallel(loops=2)\n*: VectorLength(bits=256)\n"
    assert asked.questions[0].candidates == tuple(candidates)

    def no_machine(_: object) -> list[Candidate[Parallel]]:
        raise AssertionError("a machine was asked")

    follows = Following(asked.plan)
    assert follows.decide("other_name", Parallel, no_machine) == Parallel(2)
    assert follows.lanes(32) == 8
    follows.finish()


def test_a_question_of_some_machines_is_asked_where_there_are_alternatives() -> None:
    """A plan that is followed was made where its next decision was one of them, or not."""
    machine = Choosing(cpu("avx2").having())
    assert machine.offers(Tile, lambda m: m.has("avx2"))
    assert not machine.offers(Tile, lambda m: m.has("avx512f"))
    plan = Following(Plan((Step("matmul", Rule("tiled")),)))
    assert plan.offers(Rule, lambda m: False)
    assert not plan.offers(Tile, lambda m: True)
    plan.decide("matmul", Rule, lambda m: [])
    assert not plan.offers(Rule, lambda m: True)


def test_a_plan_of_another_program_is_refused() -> None:
    with pytest.raises(ScheduleError) as raised:
        Following(PLAN).decide("*", Rule, lambda _: [])
    assert str(raised.value) == (
        "the plan is of another program: Rule of * is to be decided, and its step 1 is `*: VectorLength(bits=512)`\n"
        "  hint: make the plan anew: `weft inspect MODEL --plan KERNEL` prints a kernel's, `--plan graph` the graph's"
    )
    two = Following(Plan((Step("a", Parallel(1)), Step("b", Parallel(2)))))
    assert two.decide("x", Parallel, lambda _: []) == Parallel(1)
    with pytest.raises(ScheduleError, match="Parallel of x is to be decided, and its step 2 is `b: Parallel"):
        two.decide("x", Parallel, lambda _: [])
    with pytest.raises(ScheduleError, match="nothing asks for its step 2"):
        two.finish()
    with pytest.raises(ScheduleError, match="Tile of x is to be decided, and it ends before that"):
        Following(Plan(())).decide("x", Tile, lambda _: [])


def test_fields_that_were_added_later_may_be_missing() -> None:
    """Plans that were recorded before are read as they were meant."""
    text = (
        "C: SharedTile(y=8, x=8, rows=2, columns=2, depth=8, unroll=True, lanes=1, across=1, run=1, parts=1, groups=1)"
    )
    (step,) = parse_plan(text).steps
    assert str(step).startswith(text[:-1])
    with pytest.raises(ParseError, match="SharedTile has the fields y, x"):
        parse_plan(text.replace("y=8, ", ""))
