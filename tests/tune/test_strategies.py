"""Models that know other tasks choose from the first batch on."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tune.space.test_plan_space import PROGRAMS, SERVER, SKETCH

from weft.tune.explore import History
from weft.tune.models import Samples
from weft.tune.space import PlanSpace
from weft.tune.strategies import TUNERS, strategy

SPACE = PlanSpace(PROGRAMS["product"], SERVER, SKETCH["product"])


def samples(n: int, power: float = 1.0) -> Samples:
    """Plans of another task, whose times are a power of their estimated cycles."""
    features = SPACE.features(SPACE.sample(np.random.default_rng(1), n))
    return Samples.of_times(features, features.cycles**power)


def test_a_taught_search_asks_its_model_first() -> None:
    """Where other tasks say that plans of few cycles are fast, those come first; where they say the opposite, the others."""
    chosen = []
    for power in (1.0, -1.0):
        explorer, _ = strategy("sa-xgb").begin(SPACE, 3, samples(96, power))
        points = explorer.propose(16, History(len(SPACE.sizes), SPACE.keys))
        chosen.append(np.median(np.log2(SPACE.features(points).cycles)))
    assert chosen[0] < chosen[1] - 1


@pytest.mark.parametrize("name", TUNERS)
def test_a_space_of_one_plan_is_searched_through(name: str) -> None:
    whole = PlanSpace(PROGRAMS["product"], SERVER)
    space = PlanSpace(PROGRAMS["product"], SERVER, whole.schedule(whole.default)[1].steps)
    explorer, _ = strategy(name).begin(space, 0, samples(32))
    history = History(0, space.keys)
    points = explorer.propose(8, history)
    assert len(points) == space.count == 1
    history.add(points, np.ones(1))
    assert not len(explorer.propose(8, history))


@pytest.mark.slow
def test_nothing_known_teaches_nothing() -> None:
    """A single sample has no pair to learn from; searches without a model ignore what there is."""
    for given in (None, samples(1)):
        explorer, _ = strategy("sa-xgb").begin(SPACE, 3, given)
        again, _ = strategy("sa-xgb").begin(SPACE, 3)
        history = History(len(SPACE.sizes), SPACE.keys)
        assert (explorer.propose(8, history) == again.propose(8, history)).all()
    for name in ("random", "grid", "ga"):
        assert TUNERS[name].begin(SPACE, 1, samples(20))[1] is None
