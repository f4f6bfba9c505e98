"""Features of plans, computed from their loops without scheduling."""

from weft.tune.features.estimate import cache_traffic, cycles_of
from weft.tune.features.from_programs import nests_of_programs
from weft.tune.features.geometry import AccessGeometry, Bools, Doubles, NestGeometry
from weft.tune.features.level_features import LEVEL_COLUMNS, LEVELS
from weft.tune.features.nest_batch import KINDS, Floats, Ints, NestAccess, NestBatch
from weft.tune.features.plan_features import (
    Features,
    feature_names,
    features_of,
    level_features,
    loop_features,
    with_decisions,
)
from weft.tune.features.straight_code import StraightCode

__all__ = [
    "KINDS", "LEVELS", "LEVEL_COLUMNS", "AccessGeometry", "Bools", "Doubles", "Features", "Floats", "Ints", "NestAccess",
    "NestBatch", "NestGeometry", "StraightCode", "cache_traffic", "cycles_of", "feature_names", "features_of",
    "level_features", "loop_features", "nests_of_programs", "with_decisions",
]
