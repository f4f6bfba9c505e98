"""The tuners by name: an explorer, and the cost model that guides it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weft.support.errors import InputError
from weft.tune.explore import Annealing, Explorer, Genetic, GridSearch, RandomSearch
from weft.tune.models import CostModel, Samples, make_model
from weft.tune.space import PlanSpace


@dataclass(frozen=True)
class Strategy:
    """An explorer, and the name of the model that it asks, empty for one that asks none."""

    explorer: Callable[[PlanSpace, CostModel | None, int], Explorer]
    model: str = ""

    def begin(self, space: PlanSpace, seed: int, known: Samples | None = None) -> tuple[Explorer, CostModel | None]:
        """Returns an explorer of *space* and its model, which has learnt from *known*, samples of other tasks."""
        model = make_model(self.model, seed) if self.model else None
        if model is not None and known is not None and len(known) > 1:
            model.fit(known)
        return self.explorer(space, model, seed), model


def _annealing(space: PlanSpace, model: CostModel | None, seed: int) -> Explorer:
    assert model is not None
    return Annealing(space, lambda points: model.predict(space.features(points)), seed)


TUNERS: Final[dict[str, Strategy]] = {
    "sa-xgb": Strategy(_annealing, "xgb_rank"),
    "sa-xgb-regression": Strategy(_annealing, "xgb_regression"),
    "sa-treernn": Strategy(_annealing, "tree_rnn"),
    "sa-analytical": Strategy(_annealing, "analytical"),
    "ga": Strategy(lambda space, _, seed: Genetic(space, seed)),
    "random": Strategy(lambda space, _, seed: RandomSearch(space, seed)),
    "grid": Strategy(lambda space, _, seed: GridSearch(space, seed)),
}


def check_tuner(name: str) -> None:
    """Raises `InputError` where there is no tuner called *name*, `ToolchainError` where its cost model lacks a package."""
    model = strategy(name).model
    if model:
        make_model(model)


def strategy(name: str) -> Strategy:
    """Returns the tuner called *name*; raises `InputError` where there is none."""
    if name not in TUNERS:
        raise InputError(f"there is no tuner {name!r}", hint=f"use one of {', '.join(TUNERS)}")
    return TUNERS[name]
