"""Intervals of medians: pure functions of the times."""

from __future__ import annotations

from math import comb
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.tune.measure.ratio_interval import (
    Interval,
    enclosing,
    is_clearly_worse,
    is_enough,
    median_interval,
    median_rank,
    ratios,
)

TIMES = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=60)
CONFIDENCES = st.sampled_from([0.5, 0.9, 0.95, 0.99])


@given(st.integers(1, 300), CONFIDENCES)
def test_a_rank_is_the_largest_that_holds(count: int, confidence: float) -> None:
    def covered(rank: int) -> float:
        inside: int = sum(comb(count, heads) for heads in range(rank, count - rank + 1))
        return inside / (1 << count)

    rank = median_rank(count, confidence)
    assert rank == 0 or covered(rank) >= confidence - 1e-9
    assert rank == count // 2 or covered(rank + 1) < confidence + 1e-9


@pytest.mark.parametrize(("count", "rank"), [(1, 0), (5, 0), (6, 1), (8, 1), (9, 2), (20, 6), (50, 18)])
def test_ranks_are_those_of_tables(count: int, rank: int) -> None:
    assert median_rank(count, 0.95) == rank


@given(TIMES, CONFIDENCES, st.randoms())
def test_an_interval_encloses_the_median_in_any_order(times: list[float], confidence: float, source: object) -> None:
    found = median_interval(times, confidence)
    assert found.low <= found.middle <= found.high
    assert found.middle == median(times)
    assert found == median_interval(times[::-1], confidence)


@given(TIMES, st.floats(0.25, 4.0))
def test_an_interval_grows_with_confidence_and_scales(times: list[float], factor: float) -> None:
    narrow, wide = median_interval(times, 0.9), median_interval(times, 0.99)
    assert wide.low <= narrow.low
    assert wide.high >= narrow.high
    scaled = median_interval([factor * t for t in times], 0.9)
    assert scaled.low == pytest.approx(factor * narrow.low)
    assert scaled.high == pytest.approx(factor * narrow.high)


def test_intervals_hold_as_often_as_they_say() -> None:
    samples = np.random.default_rng(0).lognormal(0.0, 1.0, (400, 15)).tolist()
    found = [median_interval(row, 0.95) for row in samples]
    assert sum(i.low <= 1.0 <= i.high for i in found) >= 0.93 * len(found)


@given(st.lists(st.tuples(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0)), min_size=1))
def test_ratios_are_of_pairs(pairs: list[tuple[float, float]]) -> None:
    times, beside = [a for a, _ in pairs], [b for _, b in pairs]
    assert ratios(times, beside) == [a / b for a, b in pairs]
    assert 1.0 in ratios(times, []) or len(times) % 2 == 0


@given(TIMES, st.floats(1.1, 3.0))
def test_nothing_is_clearly_worse_than_itself(times: list[float], factor: float) -> None:
    assert not is_clearly_worse(times, times, factor)
    assert is_clearly_worse([2.5 * factor * max(times)], times, factor)
    assert not is_clearly_worse(times, [], factor)


def test_two_disturbed_turns_tell_nothing() -> None:
    assert not is_clearly_worse([20.7, 353.1], [14.9, 11.8], 1.5)
    assert is_clearly_worse([20.7, 353.1], [13.5, 11.8], 1.5)


def test_a_measurement_ends_when_narrow_or_without_doubt() -> None:
    assert is_enough(Interval(0.99, 1.0, 1.009), 0.02)
    assert not is_enough(Interval(0.9, 1.0, 1.1), 0.02)
    assert is_enough(Interval(1.05, 1.2, 1.5), 0.02)
    assert not is_enough(Interval(0.5, 0.6, 0.7), 0.02)
    assert Interval(0.0, 0.0, 1.0).width == float("inf")


def test_an_interval_that_encloses_others() -> None:
    found = enclosing([Interval(0.8, 0.9, 0.95), Interval(0.7, 0.75, 0.8), Interval(0.85, 0.93, 1.1)])
    assert found == Interval(0.7, 0.9, 1.1)
