"""Cases of a symbolic size: the expression that replaces it in the formulas of a kernel for that case alone.

    n == 0      0                       n <= 16     m, whose limits are 1 and 16
    n == 1      1                       n % 8 == 0  m * 8
    n >= 0      m - 1, for several at once
    n + m > 0   for m: total - n, which leaves the total alone where formulas are of the sum

A kernel of a case is made as any other: all that the case tells is a part of its formulas, or of the limits of its sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from weft.ir import INDEX, ONE, ZERO, Expr, Var, all_of, eq, index, simplify


@dataclass(frozen=True, eq=False)
class SizeCase:
    """A case in which *condition* holds: *values* stand in the places of sizes, with *arguments* for the variables in them."""

    values: Mapping[Var, Expr]
    condition: Expr
    arguments: Mapping[Var, Expr] = field(default_factory=dict)


def is_exactly(size: Var, value: int) -> SizeCase:
    """Returns the case that *size* is *value*."""
    return SizeCase({size: index(value)}, eq(size, index(value)))


def is_at_most(size: Var, most: int) -> SizeCase:
    """Returns the case that *size* is at least one, and at most *most*."""
    few = Var(size.name, INDEX, (size.size_range[0], most))
    return SizeCase({size: few}, all_of([size >= ONE, size <= index(most)]), {few: size})


def is_multiple(size: Var, of: int) -> SizeCase:
    """Returns the case that *size* is a multiple of a number, and not zero."""
    high = size.size_range[1]
    unit = Var(f"{size.name}_by_{of}", INDEX, (1, None if high is None else max(high // of, 1)))
    return SizeCase({size: unit * of}, all_of([size >= ONE, eq(size % of, ZERO)]), {unit: size // of})


def has_zeros(sizes: Sequence[Var]) -> SizeCase:
    """Returns the case that one or more of *sizes* are zero.

    Kernels take sizes to be at least one, and an extent that is one less to be what it may be: so one kernel serves them all.
    """
    above = {
        v: Var(f"{v.name}_and_1", INDEX, (1, None if v.size_range[1] is None else v.size_range[1] + 1)) for v in sizes
    }
    some = ~all_of([v > ZERO for v in sizes])
    return SizeCase({v: m - ONE for v, m in above.items()}, some, {m: v + ONE for v, m in above.items()})


def has_zeros_in_sum(sizes: Sequence[Var]) -> SizeCase:
    """Returns the case that one or more of *sizes* are zero, but not their sum: all that formulas of the sum alone ask for."""
    total = Var("total", INDEX)
    *others, last = sizes
    whole = sum(others, start=cast(Expr, last))
    condition = all_of([whole > ZERO, ~all_of([v > ZERO for v in sizes])])
    return SizeCase({**{v: v for v in others}, last: simplify(total - whole + last)}, condition, {total: whole})


RELATIONS: Final[Mapping[str, Callable[[Var, int], SizeCase]]] = {
    "==": is_exactly,
    "<=": is_at_most,
    "%": is_multiple,
}
"""The maker of the case of a size and a number, by the relation of the two."""
