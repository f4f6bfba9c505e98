"""Formulas by cases: one of several values, by the number of it or by where an index is."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, eq, select


def choose(index: Expr, values: Sequence[Expr]) -> Expr:
    """Returns the value at *index*; a schedule that unrolls the index's loop leaves no choice to be made at run time."""
    result = values[-1]
    for k in reversed(range(len(values) - 1)):
        result = select(eq(index, k), values[k], result)
    return result


def piecewise(index: Expr, pieces: Sequence[tuple[Expr, Expr]]) -> Expr:
    """Returns the value of the first of *pieces*, which are (end, value), whose end is beyond *index*; the last has no end."""
    result = pieces[-1][1]
    for end, value in reversed(pieces[:-1]):
        result = select(index < end, value, result)
    return result
