"""Maps from the indices of a buffer to those of the same elements in another layout.

    j, k -> j // 16, k // 4, j % 16, k % 4

A map is a text, so that a trace can hold it. It must be one-to-one on a box that holds the buffer: each index is used up by
digits (`//`, `%`), and each result counts digits in a mixed radix. Where an index is cut by a number that does not divide its
size, the box is larger than the buffer: the rest is padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from weft.ir import (
    ONE,
    TRUE,
    ZERO,
    Bounds,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Fused,
    IterMap,
    Source,
    Split,
    Var,
    all_of,
    ceil_div,
    detect_iter_map,
    extremes,
    free_vars,
    index,
    parse_expr,
    post_order,
    prove,
    simplify,
    substitute,
)
from weft.schedule.cursors.state import refuse
from weft.support.errors import ParseError


@dataclass(frozen=True)
class IndexMap:
    """A one-to-one map of the indices of a buffer of some *shape*: from indices in *box* to indices in the shape *to*."""

    text: str
    inputs: tuple[Var, ...]
    outputs: tuple[Expr, ...]
    shape: tuple[Expr, ...]
    box: tuple[Expr, ...]
    to: tuple[Expr, ...]
    digits: IterMap

    @property
    def is_padded(self) -> bool:
        """Whether the new layout has elements that the old one lacks."""
        return self.box != self.shape

    def __call__(self, indices: Sequence[Expr], bounds: Bounds) -> tuple[Expr, ...]:
        """Returns where the element at *indices* is in the new layout."""
        values = dict(zip(self.inputs, indices, strict=True))
        return tuple([simplify(substitute(o, values), bounds) for o in self.outputs])

    def inverse(self, indices: Sequence[Expr], bounds: Bounds) -> tuple[Expr, ...]:
        """Returns where the element at *indices* of the new layout is in the old one."""
        found: dict[Source, Expr] = {}
        for axis, i in zip(self.digits.axes, indices, strict=True):
            for scale, digit in axis.terms:
                _add_digit(found, digit, scale, i, others=len(axis.terms) > 1)
        while any(isinstance(s, Fused) for s in found):
            fused = next(
                s for s in found if isinstance(s, Fused) and not any(_is_in(s, t) for t in found if t is not s)
            )
            value = simplify(found.pop(fused), bounds)
            for scale, digit in fused.terms:
                _add_digit(found, digit, scale, value, others=len(fused.terms) > 1)
        return tuple([simplify(found.get(v, ZERO), bounds) for v in self.inputs])

    def is_inside(self, indices: Sequence[Expr], bounds: Bounds) -> Expr:
        """Returns the condition that *indices* of the old layout are not padding."""
        return all_of([i < s for i, s in zip(indices, self.shape, strict=True) if not prove(i < s, bounds)])


def _add_digit(found: dict[Source, Expr], digit: Split, scale: Expr, value: Expr, *, others: bool) -> None:
    """Adds to the value of a source the contribution of one of its digits, found in *value* at *scale*."""
    d = value if scale is ONE else value // scale
    d = d % digit.extent if others else d
    d = digit.extent - ONE - d if digit.reversed else d
    found[digit.source] = found.get(digit.source, ZERO) + d * digit.lower


def _is_in(source: Fused, other: Source) -> bool:
    """Tells whether digits of *source* are among those that *other* is a sum of."""
    return isinstance(other, Fused) and any(d.source == source or _is_in(source, d.source) for _, d in other.terms)


def parse_index_map(text: str, shape: Sequence[Expr], bounds: Bounds) -> IndexMap:
    """Reads a map of the indices of a buffer of *shape*; refuses one that is not one-to-one."""
    inputs, outputs = _read_formulas(text, len(shape))
    box = tuple([_box_size(v, s, outputs) for v, s in zip(inputs, shape, strict=True)])
    to = _sizes_of(outputs, inputs, box, bounds)
    made = detect_iter_map(outputs, dict(zip(inputs, box, strict=True)), TRUE, to, bounds)
    if made is None or not made.bijective:
        refuse(
            f"`{text}` is not one-to-one on a buffer of shape ({', '.join([str(s) for s in shape])})",
            hint="each index is used up by digits: i // 16 goes with i % 16",
        )
    return IndexMap(text, inputs, outputs, tuple(shape), box, to, made)


def _read_formulas(text: str, rank: int) -> tuple[tuple[Var, ...], tuple[Expr, ...]]:
    """Returns the variables of a map of *rank* indices and the formulas of its results; refuses a text that is none."""
    left, arrow, right = text.partition("->")
    names = [n.strip() for n in left.split(",")]
    if not arrow or len(names) != rank or not all(n.isidentifier() for n in names):
        refuse(f"`{text}` does not map {rank} indices", None, "write a map such as i, j -> j // 16, i, j % 16")
    inputs = tuple([Var(n) for n in names])
    try:
        scope = dict(zip(names, inputs, strict=True))
        return inputs, tuple([simplify(parse_expr(part, scope)) for part in _parts(right)])
    except ParseError as e:
        refuse(f"`{text}` can't be read: {e.message}", hint="write a map such as i, j -> j // 16, i, j % 16")


def _sizes_of(outputs: Sequence[Expr], inputs: Sequence[Var], box: Sequence[Expr], bounds: Bounds) -> tuple[Expr, ...]:
    """Returns how many values each of *outputs* counts from 0 while *inputs* run over *box*; 0 for one with other ends."""
    for v, size in zip(inputs, box, strict=True):
        bounds = bounds.bind(v, ZERO, size - ONE)
    ends = [extremes(o, inputs, bounds) for o in outputs]
    return tuple([ZERO if e is None or e[0] is not ZERO else simplify(e[1] + ONE, bounds) for e in ends])


def _parts(text: str) -> list[str]:
    """Splits at the commas that are outside of parentheses."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def _box_size(v: Var, size: Expr, outputs: Sequence[Expr]) -> Expr:
    """Returns *size* rounded up to a multiple of all divisors of the index *v*."""
    unit = 1
    for o in outputs:
        for n in post_order(o):
            if isinstance(n, FloorDiv | FloorMod) and isinstance(n.b, Const) and free_vars(n.a) == [v]:
                unit = lcm(unit, int(n.b.value))
    return size if unit == 1 else simplify(ceil_div(size, index(unit)) * unit)
