"""Tensor expressions: an operator's results as index formulas; the loops are the compiler's choice."""

from weft.te.classification import OpClass, access_class, classify
from weft.te.external import Extern, extern, whole
from weft.te.gradient import gradient
from weft.te.prefixes import Prefix, prefix
from weft.te.promotion import Widened, as_stored, is_narrow
from weft.te.last_updates import put_last
from weft.te.reducer import (
    ReduceAxis, Reducer, Reduction, all_, any_, argmax, argmin, highest, lowest, max_, max_number, min_, prod,
    reduce_axis, reducer, sum_,
)
from weft.te.scan import Scan, scan
from weft.te.scattering import Scatter, scatter
from weft.te.tensor import (
    Compute, Operation, Placeholder, Read, Tensor, compute, compute_many, placeholder, reads_of, topological,
)
from weft.te.to_loops import to_program

__all__ = [
    "Compute", "Extern", "OpClass", "Operation", "Placeholder", "Prefix", "Read", "ReduceAxis", "Reducer", "Reduction",
    "Scan", "Scatter", "Tensor", "Widened", "access_class", "all_", "any_", "argmax", "argmin", "as_stored", "classify",
    "compute", "compute_many", "extern", "gradient", "highest", "is_narrow", "lowest", "max_", "max_number",
    "min_", "placeholder", "prefix", "prod", "put_last", "reads_of", "reduce_axis", "reducer", "scan", "scatter", "sum_",
    "to_program",    "topological", "whole",
]
