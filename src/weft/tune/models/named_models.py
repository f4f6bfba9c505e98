"""The table of cost models by name; each is imported when it is asked for, since some need an extra of Weft's."""

from __future__ import annotations

from typing import Final

from weft.support.errors import InputError, ToolchainError
from weft.support.lazy_import import resolve
from weft.tune.models.cost_model import CostModel

MODELS: Final[dict[str, str]] = {
    "xgb_rank": "weft.tune.models.boosted_trees:XgbRank",
    "xgb_regression": "weft.tune.models.boosted_trees:XgbRegression",
    "tree_rnn": "weft.tune.models.tree_rnn:TreeRnn",
    "analytical": "weft.tune.models.untrained:Analytical",
    "random": "weft.tune.models.untrained:Random",
}

EXTRAS: Final = {"xgboost": "tune", "torch": "torch"}
"""The extras that bring the packages."""


def make_model(name: str, seed: int = 0, threads: int = 1) -> CostModel:
    """Returns a new cost model that uses so many *threads*.

    Raises `InputError` for a name that is not in `MODELS`, `ToolchainError` where a package that it needs is not installed.
    """
    if name not in MODELS:
        raise InputError(f"there is no cost model {name!r}", hint=f"there are {', '.join(MODELS)}")
    try:
        model: CostModel = resolve(MODELS[name])(seed=seed, threads=threads)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(error.name or "")
        if extra is None:
            raise
        raise ToolchainError(
            f"the cost model {name!r} needs {error.name}, which is not installed",
            hint=f"install Weft with its extra {extra!r}: pip install '.[{extra}]' in the folder of the checkout",
        ) from error
    return model
