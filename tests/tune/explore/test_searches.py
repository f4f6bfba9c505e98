"""Searches compared at equal trials: a model finds better plans than chance and genetic search, and does so by what it learnt."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.tune.searches import guided, mean_interval, shuffled, unguided

from weft.tune.explore import AnnealingOptions
from weft.tune.features import Doubles
from weft.tune.models import make_model

TRIALS, BATCH = 80, 16
SEEDS = range(6)
QUICK = AnnealingOptions(chains=64, steps=30)


@cache
def final(name: str) -> Doubles:
    """The logarithm of the best throughput after `TRIALS`, for each seed."""
    if name in ("random", "genetic"):
        curves = [unguided(name, seed, TRIALS, BATCH) for seed in SEEDS]
    else:
        models = [shuffled("xgb_rank", s) if name == "shuffled" else make_model(name, s) for s in SEEDS]
        curves = [guided(m, s, TRIALS, BATCH, QUICK) for m, s in zip(models, SEEDS, strict=True)]
    return np.log([c[-1] for c in curves])


@pytest.mark.parametrize("other", ["random", "genetic", pytest.param("shuffled", marks=pytest.mark.slow)])
def test_a_rank_model_beats_chance_and_genetic_search_by_what_it_learnt(other: str) -> None:
    low, _ = mean_interval((final("xgb_rank") - final(other)).tolist())
    assert low > 0


@pytest.mark.slow
def test_without_what_it_learnt_it_is_no_better_than_chance() -> None:
    low, _ = mean_interval((final("shuffled") - final("random")).tolist())
    assert low < 0.05, "the model's predictions in another order are as good as chance"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xgb_regression", "tree_rnn"])
def test_other_models_are_better_than_chance_too(name: str) -> None:
    low, _ = mean_interval((final(name) - final("random")).tolist())
    assert low > 0
