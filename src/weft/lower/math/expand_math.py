"""Expands mathematical functions that the target does not compute itself into plain arithmetic.

    Y[i] = sigmoid(X[i])      ->      Y[i] = fma(-select(X[i] < 0.0, ...

One definition serves every target; `lower.math.EXPANSIONS` states the error of each.
"""

from __future__ import annotations

from weft.loop import Program
from weft.lower.math.expand import expand
from weft.lower.stmt_rewriter import map_functions
from weft.targets import Target


def expand_math(program: Program, target: Target) -> Program:
    """Returns *program* with only such functions applied as *target* declares native."""
    return map_functions(program, lambda f: expand(f.body, target.isa.native))
