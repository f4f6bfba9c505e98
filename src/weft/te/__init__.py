"""Tensor expressions: what an operator computes, as index formulas; the compiler owns the loops."""

from weft.te.extern import Extern, extern, whole
from weft.te.gradient import gradient
from weft.te.reducer import (
    ReduceAxis,
    Reducer,
    Reduction,
    all_,
    any_,
    argmax,
    argmin,
    highest,
    lowest,
    max_,
    min_,
    prod,
    reduce_axis,
    reducer,
    sum_,
)  # fmt: skip
from weft.te.scan import Scan, scan
from weft.te.tensor import (
    Compute,
    Operation,
    Placeholder,
    Read,
    Tensor,
    compute,
    compute_many,
    placeholder,
    topological,
)
from weft.te.to_loops import to_program
from weft.te.widened import Widened, as_stored, is_narrow

__all__ = [
    "Compute", "Extern", "Operation", "Placeholder", "Read", "ReduceAxis", "Reducer", "Reduction", "Scan", "Tensor",
    "Widened", "all_", "any_", "argmax", "argmin", "as_stored", "compute", "compute_many", "extern", "gradient", "highest",
    "is_narrow", "lowest", "max_", "min_", "placeholder", "prod", "reduce_axis", "reducer", "scan", "sum_", "to_program",
    "topological", "whole",
]  # fmt: skip
