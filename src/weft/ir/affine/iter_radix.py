"""The bijection analysis for loops of constant extents and bindings that are sums of loops with constant scales: the common case.

    i = io*4 + ii        for io in range(3), ii in range(4)      bijective to an axis of 12

It gives the same answers as `ir.affine.iter_map`, which handles all maps, but computes with integers instead of polynomials.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.ir.bounds.polynomial import poly_of
from weft.ir.expr.base import Expr, Var
from weft.ir.expr.constructors import TRUE
from weft.ir.expr.nodes import Const

Terms: TypeAlias = tuple[tuple[int, Var], ...]
"""A sum of loops, each with its scale."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """For each axis its terms `scale * loop`, its base and whether they cover its extent; and the kind of the map."""

    axes: tuple[tuple[Terms, int, bool], ...]
    bijective: bool
    surjective: bool
    injective: bool


def judge(
    bindings: Sequence[Expr], loops: Mapping[Var, Expr], predicate: Expr, axis_extents: Sequence[Expr]
) -> Verdict | None:
    """Returns the verdict on a map of constants; None where a loop counts down, or the map is of another form."""
    sizes = {v: int(e.value) for v, e in loops.items() if type(e) is Const and int(e.value) > 0}
    if predicate is not TRUE or len(sizes) < len(loops):
        return None
    axes = []
    told_apart = True
    for binding, extent in zip(bindings, axis_extents, strict=True):
        read = _terms(binding, sizes)
        if read is None or type(extent) is not Const:
            return None
        terms, base = read
        upward = sorted(terms, key=lambda t: t[0])
        axes.append((terms, base, not base and _radix(upward, sizes) == int(extent.value)))
        told_apart = told_apart and _is_positional(upward, sizes)
    uses = _uses([terms for terms, _, _ in axes], sizes)
    is_full = all(full for _, _, full in axes)
    once = all(n == 1 for n in uses)
    independent = all(n <= 1 for n in uses)
    return Verdict(tuple(axes), is_full and once, is_full and independent, once and told_apart)


def _uses(sums: Sequence[Terms], sizes: Mapping[Var, int]) -> Collection[int]:
    """Returns the number of *sums* that each loop is in; a loop that runs once is zero, and does not count."""
    uses = {v: 0 for v, size in sizes.items() if size > 1}
    for terms in sums:
        for _, v in terms:
            uses[v] += 1
    return uses.values()


def _terms(binding: Expr, sizes: Mapping[Var, int]) -> tuple[Terms, int] | None:
    """Returns the terms of a sum of loops, the outermost first, and its constant."""
    base, found = 0, []
    for m, k in poly_of(binding).items():
        if not m:
            base = k
            continue
        v = m[0]
        if len(m) > 1 or type(v) is not Var or v not in sizes or k < 0:
            return None
        if sizes[v] > 1:
            found.append((k, v))
    found.sort(key=lambda t: t[1].serial)
    return tuple(found), base


def _radix(upward: Sequence[tuple[int, Var]], sizes: Mapping[Var, int]) -> int | None:
    """Returns how many values a sum counts from 0 on, if its scales, in rising order, are those of a mixed radix."""
    count = 1
    for scale, v in upward:
        if scale != count:
            return None
        count *= sizes[v]
    return count


def _is_positional(upward: Sequence[tuple[int, Var]], sizes: Mapping[Var, int]) -> bool:
    """Answers whether each scale exceeds the largest sum of the terms of smaller scale, so that a value determines its digits."""
    top = 0
    for scale, v in upward:
        if scale <= top:
            return False
        top += scale * (sizes[v] - 1)
    return True
