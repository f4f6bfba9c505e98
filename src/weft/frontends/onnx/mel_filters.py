"""The weights of mel filters, for numbers of bins and frequencies that only a run tells."""

from __future__ import annotations

import math
from typing import Final

from weft.graph.builder import Builder, Operand
from weft.graph.composites.run_time.number import Number
from weft.ir import INDEX, Expr, as_expr
from weft.support.dtypes import f64, i64

_PER_DECADE: Final = 2595.0
_CORNER: Final = 700.0
"""The constants of the mel scale: 2595 log10(1 + frequency / 700) (O'Shaughnessy, 1987)."""


def late_mel_filters(b: Builder, bins: Operand, length: Operand, rate: Operand, low: Operand, high: Operand) -> Operand:
    """Returns triangular filters [frequencies, bins], as doubles, for a transform of a *length*.

    They reach from the frequency *low* to *high*, of signals of a sample *rate*.
    """
    count = as_expr(b.late_number(bins, "bins", "the number of bins"), INDEX)
    size = as_expr(b.late_number(length, "length", "the transform's length"), INDEX)
    rates = (Number(b, b.reshape(b.cast(v, f64), ())) for v in (rate, low, high))
    places = _corners(b, count, size, *rates)
    whole = b.cast(places.x, i64)
    for op in ("reduce_min", "reduce_max"):
        place = as_expr(
            b.late_number(b.add(op, whole, axes=(0,), keepdims=True), "place", "where a filter ends"), INDEX
        )
        b.require(place <= size // 2, "its filters reach to {0}, beyond {1}", place, size // 2)
    left, centre, right = (_part(b, places, k, count) for k in range(3))
    k = Number(b, b.cast(b.add("range", start=0, size=size // 2 + 1, step=1), f64)).as_column()
    zero, one = Number(b, b.scalar(0.0, f64)), Number(b, b.scalar(1.0, f64))
    rising, falling = (k - left) / (centre - left).or_one(), (right - k) / (right - centre).or_one()
    inside = b.add("logical_and", left.with_("less_equal", k).x, k.with_("less", right).x)
    slope = k.at_most(centre, rising, falling)
    weights = b.add("where", inside, slope.x, zero.x)
    return b.add("where", k.with_("equal", centre).x, one.x, weights)


def _corners(b: Builder, bins: Expr, length: Expr, rate: Number, low: Number, high: Number) -> Number:
    """Returns the numbers of the frequencies at which filters begin and end: of bins + 2, equally far apart on the mel scale."""
    first, last = (((f / _CORNER + 1.0).of("log")) * (_PER_DECADE / math.log(10)) for f in (low, high))
    steps = Number(b, b.cast(b.size(bins + 2), f64))
    k = Number(b, b.cast(b.add("range", start=0, size=bins + 2, step=1), f64))
    mels = k * (last - first) / steps + first
    frequencies = ((mels * (math.log(10) / _PER_DECADE)).of("exp") - 1.0) * _CORNER
    return (frequencies * (Number(b, b.cast(b.size(length), f64)) + 1.0) / rate).of("floor")


def _part(b: Builder, x: Number, begin: int, count: Expr) -> Number:
    """Returns *count* elements of a vector from *begin* on."""
    return Number(b, b.add("slice", x.x, starts=(begin,), ends=(count + begin,), axes=(0,), steps=(1,), inside=True))
