"""The bijection analysis of the map from loops to a block's axes: does each instance of the block run exactly once?

Each binding is normalised to `base + sum(scale * ((source // lower) % extent))` by `ir.affine.iter_sum`. The map is bijective iff
the digits taken of each source tile it, and the scales of each axis are those of a mixed radix.

    i = io*4 + ii        for io in range((n+3)//4), ii in range(4), where io*4 + ii < n      bijective
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weft.ir.affine.iter_radix import judge
from weft.ir.affine.iter_sum import DigitSum, Fused, NotAffine, Reader, Source, Split, loops_of
from weft.ir.bounds.bounds import Bounds
from weft.ir.bounds.polynomial import Poly, plus, poly_to_expr, times
from weft.ir.expr.base import INDEX, Expr, Var
from weft.ir.expr.constructors import ONE, index
from weft.ir.expr.rewrite import free_vars
from weft.ir.simplifier.simplify import Simplifier

__all__ = ["AxisMap", "Fused", "IterMap", "Split", "detect_iter_map"]


@dataclass(frozen=True, slots=True)
class AxisMap:
    """The binding of one axis: `base + sum(scale * digit)`, the loops it depends on, and whether it covers the axis's extent."""

    terms: tuple[tuple[Expr, Split], ...]
    base: Expr
    loops: frozenset[Var]
    is_full: bool


@dataclass(frozen=True, slots=True)
class IterMap:
    """A map from loop iterations to instances of a block; a property that cannot be proved is taken not to hold.

    *bijective*: each instance runs once; *surjective*: at least once; *injective*: at most once, and there may be iterations that
    miss the axes' extents.
    """

    axes: tuple[AxisMap, ...]
    bijective: bool
    surjective: bool
    injective: bool


def detect_iter_map(
    bindings: Sequence[Expr],
    loops: Mapping[Var, Expr],
    predicate: Expr,
    axis_extents: Sequence[Expr],
    bounds: Bounds,
) -> IterMap | None:
    """Analyses the map from *loops* (extents, in order of nesting; each counts from 0) to axes by their *bindings*.

    Only iterations where *predicate* holds count; *bounds* has the ranges of the other variables. None if a binding is not
    quasi-affine, or if the predicate does more than bound sums of loops.
    """
    memo = bounds.memo_for("iteration map")
    key = (tuple(bindings), tuple(loops.items()), predicate, tuple(axis_extents))
    if key not in memo:
        memo[key] = _detect(bindings, loops, predicate, axis_extents, bounds)
    found: IterMap | None = memo[key]
    return found


def _detect(
    bindings: Sequence[Expr],
    loops: Mapping[Var, Expr],
    predicate: Expr,
    axis_extents: Sequence[Expr],
    bounds: Bounds,
) -> IterMap | None:
    plain = judge(bindings, loops, predicate, axis_extents)
    if plain is not None:
        axes = tuple([_plain_axis(terms, base, full, loops) for terms, base, full in plain.axes])
        return IterMap(axes, plain.bijective, plain.surjective, plain.injective)
    read = _read(bindings, loops, predicate, bounds)
    if read is None:
        return None
    reader, sums = read
    axes = tuple([_axis(s, reader.poly(e), reader) for s, e in zip(sums, axis_extents, strict=True)])
    uses = _Uses(reader, [s for axis in sums for _, s in axis.terms])
    is_full = all(a.is_full for a in axes)
    exact = uses.are_exact()  # then they are distinct and onto, too
    injective = (exact or uses.are_distinct()) and all(_is_positional(s, reader) for s in sums)
    return IterMap(axes, is_full and exact, is_full and (exact or uses.are_onto()), injective)


def _read(
    bindings: Sequence[Expr], loops: Mapping[Var, Expr], predicate: Expr, bounds: Bounds
) -> tuple[Reader, list[DigitSum]] | None:
    """Returns each of *bindings* as a sum of digits, with the reader that parsed them.

    None for loops whose extents depend on one another, bindings that are not quasi-affine, and other predicates than limits.
    """
    if any(v in loops for e in loops.values() for v in free_vars(e)):
        return None
    for v, extent in loops.items():
        bounds = bounds.bind(v, 0, extent - 1)
    reader = Reader(loops, Simplifier(bounds))
    try:
        reader.read_predicate(predicate)
        return reader, [reader.parse(reader.poly(b)) for b in bindings]
    except NotAffine:
        return None


def _plain_axis(terms: tuple[tuple[int, Var], ...], base: int, is_full: bool, loops: Mapping[Var, Expr]) -> AxisMap:
    digits = tuple([(index(scale), Split(v, ONE, loops[v])) for scale, v in terms])
    return AxisMap(digits, index(base), frozenset([v for _, v in terms]), is_full)


def _axis(s: DigitSum, extent: Poly, reader: Reader) -> AxisMap:
    count = reader.radix(s.terms)
    is_full = not s.base and count is not None and reader.is_equal(count, extent)
    loops = frozenset(v for _, d in s.terms for v in loops_of(d.source))
    return AxisMap(s.terms, poly_to_expr(s.base, INDEX), loops, is_full)


def _is_positional(s: DigitSum, reader: Reader) -> bool:
    """Answers whether each scale exceeds the largest sum of the terms of smaller scale, so that a value determines its digits."""
    rest = list(s.terms)
    top: Poly = {}
    while rest:
        smallest = next((t for t in rest if all(_is_below(t[0], u[0], reader) for u in rest)), None)
        if smallest is None or not reader.context.is_at_least(plus(reader.poly(smallest[0]), top, -1), 1):
            return False
        rest.remove(smallest)
        reach = plus(reader.poly(smallest[1].extent), {(): -1})
        top = plus(top, times(reader.poly(smallest[0]), reach))
    return True


def _is_below(a: Expr, b: Expr, reader: Reader) -> bool:
    return a is b or reader.context.is_at_least(plus(reader.poly(b), reader.poly(a), -1), 0)


class _Uses:
    """Which digits of each source the axes use."""

    def __init__(self, reader: Reader, digits: list[Split]) -> None:
        self.reader = reader
        self.by_source: dict[Source, list[Split]] = {v: [] for v in reader.loops}
        pending = [self._of_smaller_sum(d, digits) for d in digits]
        for fused in reader.bounded:
            self._open(fused, pending)
        while pending:
            digit = pending.pop()
            if digit.source not in self.by_source and isinstance(digit.source, Fused):
                self._open(digit.source, pending)
            self.by_source[digit.source].append(digit)
        for source in list(self.by_source):
            if isinstance(source, Fused):
                self._lift(source)

    def _lift(self, fused: Fused) -> None:
        """Reads digits of the leading term of a sum, `i0 // 4` beside `i0*16 + i1`, as the sum's: `(i0*16 + i1) // 64`.

        Digits above that term, `i0 // 4` beside `i0 % 4 * 16 + i1`, are none of the sum.
        """
        reader = self.reader
        scale, top = next(t for t in fused.terms if all(_is_below(u[0], t[0], reader) for u in fused.terms))
        if isinstance(top.source, Fused) or top.reversed or top.lower is not ONE:
            return
        within = [x for x in self.by_source[top.source] if x is not top and not self._is_above(x, top)]
        self.by_source[top.source] = [x for x in self.by_source[top.source] if not any(x is y for y in within)]
        for x in within:
            lower = poly_to_expr(times(reader.poly(x.lower), reader.poly(scale)), INDEX)
            self.by_source[fused].append(replace(x, source=fused, lower=lower))

    def _of_smaller_sum(self, x: Split, digits: Sequence[Split]) -> Split:
        """Reads `(i*4 + j) % 6` beside `(i % 3*4 + j) // 6` as a digit of that sum: `% 3` drops a multiple of 12."""
        if x.lower is ONE and not x.reversed and isinstance(x.source, Fused):
            for d in digits:
                if (
                    isinstance(d.source, Fused)
                    and d.source != x.source
                    and self._is_congruent(d.source, x.source, x.extent)
                ):
                    return replace(x, source=d.source)
        return x

    def _is_congruent(self, small: Fused, large: Fused, modulus: Expr) -> bool:
        """Answers whether *small* has fewer digits than *large*, if at all, and differs by multiples of *modulus* only."""
        reader = self.reader
        by = reader.poly(modulus)
        return len(small.terms) == len(large.terms) and all(
            s is t
            and replace(d, extent=e.extent) == e
            and (d.extent is e.extent or self._drops_multiples(reader.poly(s), d, e, by))
            for (s, d), (t, e) in zip(small.terms, large.terms, strict=True)
        )

    def _drops_multiples(self, scale: Poly, small: Split, large: Split, by: Poly) -> bool:
        """Answers whether *scale* times *large*, from where *small* begins, is that times *small* but for multiples of *by*."""
        reader, extent = self.reader, self.reader.poly(small.extent)
        goes_on = reader.is_leading(large) or reader.is_multiple(reader.poly(large.extent), extent)
        return goes_on and reader.is_multiple(times(scale, extent), by)

    def _is_above(self, x: Split, y: Split) -> bool:
        """Answers whether *x* begins where *y*, of the same source and from its first digit on, ends, or higher."""
        return self.reader.context.is_at_least(plus(self.reader.poly(x.lower), self.reader.poly(y.extent), -1), 0)

    def _open(self, fused: Fused, pending: list[Split]) -> None:
        """A fused source uses its own digits once, however many of its digits are used."""
        if fused not in self.by_source:
            self.by_source[fused] = []
            pending += [d for _, d in fused.terms]

    def are_exact(self) -> bool:
        """Answers whether the used digits of each source tile it: different iterations reach different instances."""
        return all(self._tiles(source, digits) for source, digits in self.by_source.items())

    def are_distinct(self) -> bool:
        """Answers whether the used digits of each source determine its value."""
        return all(self._tiles(source, digits, may_exceed=True) for source, digits in self.by_source.items())

    def _tiles(self, source: Source, digits: list[Split], *, may_exceed: bool = False) -> bool:
        """Answers whether digits follow one another up to the source's extent, or (*may_exceed*) at least that far."""
        count: Poly = {(): 1}
        rest = list(digits)
        d = self.reader
        while rest:
            digit = next((x for x in rest if d.is_equal(d.poly(x.lower), count)), None)
            if digit is None:
                return False
            rest.remove(digit)
            count = times(count, d.poly(digit.extent))
        extent = self.reader.extent_of(source)
        return d.context.is_at_least(plus(count, extent, -1), 0) if may_exceed else d.is_equal(count, extent)

    def are_onto(self) -> bool:
        """Answers whether the used digits are independent: together they take all combinations of values."""
        return all(self._is_independent(source, digits) for source, digits in self.by_source.items())

    def _is_independent(self, source: Source, digits: list[Split]) -> bool:
        d = self.reader
        extent = self.reader.extent_of(source)
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
        d = self.reader
        end = times(d.poly(x.lower), d.poly(x.extent))
        return d.is_multiple(d.poly(x.lower), count) and all(
            d.is_multiple(d.poly(y.lower), end) for y in rest if y is not x
        )

    def _is_top(self, x: Split, extent: Poly) -> bool:
        """Answers whether *x* is the leading digit of its source, which takes all its values even if the last is partial."""
        d = self.reader
        lower = d.poly(x.lower)
        end = times(lower, d.poly(x.extent))
        at_least = d.context.is_at_least
        return at_least(plus(end, extent, -1), 0) and at_least(plus(plus(extent, end, -1), lower), 1)
