"""Mathematical functions as plain arithmetic: one definition for every target, with its error stated."""

from weft.lower.math import (
    error_function, exponential, hyperbolic, inverse_trigonometric, logarithm, power, rounding, trigonometric,
)
from weft.lower.math.expand import expand
from weft.lower.math.expansions import EXPANSIONS, Error, Expansion

FAMILIES = (
    error_function,
    exponential,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    rounding,
    trigonometric,
)
"""The modules whose import fills the table."""

__all__ = ["EXPANSIONS", "FAMILIES", "Error", "Expansion", "expand"]
