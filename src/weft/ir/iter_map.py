"""Is a block visited exactly once for each of its instances? The bijection analysis of loops to a block's axes.

Each binding is normalised to `base + sum(scale * ((source // lower) % extent))`, where a source is a loop or a sum of digits that
itself counts `0 .. extent - 1`: the quasi-affine maps of Feng et al., "TensorIR" (2023), section 3.3. The map is
bijective iff the digits taken of each source tile it, and the scales of each axis are those of a mixed radix.

    i = io*4 + ii        for io in range((n+3)//4), ii in range(4), where io*4 + ii < n      bijective
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, Union

from weft.ir.bounds import Bounds
from weft.ir.expr import INDEX, ONE, TRUE, And, Expr, FloorDiv, FloorMod, Le, Lt, Var
from weft.ir.linear import Poly, add_to, build, plus, scaled, times
from weft.ir.rewrite import free_vars
from weft.ir.simplify import Simplifier

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
class AxisMap:
    """What one axis is bound to: `base + sum(scale * digit)`, the loops it depends on, and whether it runs over its extent."""

    terms: tuple[tuple[Expr, Split], ...]
    base: Expr
    loops: frozenset[Var]
    is_full: bool
    is_mixed_radix: bool


@dataclass(frozen=True, slots=True)
class IterMap:
    """A map from loop iterations to instances of a block; when in doubt it is called none of bijective, surjective and injective."""

    axes: tuple[AxisMap, ...]
    bijective: bool
    surjective: bool
    injective: bool


def detect(
    bindings: Sequence[Expr],
    loops: Mapping[Var, Expr],
    predicate: Expr,
    axis_extents: Sequence[Expr],
    bounds: Bounds,
) -> IterMap | None:
    """Analyses the map from *loops* (extents, in order of nesting; each counts from 0) to axes by their *bindings*.

    Iterations are those for which *predicate* holds; *bounds* tells of the other variables. None if a binding is not
    quasi-affine, or if the predicate does more than bound sums of loops.
    """
    if any(v in loops for e in loops.values() for v in free_vars(e)):
        return None
    inner = bounds
    for v, extent in loops.items():
        inner = inner.bind(v, 0, extent - 1)
    return _Detector(loops, Simplifier(inner)).run(bindings, predicate, axis_extents)


@dataclass(frozen=True, slots=True)
class _Sum:
    terms: tuple[tuple[Expr, Split], ...]
    base: Poly


class _Refused(Exception):
    """The expression is not quasi-affine."""


class _Detector:
    def __init__(self, loops: Mapping[Var, Expr], context: Simplifier) -> None:
        self.context = context
        self.loops = {v: context.simplify(e) for v, e in loops.items()}
        self.bounded: list[Fused] = []

    def run(self, bindings: Sequence[Expr], predicate: Expr, extents: Sequence[Expr]) -> IterMap | None:
        try:
            self._read_predicate(predicate)
            sums = [self._parse(self.context.poly(b)) for b in bindings]
        except _Refused:
            return None
        axes = tuple([self._axis(s, self.context.simplify(e)) for s, e in zip(sums, extents, strict=True)])
        uses = _Uses(self, [s for axis in sums for _, s in axis.terms])
        full = all(a.is_full for a in axes)
        exact = uses.are_exact()
        return IterMap(axes, full and exact, full and uses.are_onto(), exact and all(a.is_mixed_radix for a in axes))

    def _axis(self, s: _Sum, extent: Expr) -> AxisMap:
        base = build(s.base, INDEX)
        count = self._radix(s.terms)
        is_full = not s.base and count is not None and self.is_equal(count, self.context.poly(extent))
        loops = frozenset(v for _, d in s.terms for v in loops_of(d.source))
        return AxisMap(s.terms, base, loops, is_full, count is not None)

    def is_equal(self, a: Poly, b: Poly) -> bool:
        """Answers whether two sizes are certainly equal."""
        return not self.context.poly(build(plus(a, b, -1), INDEX))

    def is_multiple(self, a: Poly, b: Poly) -> bool:
        """Answers whether *b* certainly divides *a*."""
        return bool(b) and not self.context.remainder(a, b, INDEX)

    def poly(self, e: Expr) -> Poly:
        """Returns the polynomial of a size."""
        return self.context.poly(e)

    def _radix(self, terms: Iterable[tuple[Expr, Split]]) -> Poly | None:
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

    def _parse(self, p: Poly) -> _Sum:
        """Reads a canonical polynomial as a sum of digits; raises `_Refused` if it is none."""
        scales: dict[Split, Poly] = {}
        base: Poly = {}
        for m, k in p.items():
            moving = [a for a in m if self._moves(a)]
            if not moving:
                add_to(base, {m: k})
                continue
            if len(moving) > 1:
                raise _Refused
            rest = list(m)
            rest.remove(moving[0])
            add_to(scales.setdefault(self._digit(moving[0]), {}), {tuple(rest): k})
        terms = tuple([self._upward(d, scale, base) for d, scale in scales.items() if scale])
        return self._absorb(_Sum(terms, base))

    def _moves(self, e: Expr) -> bool:
        return any(v in self.loops for v in free_vars(e))

    def _upward(self, digit: Split, scale: Poly, base: Poly) -> tuple[Expr, Split]:
        """Returns a term with a positive scale: one that counts down is turned around, from its top."""
        if self.context.is_at_least(scaled(scale, -1), 1):
            add_to(base, times(scale, plus(self.poly(digit.extent), {(): -1})))
            scale = scaled(scale, -1)
            digit = replace(digit, reversed=True)
        elif not self.context.is_at_least(scale, 1):
            raise _Refused
        return build(scale, INDEX), digit

    def _digit(self, atom: Expr) -> Split:
        if isinstance(atom, Var):
            return Split(atom, ONE, self.loops[atom])
        if not isinstance(atom, FloorDiv | FloorMod) or self._moves(atom.b):
            raise _Refused
        inner = self._single(self._parse(self.poly(atom.a)))
        extent, by = self.poly(inner.extent), self.poly(atom.b)
        if not self.context.is_at_least(by, 1):
            raise _Refused
        if isinstance(atom, FloorMod):
            return Split(inner.source, inner.lower, build(by, INDEX))
        count = self.context.quotient(plus(plus(extent, by), {(): -1}), by, INDEX)
        return Split(inner.source, build(times(self.poly(inner.lower), by), INDEX), build(count, INDEX))

    def _single(self, s: _Sum) -> Split:
        """Returns a sum as one digit, of a fused source if need be."""
        if s.base:
            raise _Refused
        if len(s.terms) == 1 and s.terms[0][0] is ONE and not s.terms[0][1].reversed:
            return s.terms[0][1]
        count = self._radix(s.terms)
        if count is None:
            raise _Refused
        extent = build(count, INDEX)
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

    def _read_predicate(self, predicate: Expr) -> None:
        """Takes each conjunct as the bound of a fused sum; raises `_Refused` where it is none."""
        pending, bounds = [self.context.simplify(predicate)], []
        while pending:
            c = pending.pop()
            if isinstance(c, And):
                pending += [c.a, c.b]
            elif isinstance(c, Lt | Le):
                bounds.append(self._bound_of(c))
            elif c is not TRUE:
                raise _Refused
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
        s = self._parse(p)
        if len(s.terms) == 1 and s.terms[0][0] is not ONE:
            scale = self.poly(s.terms[0][0])
            limit = self.context.quotient(plus(plus(limit, scale), {(): -1}), scale, INDEX)
            s = _Sum(((ONE, s.terms[0][1]),), s.base)
        count = self._radix(s.terms)
        if s.base or count is None:
            raise _Refused
        if self.context.is_at_least(plus(limit, count, -1), 0):
            return
        if not self.context.is_at_least(plus(count, limit, -1), 0) or not self.context.is_at_least(limit, 0):
            raise _Refused
        self.bounded.append(Fused(self._ordered(s.terms), build(limit, INDEX)))

    def _absorb(self, s: _Sum) -> _Sum:
        """Replaces the parts of a sum that a predicate bounds by the fused source they make."""
        for fused in self.bounded:
            first = next((t for t in s.terms if t[1] == fused.terms[0][1]), None)
            if first is None:
                continue
            factor = self.poly(first[0])
            part = [(build(times(self.poly(scale), factor), INDEX), d) for scale, d in fused.terms]
            if all(t in s.terms for t in part):
                rest = [t for t in s.terms if t not in part]
                s = _Sum((*rest, (first[0], Split(fused, ONE, fused.extent))), s.base)
        return s


def loops_of(source: Source) -> frozenset[Var]:
    """Returns the loops that a source is made of."""
    if isinstance(source, Var):
        return frozenset((source,))
    return frozenset(v for _, d in source.terms for v in loops_of(d.source))


class _Uses:
    """Which digits of each source the axes use."""

    def __init__(self, detector: _Detector, digits: list[Split]) -> None:
        self.detector = detector
        self.by_source: dict[Source, list[Split]] = {v: [] for v in detector.loops}
        pending = list(digits)
        for fused in detector.bounded:
            self._open(fused, pending)
        while pending:
            digit = pending.pop()
            if digit.source not in self.by_source and isinstance(digit.source, Fused):
                self._open(digit.source, pending)
            self.by_source[digit.source].append(digit)

    def _open(self, fused: Fused, pending: list[Split]) -> None:
        """A fused source uses its own digits once, however many of its digits are used."""
        if fused not in self.by_source:
            self.by_source[fused] = []
            pending += [d for _, d in fused.terms]

    def _extent(self, source: Source) -> Poly:
        d = self.detector
        return d.poly(source.extent if isinstance(source, Fused) else d.loops[source])

    def are_exact(self) -> bool:
        """Answers whether the used digits of each source tile it: different iterations reach different instances."""
        return all(self._tiles(source, digits) for source, digits in self.by_source.items())

    def _tiles(self, source: Source, digits: list[Split]) -> bool:
        count: Poly = {(): 1}
        rest = list(digits)
        d = self.detector
        while rest:
            digit = next((x for x in rest if d.is_equal(d.poly(x.lower), count)), None)
            if digit is None:
                return False
            rest.remove(digit)
            count = times(count, d.poly(digit.extent))
        return d.is_equal(count, self._extent(source))

    def are_onto(self) -> bool:
        """Answers whether the used digits are independent: together they take all combinations of values."""
        return all(self._is_independent(source, digits) for source, digits in self.by_source.items())

    def _is_independent(self, source: Source, digits: list[Split]) -> bool:
        d = self.detector
        extent = self._extent(source)
        if self._tiles(source, digits):
            return True
        if len(digits) == 1 and self._is_top(digits[0], extent):
            return True
        count: Poly = {(): 1}
        rest = list(digits)
        while rest:
            digit = next((x for x in rest if self._is_next(x, count, rest)), None)
            if digit is None:
                return False
            rest.remove(digit)
            count = times(d.poly(digit.lower), d.poly(digit.extent))
        return d.is_multiple(extent, count) and d.context.is_at_least(extent, 1)

    def _is_next(self, x: Split, count: Poly, rest: list[Split]) -> bool:
        """Answers whether *x* begins at a multiple of *count* and all of the *rest* begins at multiples of its end."""
        d = self.detector
        end = times(d.poly(x.lower), d.poly(x.extent))
        return d.is_multiple(d.poly(x.lower), count) and all(
            d.is_multiple(d.poly(y.lower), end) for y in rest if y is not x
        )

    def _is_top(self, x: Split, extent: Poly) -> bool:
        """Answers whether *x* is the leading digit of its source, which takes all its values even if the last is partial."""
        d = self.detector
        lower = d.poly(x.lower)
        end = times(lower, d.poly(x.extent))
        at_least = d.context.is_at_least
        return at_least(plus(end, extent, -1), 0) and at_least(plus(plus(extent, end, -1), lower), 1)
