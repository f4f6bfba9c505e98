"""Reads index expressions as sums of digits of loops: `base + sum(scale * ((source // lower) % extent))`.

A source is a loop, or a sum of digits that itself counts `0 .. extent - 1`: the quasi-affine maps of Feng et al., "TensorIR"
(2023), section 3.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, Union

from weft.ir.bounds.polynomial import Poly, add_to, constant, plus, poly_to_expr, scaled, times
from weft.ir.expr.base import INDEX, Expr, Var
from weft.ir.expr.binary import And, FloorDiv, FloorMod, Le, Lt
from weft.ir.expr.constructors import ONE, TRUE
from weft.ir.expr.rewrite import free_vars
from weft.ir.simplifier.simplify import Simplifier

Source: TypeAlias = Union[Var, "Fused"]


@dataclass(frozen=True, slots=True)
class Split:
    """A digit, `(source // lower) % extent`; one that is *reversed* counts down: `extent - 1 - digit`."""

    source: Source
    lower: Expr
    extent: Expr
    reversed: bool = False


@dataclass(frozen=True, slots=True)
class Fused:
    """A sum of `scale * digit` that takes each value `0 .. extent - 1` once, perhaps thanks to a predicate."""

    terms: tuple[tuple[Expr, Split], ...]
    extent: Expr


@dataclass(frozen=True, slots=True)
class DigitSum:
    """`base + sum(scale * digit)`, with positive scales."""

    terms: tuple[tuple[Expr, Split], ...]
    base: Poly


class NotAffine(Exception):
    """The expression is not quasi-affine, or the predicate does more than bound sums."""


def loops_of(source: Source) -> frozenset[Var]:
    """Returns the loops of which a source is composed."""
    if isinstance(source, Var):
        return frozenset((source,))
    return frozenset(v for _, d in source.terms for v in loops_of(d.source))


class Reader:
    """Reads expressions of *loops* as digit sums, under a predicate whose bounds make fused sources."""

    def __init__(self, loops: Mapping[Var, Expr], context: Simplifier) -> None:
        self.context = context
        self.loops = {v: context.simplify(e) for v, e in loops.items()}
        self.bounded: list[Fused] = []

    def is_equal(self, a: Poly, b: Poly) -> bool:
        """Answers whether two sizes are certainly equal."""
        difference = plus(a, b, -1)
        known = constant(difference)
        return known == 0 if known is not None else not self.context.poly(poly_to_expr(difference, INDEX))

    def is_multiple(self, a: Poly, b: Poly) -> bool:
        """Answers whether *b* certainly divides *a*."""
        return bool(b) and not self.context.remainder(a, b, INDEX)

    def poly(self, e: Expr) -> Poly:
        """Returns the polynomial of a size."""
        return self.context.poly(e)

    def radix(self, terms: Iterable[tuple[Expr, Split]]) -> Poly | None:
        """Returns how many values a sum counts from 0 on, if its scales are those of a mixed radix."""
        count: Poly = {(): 1}
        rest = list(terms)
        while rest:
            digit = next((t for t in rest if self.is_equal(self.poly(t[0]), count)), None)
            if digit is None:
                return None
            rest.remove(digit)
            count = times(count, self.poly(digit[1].extent))
        return count

    # Reading expressions

    def parse(self, p: Poly) -> DigitSum:
        """Reads a canonical polynomial as a sum of digits; raises `NotAffine` if it is none."""
        scales: dict[Split, Poly] = {}
        base: Poly = {}
        for m, k in p.items():
            moving = [a for a in m if self._moves(a)]
            if not moving:
                add_to(base, {m: k})
                continue
            if len(moving) > 1:
                raise NotAffine
            rest = list(m)
            rest.remove(moving[0])
            add_to(scales.setdefault(self._digit(moving[0]), {}), {tuple(rest): k})
        terms = tuple([self._upward(d, scale, base) for d, scale in scales.items() if scale])
        return self._absorb(DigitSum(terms, base))

    def _moves(self, e: Expr) -> bool:
        return any(v in self.loops for v in free_vars(e))

    def _upward(self, digit: Split, scale: Poly, base: Poly) -> tuple[Expr, Split]:
        """Returns a term with a positive scale: one that counts down is turned around, from its top."""
        if self.context.is_at_least(scaled(scale, -1), 1):
            add_to(base, times(scale, plus(self.poly(digit.extent), {(): -1})))
            scale = scaled(scale, -1)
            digit = replace(digit, reversed=True)
        elif not self.context.is_at_least(scale, 1):
            raise NotAffine
        return poly_to_expr(scale, INDEX), digit

    def _digit(self, atom: Expr) -> Split:
        if isinstance(atom, Var):
            return Split(atom, ONE, self.loops[atom])
        if not isinstance(atom, FloorDiv | FloorMod) or self._moves(atom.b):
            raise NotAffine
        inner = self._single(self.parse(self.poly(atom.a)))
        extent, by = self.poly(inner.extent), self.poly(atom.b)
        if not self.context.is_at_least(by, 1):
            raise NotAffine
        if not (self.is_multiple(extent, by) or self.is_leading(inner)):
            inner = Split(Fused(((ONE, inner),), inner.extent), ONE, inner.extent)
        if isinstance(atom, FloorMod):
            return Split(inner.source, inner.lower, poly_to_expr(by, INDEX))
        count = self.context.quotient(plus(plus(extent, by), {(): -1}), by, INDEX)
        return Split(inner.source, poly_to_expr(times(self.poly(inner.lower), by), INDEX), poly_to_expr(count, INDEX))

    def extent_of(self, source: Source) -> Poly:
        """Returns how many values a source takes."""
        return self.poly(source.extent if isinstance(source, Fused) else self.loops[source])

    def is_leading(self, d: Split) -> bool:
        """Answers whether `% extent` changes nothing, as nothing of the source lies above the digit."""
        end = times(self.poly(d.lower), self.poly(d.extent))
        return self.context.is_at_least(plus(end, self.extent_of(d.source), -1), 0)

    def _single(self, s: DigitSum) -> Split:
        """Returns a sum as one digit, of a fused source if need be."""
        if s.base:
            raise NotAffine
        if len(s.terms) == 1 and s.terms[0][0] is ONE and not s.terms[0][1].reversed:
            return s.terms[0][1]
        count = self.radix(s.terms)
        if count is None:
            raise NotAffine
        extent = poly_to_expr(count, INDEX)
        return Split(Fused(self._ordered(s.terms), extent), ONE, extent)

    def _ordered(self, terms: tuple[tuple[Expr, Split], ...]) -> tuple[tuple[Expr, Split], ...]:
        """Orders the terms of a mixed radix from the smallest scale up, so that equal sums are equal."""
        count: Poly = {(): 1}
        rest, result = list(terms), []
        while rest:
            digit = next(t for t in rest if self.is_equal(self.poly(t[0]), count))
            rest.remove(digit)
            result.append(digit)
            count = times(count, self.poly(digit[1].extent))
        return tuple(result)

    # Predicates

    def read_predicate(self, predicate: Expr) -> None:
        """Takes each conjunct as the bound of a fused sum; raises `NotAffine` where it is none."""
        pending, bounds = [self.context.simplify(predicate)], []
        while pending:
            c = pending.pop()
            if isinstance(c, And):
                pending += [c.a, c.b]
            elif isinstance(c, Lt | Le):
                bounds.append(self._bound_of(c))
            elif c is not TRUE:
                raise NotAffine
        for p, limit in sorted(bounds, key=lambda b: len(b[0])):
            self._limit(p, limit)

    def _bound_of(self, c: Lt | Le) -> tuple[Poly, Poly]:
        """Returns S and L for a condition `S < L` in which S moves with the loops and L does not."""
        d = plus(self.poly(c.b), self.poly(c.a), -1)
        if isinstance(c, Le):
            d = plus(d, {(): 1})
        moving = {m: -k for m, k in d.items() if any(self._moves(a) for a in m)}
        return moving, {m: k for m, k in d.items() if m not in moving}

    def _limit(self, p: Poly, limit: Poly) -> None:
        s = self.parse(p)
        if len(s.terms) == 1 and s.terms[0][0] is not ONE:
            scale = self.poly(s.terms[0][0])
            limit = self.context.quotient(plus(plus(limit, scale), {(): -1}), scale, INDEX)
            s = DigitSum(((ONE, s.terms[0][1]),), s.base)
        count = self.radix(s.terms)
        if s.base or count is None:
            raise NotAffine
        if self.context.is_at_least(plus(limit, count, -1), 0):
            return
        if not s.terms:  # a condition on sizes alone: all instances run or none
            raise NotAffine
        if not self.context.is_at_least(plus(count, limit, -1), 0) or not self.context.is_at_least(limit, 0):
            raise NotAffine
        self.bounded.append(Fused(self._ordered(s.terms), poly_to_expr(limit, INDEX)))

    def _absorb(self, s: DigitSum) -> DigitSum:
        """Replaces the parts of a sum that a predicate bounds by the fused source they make."""
        for fused in self.bounded:
            first = next((t for t in s.terms if t[1] == fused.terms[0][1]), None)
            if first is None:
                continue
            factor = self.poly(first[0])
            part = [(poly_to_expr(times(self.poly(scale), factor), INDEX), d) for scale, d in fused.terms]
            if all(t in s.terms for t in part):
                rest = [t for t in s.terms if t not in part]
                s = DigitSum((*rest, (first[0], Split(fused, ONE, fused.extent))), s.base)
        return s
