"""Explorers: which points of a space to measure next, and when to stop."""

from weft.tune.explore.annealing import Annealing, AnnealingOptions, choose_diverse
from weft.tune.explore.explorer import Explorer, GridSearch, RandomSearch
from weft.tune.explore.genetic import Genetic, GeneticOptions
from weft.tune.explore.history import History
from weft.tune.explore.search_space import KnobSpace, Rng, SearchSpace, alike, beside, change_knobs, fresh_points
from weft.tune.explore.stopping import Stopping, Verdict

__all__ = [
    "Annealing", "AnnealingOptions", "Explorer", "Genetic", "GeneticOptions", "GridSearch", "History", "KnobSpace",
    "RandomSearch", "Rng", "SearchSpace", "Stopping", "Verdict", "alike", "beside", "change_knobs", "choose_diverse",
    "fresh_points",
]
