"""Cost models: they learn to rank, transfer what they learnt, do the same for the same seed, and say what they need."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.support.machines import SERVER
from tests.support.yardstick import least_seconds
from tests.tune.landscapes import MatmulSpace, measured_scores, random_points

from weft.support.errors import InputError, ToolchainError
from weft.tune.features import Doubles, Features, features_of
from weft.tune.models import MODELS, Analytical, CostModel, Random, Samples, Shuffled, make_model

SPACE = MatmulSpace()
TRAINED = ("xgb_rank", "xgb_regression", "tree_rnn")


def plans(n: int, seed: int, space: MatmulSpace = SPACE) -> tuple[Features, Doubles]:
    """Returns the features of random plans, and their throughputs."""
    points = random_points(space.sizes, np.random.default_rng(seed), n)
    return features_of(space.nests(points), SERVER), measured_scores(space, points, seed=seed, noise=0.02)


def samples(n: int, seed: int, space: MatmulSpace = SPACE) -> Samples:
    features, throughput = plans(n, seed, space)
    return Samples.of_times(features, 1 / throughput)


def rank_correlation(model: CostModel, features: Features, throughput: Doubles) -> float:
    ranks = [np.argsort(np.argsort(x)) for x in (model.predict(features), throughput)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", TRAINED)
def test_a_trained_model_ranks_better_than_the_estimate(name: str) -> None:
    test, throughput = plans(1000, 99)
    model = make_model(name, seed=1)
    before = rank_correlation(model, test, throughput)
    assert before == pytest.approx(rank_correlation(Analytical(), test, throughput))
    model.fit(samples(192, 1))
    after = rank_correlation(model, test, throughput)
    assert after > 0.9 > before


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_same_seed_gives_the_same_predictions(name: str) -> None:
    test, _ = plans(50, 99)
    found = []
    for _ in range(2):
        model = make_model(name, seed=3)
        for n in (32, 48):
            model.fit(samples(n, 2))
        found.append(model.predict(test))
    assert found[0].shape == (50,)
    assert np.array_equal(found[0], found[1])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_samples_are_no_error(name: str, n: int) -> None:
    model = make_model(name)
    model.fit(samples(n, 5))
    assert model.predict(plans(7, 6)[0]).shape == (7,)
    assert model.predict(plans(0, 6)[0]).shape == (0,)


@pytest.mark.parametrize("name", TRAINED)
def test_what_fails_ranks_last(name: str) -> None:
    features, throughput = plans(256, 8)
    fails = features.flat[:, 4] > np.median(features.flat[:, 4])
    if not fails.any():
        fails = features.cycles > np.median(features.cycles)
    model = make_model(name)
    model.fit(Samples.of_times(features, np.where(fails, np.inf, 1 / throughput)))
    found = model.predict(features)
    assert np.median(found[~fails]) > np.quantile(found[fails], 0.9)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", TRAINED)
def test_what_was_learnt_of_other_tasks_helps(name: str) -> None:
    """Few measurements of a task, with many of two others of other sizes, rank better than the few alone."""
    history = [samples(256, 10, MatmulSpace(256, 1024, 128)), samples(256, 11, MatmulSpace(96, 768, 384))]
    test, throughput = plans(1000, 99)
    alone: list[float] = []
    helped: list[float] = []
    for seed in range(3):
        few = samples(16, 20 + seed)
        models = [make_model(name, seed), make_model(name, seed)]
        models[0].fit(few)
        models[1].fit(few.with_history(history, 0.3))
        for found, model in zip((alone, helped), models, strict=True):
            found.append(rank_correlation(model, test, throughput))
    assert np.mean(helped) > np.mean(alone) + 0.02


def test_groups_stay_apart() -> None:
    two = Samples.joined([samples(4, 1), samples(3, 2)])
    assert two.groups.tolist() == [0] * 4 + [1] * 3
    more = samples(2, 3).with_history([two, samples(0, 1)], 0.5)
    assert more.groups.tolist() == [0, 0, *[1] * 4, 2, 2, 2]
    assert more.weights.tolist() == [1, 1, *[0.5] * 7]
    assert more.scores.max() == 1
    mixed = Samples(more.features, more.scores, more.groups[::-1], more.weights[::-1]).by_group()
    assert mixed.groups.tolist() == sorted(more.groups)


def test_times_become_relative_throughputs() -> None:
    features, _ = plans(3, 0)
    assert Samples.of_times(features, np.array([2.0, np.inf, 1.0])).scores.tolist() == [0.5, 0, 1]
    assert Samples.of_times(features, np.full(3, np.inf)).scores.tolist() == [0, 0, 0]


def test_controls_know_nothing() -> None:
    test, throughput = plans(1000, 99)
    model = make_model("xgb_rank")
    shuffled = Shuffled(model, seed=1)
    shuffled.fit(samples(128, 1))
    assert sorted(shuffled.predict(test)) == sorted(model.predict(test))
    for control in (shuffled, Random(1)):
        assert abs(rank_correlation(control, test, throughput)) < 0.15
    assert np.array_equal(Random(1).predict(test), Random(1).predict(test))
    assert not np.array_equal(Random(1).predict(test), Random(2).predict(test))


def test_an_unknown_name_lists_the_models() -> None:
    with pytest.raises(InputError, match="no cost model 'xgb'") as e:
        make_model("xgb")
    assert e.value.hint == "there are xgb_rank, xgb_regression, tree_rnn, analytical, random"


@pytest.mark.parametrize(
    ("name", "package", "module", "extra"),
    [("xgb_rank", "xgboost", "boosted_trees", "tune"), ("tree_rnn", "torch", "tree_rnn", "torch")],
)
def test_a_missing_package_is_named_with_its_extra(
    name: str, package: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"weft.tune.models.{module}", raising=False)
    monkeypatch.setattr(builtins, "__import__", without(package))
    with pytest.raises(ToolchainError) as e:
        make_model(name)
    assert str(e.value).startswith(f"the cost model '{name}' needs {package}, which is not installed")
    assert e.value.hint == (
        f"install Weft with its extra '{extra}': pip install '.[{extra}]' in the folder of the checkout"
    )


def without(package: str) -> Callable[..., Any]:
    """Returns an `__import__` that does not find *package*."""
    found = builtins.__import__

    def find(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == package:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return found(name, *args, **kwargs)

    return find


@pytest.mark.timed
def test_trees_are_fitted_and_asked_fast() -> None:
    model, known = make_model("xgb_rank"), samples(512, 1)
    assert least_seconds(lambda: model.fit(known), 0.3) < 0.3
    batch = SPACE.nests(random_points(SPACE.sizes, np.random.default_rng(2), 1000))
    assert least_seconds(lambda: model.predict(features_of(batch, SERVER)), 0.5) < 0.5


@pytest.mark.timed
def test_the_network_is_fitted_fast() -> None:
    model, known = make_model("tree_rnn"), samples(128, 1)
    assert least_seconds(lambda: model.fit(known), 2) < 2
