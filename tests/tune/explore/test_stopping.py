"""A search stops when more time will not pay, and says why."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from weft.tune.explore import Stopping


def followed(best: Sequence[float], noise: float = 0.02) -> Stopping:
    rule = Stopping(noise)
    for b in best:
        rule.observe(np.array([0, b / 2, b]))
    return rule


def test_it_goes_on_while_batches_gain() -> None:
    verdict = followed([1, 1.2, 1.35, 1.5, 1.6, 1.65]).verdict()
    assert not verdict.stops
    assert verdict.reason == "the next 4 batches are expected to gain 50.8%"


def test_it_goes_on_at_first() -> None:
    verdict = followed([1, 1, 1]).verdict()
    assert not verdict.stops
    assert verdict.reason == "only 3 batches were measured"


def test_it_stops_once_nothing_was_gained_for_long() -> None:
    rule = followed([1, 1.5, 2, 2.2, *[2.21] * 12])
    verdict = rule.verdict()
    assert verdict.stops
    assert verdict.reason.startswith("the last 12 of 16 batches gained nothing, and the next 4 are expected to gain")
    assert verdict.reason.endswith("less than can be told from noise (2.0%)")


def test_a_model_s_promise_keeps_it_going() -> None:
    rule = followed([1, 1.5, 2, 2.2, *[2.21] * 12])
    verdict = rule.verdict(predicted_gain=np.log(1.1))
    assert not verdict.stops
    assert verdict.reason == "the model predicts a gain of 10.0%"


def test_a_short_pause_does_not_stop_it() -> None:
    assert not followed([1, 1.5, 2, 2.5, 2.5, 2.5]).verdict().stops


def test_what_fails_is_no_gain() -> None:
    rule = followed([0, 0, 1, 1.1])
    assert rule.gains == pytest.approx([np.log(1 / 0.75), np.log(1.1)])
    assert followed([0, 0]).expected_gain == float("inf")


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_a_random_search_ends(noise: float) -> None:
    """Of scores between 0 and 1, most of which are below 0.4, high ones are found before the rule stops, and it does stop."""
    for seed in range(10):
        rng, rule, trials = np.random.default_rng(seed), Stopping(noise), 0
        best = 0.0
        while not rule.verdict().stops and trials < 400:
            scores = rng.beta(2, 4, 16)
            best = max(best, float(scores.max()))
            rule.observe(scores)
            trials += 1
        assert 6 <= trials < 100
        assert best > 0.65
