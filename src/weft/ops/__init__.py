"""The operator library: one file for each family, one block for each operator."""

from weft.ops.algorithms.cumulative import PREFIXES
from weft.ops.algorithms.decision_trees import ACCEPTS_EQUAL, ACCEPTS_GREATER, ACCEPTS_LESS, ACCEPTS_NAN
from weft.ops.attributes import check_attributes
from weft.ops.convolutions.cook_toom import WHOLE_POINTS, matrices, whole_matrices
from weft.ops.convolutions.winograd_tiles import cut_in_tiles, mixed_sizes, points_of
from weft.ops.elementwise import map_tensors
from weft.ops.derived_facts import is_rename, keeps_finite
from weft.ops.folding import LARGEST_FOLD, Fold, NotFoldable, is_certain, settled
from weft.ops.index_ranges import IndexRange, Limits, index_range
from weft.ops.precision import commutes_with_rounding, rounds
from weft.ops.registry import OPERATORS, Operator, TensorType, operator
from weft.ops.resample import COORDINATES
from weft.ops.shapes import (
    MOST_DIMENSIONS, bounds_of_existing, check_bytes, check_distances, check_rank, is_tractable, least_sizes, normalize_axis,
    possibly_equal_sizes, product, same_size, show_shape, simplify_size, size_bounds, sized,
)
from weft.ops.storage_types import ROUNDINGS
from weft.support.lazy_import import import_all

import_all(__path__, __name__)
OPERATORS.seal()

__all__ = [
    "ACCEPTS_EQUAL", "ACCEPTS_GREATER", "ACCEPTS_LESS", "ACCEPTS_NAN", "COORDINATES", "LARGEST_FOLD", "MOST_DIMENSIONS",
    "OPERATORS", "WHOLE_POINTS",
    "PREFIXES", "ROUNDINGS", "Fold", "IndexRange", "Limits", "NotFoldable", "Operator", "TensorType", "bounds_of_existing",
    "check_attributes", "check_bytes", "check_distances", "check_rank", "commutes_with_rounding", "cut_in_tiles",
    "index_range", "is_certain", "is_rename", "is_tractable", "keeps_finite", "least_sizes", "map_tensors", "matrices",
    "mixed_sizes", "normalize_axis", "operator", "points_of", "possibly_equal_sizes", "product", "rounds", "same_size",
    "settled", "show_shape", "simplify_size", "size_bounds", "sized", "whole_matrices",
]
