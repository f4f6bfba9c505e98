"""The importance of a knob is the part of the variance that it explains, and what chance explains does not count."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from weft.cost import Parallel
from weft.tune.features import Doubles, Ints
from weft.tune.importance import FEWEST, MOST_GROUPS, explained_share, knob_importances
from weft.tune.measure import Failed, Interval, Measured, Outcome
from weft.tune.space import Knob
from weft.tune.task_tuner import Trial

VALUES = st.floats(-1e6, 1e6)


@given(st.data(), st.integers(0, 40))
def test_it_is_a_share(data: st.DataObject, n: int) -> None:
    alternatives = data.draw(arrays(np.int64, n, elements=st.integers(0, 20)))
    values = data.draw(arrays(np.float64, n, elements=VALUES))
    assert 0 <= explained_share(alternatives, values) <= 1


@given(st.integers(0, 40).flatmap(lambda n: arrays(np.float64, n, elements=VALUES)), st.integers(0, 9))
def test_a_constant_knob_explains_nothing(values: Doubles, alternative: int) -> None:
    assert explained_share(np.full(len(values), alternative), values) == 0


@given(arrays(np.int64, 60, elements=st.integers(0, 9)), VALUES)
def test_where_all_are_alike_there_is_nothing_to_explain(alternatives: Ints, value: float) -> None:
    assert explained_share(alternatives, np.full(60, value)) == 0


@given(
    arrays(np.int64, 200, elements=st.integers(0, MOST_GROUPS - 1)),
    st.lists(st.integers(-500, 500), min_size=MOST_GROUPS, max_size=MOST_GROUPS),
)
def test_the_knob_that_alone_decides_explains_all(alternatives: Ints, score: list[int]) -> None:
    values = np.array(score)[alternatives] / 100
    wanted = 1 if np.ptp(values) else 0
    assert explained_share(alternatives, values) == pytest.approx(wanted, abs=1e-6)


@given(arrays(np.int64, 80, elements=st.integers(0, 5)), st.randoms(use_true_random=False))
def test_names_of_alternatives_do_not_matter_where_there_are_few(alternatives: Ints, rng: Random) -> None:
    values = np.sin(np.arange(80.0) ** 2) + alternatives
    names = [10, 11, 12, 13, 14, 15]
    rng.shuffle(names)
    renamed = np.array(names)[alternatives]
    assert explained_share(renamed, values) == pytest.approx(explained_share(alternatives, values))


@pytest.mark.parametrize(("n", "alternatives"), [(16, 4), (64, 8), (64, 4096)])
def test_chance_explains_nothing_on_average(n: int, alternatives: int) -> None:
    rng = np.random.default_rng(0)
    shares = [explained_share(rng.integers(0, alternatives, n), rng.normal(size=n)) for _ in range(300)]
    assert np.mean(shares) < 0.09
    assert np.median(shares) < 0.02


def test_many_alternatives_are_taken_in_ranges() -> None:
    """With an alternative a candidate there is nothing to compare, unless neighbours are put together."""
    alternatives = np.random.default_rng(0).permutation(200)
    assert explained_share(alternatives, alternatives / 100) > 0.95


def test_half_of_the_variance() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 2, (2, 4000))
    assert explained_share(first, 1.0 * first + second) == pytest.approx(0.5, abs=0.03)


def knob(kind: str, count: int) -> Knob:
    return Knob(("block", kind, 0), tuple([Parallel(n) for n in range(count)]), 0)


def trial(point: tuple[int, ...], score: float) -> Trial:
    ratio = 1 / score if score else 0.0
    result = (
        Measured((ratio,), (1.0,), Interval(ratio, ratio, ratio), is_early=False, error=0.0)
        if score
        else Failed("wrong", "")
    )
    return Trial(np.array(point), "", Outcome("", None, result), score, 0.0)


def test_knobs_by_importance() -> None:
    knobs = [knob("Order", 2), knob("Tile", 3), knob("Rule", 1)]
    trials = [trial((n % 2, n % 3, 0), 1.0 + n % 3) for n in range(24)]
    trials += [trial((0, 0, 0), 0.0)] * 24  # failures have no throughput
    found = knob_importances(knobs, trials)
    assert [(i.knob.address[1], i.tried) for i in found] == [("Tile", 3), ("Order", 2)]
    assert found[0].share == pytest.approx(1)
    assert found[1].share < 0.1


def test_of_few_candidates_nothing_is_said() -> None:
    trials = [trial((n % 2,), 1.0 + n % 2) for n in range(FEWEST)]
    assert len(knob_importances([knob("Order", 2)], trials)) == 1
    assert knob_importances([knob("Order", 2)], trials[1:]) == []
