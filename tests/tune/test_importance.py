"""The importance of a knob is its part in the variance, alone and together with others; chance has none."""

from __future__ import annotations

import numpy as np
import pytest

from weft.cost import Parallel
from weft.tune.features import Ints
from weft.tune.importance import FEWEST, knob_importances, permutation_shares
from weft.tune.measure import Failed, Interval, Measured, Outcome
from weft.tune.space import Knob
from weft.tune.task_tuner import Trial


def drawn(n: int, *alternatives: int) -> Ints:
    return np.random.default_rng(0).integers(0, alternatives, (n, len(alternatives)))


@pytest.mark.parametrize("n", [FEWEST, 100])
def test_the_knob_that_alone_decides_has_all(n: int) -> None:
    points = drawn(n, 2, 3, 8)
    shares = permutation_shares(points, np.log(1.0 + points[:, 1]))
    np.testing.assert_allclose(shares, [0, 1, 0], atol=0.2)


def test_knobs_that_matter_only_together_have_part_in_all() -> None:
    """Each by itself explains nothing."""
    points = drawn(200, 2, 3, 2)
    shares = permutation_shares(points, (points[:, 0] ^ points[:, 2]).astype(np.float64))
    assert min(shares[0], shares[2]) > 0.7
    assert shares[1] < 0.05


def test_half_of_the_variance() -> None:
    points = drawn(400, 2, 2, 5)
    shares = permutation_shares(points, (points[:, 0] + points[:, 1]).astype(np.float64))
    np.testing.assert_allclose(shares, [0.5, 0.5, 0], atol=0.1)


def test_sizes_of_many_alternatives_are_learnt_from_neighbours() -> None:
    points = drawn(100, 1000, 2)
    assert permutation_shares(points, (points[:, 0] / 1000).astype(np.float64))[0] > 0.9


@pytest.mark.parametrize("n", [FEWEST, 64])
def test_chance_has_no_part(n: int) -> None:
    rng = np.random.default_rng(1)
    shares = [permutation_shares(drawn(n, 2, 8, 100), rng.normal(size=n)) for _ in range(10)]
    assert np.mean(shares) < 0.1


def test_where_all_are_alike_there_is_nothing_to_explain() -> None:
    np.testing.assert_array_equal(permutation_shares(drawn(30, 2, 3), np.full(30, 0.1)), [0, 0])


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
    trials = [trial((n // 3 % 2, n % 3, 0), 1.0 + n % 3) for n in range(48)]
    trials += [trial((0, 0, 0), 0.0)] * 24  # failures have no throughput
    found = knob_importances(knobs, trials)
    assert [(i.knob.address[1], i.tried) for i in found] == [("Tile", 3), ("Order", 2)]
    assert found[0].share == pytest.approx(1)
    assert found[1].share < 0.1


def test_of_few_candidates_nothing_is_said() -> None:
    trials = [trial((n % 2,), 1.0 + n % 2) for n in range(FEWEST)]
    assert len(knob_importances([knob("Order", 2)], trials)) == 1
    assert knob_importances([knob("Order", 2)], trials[1:]) == []
