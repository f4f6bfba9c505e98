"""Measured times are believed; what was not measured is estimated by what was, and hoped to be faster where that may matter."""

from __future__ import annotations

from math import inf

import pytest

from weft.cost import Candidate, Layout, Panel, Winograd
from weft.tune.graph import NEVER, Attributed, MeasuredCosts

DIRECT, TILES = Winograd(1, (1, 1, 1)), Winograd(4, (1, 2, 2))
CANDIDATES = [Candidate(DIRECT, 100.0), Candidate(TILES, 110.0)]


def measured(seconds: dict[Winograd, float], hope: float = 0.2) -> MeasuredCosts:
    """The costs after a question was asked, and some of its alternatives were measured."""
    costs = MeasuredCosts(hope)
    costs.ranked("c", CANDIDATES)
    costs.learn(Attributed({("c", d): s for d, s in seconds.items()}))
    return costs


def ranked(costs: MeasuredCosts) -> list[tuple[Winograd, float]]:
    return [(c.decision, c.cycles) for c in costs.ranked("c", CANDIDATES)]


def test_without_measurements_they_are_the_estimates() -> None:
    assert ranked(MeasuredCosts(0.2)) == [(DIRECT, 100.0), (TILES, 110.0)]
    assert MeasuredCosts().moving("x", 7.0) == 7.0


def test_an_untried_alternative_is_hoped_to_be_faster_than_estimated() -> None:
    assert ranked(measured({DIRECT: 1.0})) == [(TILES, pytest.approx(0.88)), (DIRECT, 1.0)]
    assert [d for d, _ in ranked(measured({DIRECT: 1.0}, hope=0.0))] == [DIRECT, TILES]
    assert [d for d, _ in ranked(measured({DIRECT: 1.0}, hope=NEVER))] == [DIRECT, TILES]


def test_it_is_believed_once_it_was_measured() -> None:
    assert ranked(measured({DIRECT: 1.0, TILES: 1.5})) == [(DIRECT, 1.0), (TILES, 1.5)]
    assert ranked(measured({DIRECT: 1.0, TILES: 0.5})) == [(TILES, 0.5), (DIRECT, 1.0)]


def test_several_measurements_count_by_their_median() -> None:
    costs = measured({DIRECT: 1.0})
    for seconds in (9.0, 1.2):
        costs.learn(Attributed({("c", DIRECT): seconds}))
    assert costs.known("c", DIRECT) == 1.2


def test_a_layout_is_as_fast_as_its_fastest_algorithm() -> None:
    costs = MeasuredCosts()
    for seconds in (3.0, 2.0, 5.0):
        costs.learn(Attributed({("c", Layout(blocks=True)): seconds}))
    assert costs.known("c", Layout(blocks=True)) == 2.0


def test_only_open_subjects_are_hoped_for() -> None:
    costs = measured({DIRECT: 1.0})
    costs.open = {"another"}
    assert [d for d, _ in ranked(costs)] == [DIRECT, TILES]


def test_what_failed_is_not_tried_again() -> None:
    costs = measured({DIRECT: 1.0})
    costs.give_up([("c", TILES)])
    assert ranked(costs) == [(DIRECT, 1.0), (TILES, inf)]


def test_the_least_that_is_known_is_a_number_whatever_failed() -> None:
    costs = measured({DIRECT: 1.0, TILES: 0.75})
    costs.learn(Attributed({("c", Layout(blocks=True)): 2.0, ("d", DIRECT): 0.25}))
    costs.give_up([("d", TILES), ("e", TILES)])
    assert costs.least == 1.0


def test_what_no_kernel_is_left_of_has_its_estimate() -> None:
    costs = measured({DIRECT: 1.0})
    costs.settle("c", TILES)
    assert costs.known("c", TILES) == pytest.approx(1.1)


def test_estimates_of_one_question_compare_with_none_of_another() -> None:
    costs = MeasuredCosts()
    panels = [Candidate(Panel(16), 4.0), Candidate(Panel(32), 5.0)]
    costs.ranked("w", panels)
    costs.ranked("c", CANDIDATES)
    costs.learn(Attributed({("c", DIRECT): 1.0, ("w", Panel(16)): 8e-3}))
    assert {c.decision: c.cycles for c in costs.ranked("w", panels)} == {Panel(16): 8e-3, Panel(32): 1e-2}
    assert costs.cycles("d", Layout(blocks=True), 50.0) == pytest.approx(0.5), "as long as a cycle took elsewhere"


def test_the_seconds_of_a_cycle_follow_what_is_learned_and_estimated() -> None:
    costs = measured({DIRECT: 1.0})
    assert costs.rate == pytest.approx(0.01)
    costs.cycles("c", DIRECT, 50.0)
    assert costs.rate == pytest.approx(0.02)
    costs.learn(Attributed({("d", DIRECT): 3.0}))
    costs.ranked("d", [Candidate(DIRECT, 50.0)])
    assert costs.rate == pytest.approx(0.04)
    costs.learn(Attributed({("d", DIRECT): 1.0}))
    assert costs.rate == pytest.approx(0.02)


def test_moving_takes_what_it_took() -> None:
    costs = measured({DIRECT: 1.0})
    costs.learn(Attributed({}, {"x": 0.25}))
    assert costs.moving("x", 1000.0) == 0.25
    assert costs.moving("y", 10.0) == pytest.approx(0.1)


def test_what_is_impossible_stays_so() -> None:
    costs = measured({DIRECT: 1.0})
    assert costs.cycles("c", Layout(blocks=True), inf) == inf
