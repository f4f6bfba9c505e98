"""Cases of a symbolic size: the expression that replaces it in the formulas of a kernel for that case alone.

    n == 0      0                       n <= 16     m, whose limits are 1 and 16
    n == 1      1                       n % 8 == 0  m * 8

A kernel of a case is made as any other: all that the case tells is a part of its formulas, or of the limits of its sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from weft.ir import INDEX, ONE, ZERO, Expr, Var, all_of, eq, index


@dataclass(frozen=True, eq=False)
class SizeCase:
    """A case of *size*, in which *condition* holds: *value* stands in its place, with *arguments* for the variables in it."""

    size: Var
    condition: Expr
    value: Expr
    arguments: Mapping[Var, Expr] = field(default_factory=dict)


def is_exactly(size: Var, value: int) -> SizeCase:
    """Returns the case that *size* is *value*."""
    return SizeCase(size, eq(size, index(value)), index(value))


def is_at_most(size: Var, most: int) -> SizeCase:
    """Returns the case that *size* is at least one, and at most *most*."""
    few = Var(size.name, INDEX, (size.size_range[0], most))
    return SizeCase(size, all_of([size >= ONE, size <= index(most)]), few, {few: size})


def is_multiple(size: Var, of: int) -> SizeCase:
    """Returns the case that *size* is a multiple of a number, and not zero."""
    high = size.size_range[1]
    unit = Var(f"{size.name}_by_{of}", INDEX, (1, None if high is None else max(high // of, 1)))
    return SizeCase(size, all_of([size >= ONE, eq(size % of, ZERO)]), unit * of, {unit: size // of})


RELATIONS: Final[Mapping[str, Callable[[Var, int], SizeCase]]] = {
    "==": is_exactly,
    "<=": is_at_most,
    "%": is_multiple,
}
"""The maker of the case of a size and a number, by the relation of the two."""
