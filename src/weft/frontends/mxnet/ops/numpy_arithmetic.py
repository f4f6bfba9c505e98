"""Functions of `mxnet.np` on each element, those of two tensors, and sums and extremes along axes."""

from __future__ import annotations

import math
from collections.abc import Callable

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.ops.functions_and_logic import away_from_zero
from weft.frontends.mxnet.registry import Translation, translates
from weft.graph.builder import Operand, total
from weft.graph.composites.normalization import mean_and_variance
from weft.graph.composites.numerics import special_functions
from weft.graph.composites.numerics.special_functions import is_finite, is_negative
from weft.ir import ExprLike
from weft.support.dtypes import bool_, i64


def _scaled(by: float) -> Translation:
    return lambda c: c.add("mul", c.input(), c.scalar(by, c.input().dtype))


translates("degrees", "_npi_degrees")(_scaled(180 / math.pi))
translates("radians", "_npi_radians")(_scaled(math.pi / 180))


@translates("_npi_around")
def around(c: Call) -> Operand:
    """Rounded to a number of decimals, halves to even ones."""
    x = c.input()
    by = c.scalar(10.0 ** c.integer("decimals", 0), x.dtype)
    return c.add("div", c.add("round", c.add("mul", x, by)), by)


def _told(f: Callable[[Call, Operand], Operand]) -> Translation:
    return lambda c: f(c, c.input())


def _is_infinite(c: Call, x: Operand, sign: float) -> Operand:
    return c.add("equal", x, c.scalar(sign * math.inf, x.dtype))


translates("_npi_isnan")(_told(lambda c, x: c.add("is_nan", x)))
translates("_npi_isfinite")(_told(is_finite))
translates("_npi_isinf")(_told(lambda c, x: _is_infinite(c, c.add("abs", x), 1)))
translates("_npi_isposinf")(_told(lambda c, x: _is_infinite(c, x, 1)))
translates("_npi_isneginf")(_told(lambda c, x: _is_infinite(c, x, -1)))
translates("_npi_logical_not")(_told(lambda c, x: c.add("logical_not", c.cast(x, bool_))))


@translates("_npi_nan_to_num")
def nan_to_num(c: Call) -> Operand:
    """Numbers in place of those that are none and of infinities, the largest there are by default."""
    x = c.input()
    largest = 3.4028234663852886e38
    for name, default, found in (
        ("nan", 0.0, c.add("is_nan", x)),
        ("posinf", largest, _is_infinite(c, x, 1)),
        ("neginf", -largest, _is_infinite(c, x, -1)),
    ):
        by = default if c.text(name, "None") == "None" else c.number(name)
        x = c.add("where", found, c.scalar(by, x.dtype), x)
    return x


def _copysign(c: Call, a: Operand, b: Operand) -> Operand:
    size = c.add("abs", a)
    return c.add("where", is_negative(c, b), c.add("neg", size), size)


def _hypot(c: Call, a: Operand, b: Operand) -> Operand:
    large, small = (c.add(op, c.add("abs", a), c.add("abs", b)) for op in ("maximum", "minimum"))
    safe = c.add("where", c.add("equal", large, c.scalar(0, a.dtype)), c.scalar(1, a.dtype), large)
    ratio = c.add("div", small, safe)
    return c.add("mul", large, c.add("sqrt", c.add("add", c.scalar(1, a.dtype), c.add("square", ratio))))


def _ldexp(c: Call, a: Operand, b: Operand) -> Operand:
    return c.add("mul", a, c.add("power", c.scalar(2, a.dtype), c.cast(b, a.dtype)))


Two = Callable[[Call, Operand, Operand], Operand]


def _of_two(f: Two) -> Translation:
    return lambda c: f(c, c.input(0), c.input(1))


def _with_number(f: Two, *, first: bool) -> Translation:
    def translate(c: Call) -> Operand:
        x = c.input()
        k = c.scalar(c.number("scalar"), x.dtype)
        return f(c, k, x) if first else f(c, x, k)

    return translate


for _name, _two in {
    "arctan2": special_functions.atan2,
    "copysign": _copysign,
    "hypot": _hypot,
    "ldexp": _ldexp,
}.items():
    translates(f"_npi_{_name}")(_of_two(_two))
    if _name != "hypot":
        translates(f"_npi_{_name}_scalar")(_with_number(_two, first=False))
        translates(f"_npi_r{_name}_scalar")(_with_number(_two, first=True))
translates("broadcast_hypot", "_hypot")(_of_two(_hypot))
translates("_hypot_scalar")(_with_number(_hypot, first=False))


def _logic(op: str) -> Two:
    return lambda c, a, b: c.cast(c.add(op, c.cast(a, bool_), c.cast(b, bool_)), a.dtype)


for _name in ("and", "or", "xor"):
    translates(f"_logical_{_name}_scalar")(_with_number(_logic(f"logical_{_name}"), first=False))


@translates("_npi_argmax", "_npi_argmin")
def extreme(c: Call) -> Operand:
    """Where the largest, or the smallest, element is along an axis, or in all in a row."""
    x, keep, op = c.input(), c.flag("keepdims"), c.node.op.removeprefix("_npi_")
    if c.text("axis", "None") != "None":
        return c.cast(c.add(op, x, axis=c.axis_of(c.integer("axis"), x.rank), keepdims=keep), i64)
    found = c.add(op, c.reshape(x, [total(x.shape)]), axis=0, keepdims=False)
    return c.cast(c.reshape(found, [1] * x.rank if keep else []), i64)


@translates("_npi_var", "_npi_std")
def spread(c: Call) -> Operand:
    """The variance along axes, or its root; `ddof` is taken off the number of elements."""
    x = c.input()
    axes = c.axes(x.rank)
    _, made = mean_and_variance(c, x, axes)
    if less := c.integer("ddof", 0):
        count = c.cast(c.size(total([x.shape[a] for a in axes])), x.dtype)
        made = c.add("mul", made, c.add("div", count, c.add("sub", count, c.scalar(less, x.dtype))))
    made = c.add("sqrt", made) if c.node.op == "_npi_std" else made
    return made if c.flag("keepdims") else c.reshape(made, [s for d, s in enumerate(x.shape) if d not in axes])


@translates("_np_any", "_np_all")
def any_or_all(c: Call) -> Operand:
    """Tells whether any, or all, elements along axes are other than zero."""
    x, op = c.cast(c.input(), bool_), {"_np_any": "reduce_max", "_np_all": "reduce_min"}[c.node.op]
    found = c.add(op, c.cast(x, i64), axes=c.axes(x.rank), keepdims=c.flag("keepdims"))
    return c.cast(found, bool_)


@translates("nansum", "nanprod")
def without_nan(c: Call) -> Operand:
    """The sum, or the product, of the elements that are numbers."""
    x, op = c.input(), c.node.op.removeprefix("nan")
    rest = c.scalar(0 if op == "sum" else 1, x.dtype)
    numbers = c.add("where", c.add("is_nan", x), rest, x)
    made = c.add(f"reduce_{op}", numbers, axes=c.axes(x.rank), keepdims=c.flag("keepdims"))
    return made if made.rank else c.reshape(made, [1])


@translates("moments")
def moments(c: Call) -> tuple[Operand, Operand]:
    """The mean and the variance along axes."""
    x = c.input()
    axes = tuple([c.axis_of(a, x.rank) for a in c.ints("axes")]) if c.value("axes") else tuple(range(x.rank))
    mean, variance = mean_and_variance(c, x, axes)
    if not c.flag("keepdims"):
        kept: list[ExprLike] = [s for d, s in enumerate(x.shape) if d not in axes] or [1]
        mean, variance = c.reshape(mean, kept), c.reshape(variance, kept)
    return mean, variance


@translates("gammaln")
def gammaln(c: Call) -> Operand:
    """The logarithm of the gamma function's size."""
    return special_functions.lgamma(c, c.input())


@translates("gamma")
def gamma(c: Call) -> Operand:
    """The gamma function, whose sign below zero is another between any two integers."""
    x = c.input()
    half = c.add("mul", c.add("floor", x), c.scalar(0.5, x.dtype))
    is_odd = c.add("less", c.add("floor", half), half)
    is_turned = c.add("logical_and", is_odd, c.add("less", x, c.scalar(0, x.dtype)))
    size = c.add("exp", special_functions.lgamma(c, x))
    return c.add("where", is_turned, c.add("neg", size), size)


@translates("_contrib_quadratic")
def quadratic(c: Call) -> Operand:
    """`a x^2 + b x + c`."""
    x = c.input()
    by = [c.scalar(c.number(name, 0.0), x.dtype) for name in "abc"]
    return c.add("add", c.add("mul", x, c.add("add", c.add("mul", by[0], x), by[1])), by[2])


@translates("_contrib_round_ste")
def round_ste(c: Call) -> Operand:
    """The nearest integer, of two the one further from zero."""
    return away_from_zero(c, c.input())


@translates("_contrib_sign_ste")
def sign_ste(c: Call) -> Operand:
    """The sign."""
    return c.add("sign", c.input())


@translates("softmax_cross_entropy")
def softmax_cross_entropy(c: Call) -> Operand:
    """The sum over rows of the logarithms of the softmax at the labels, less than zero as they are, with another sign."""
    logs = c.add("log_softmax", c.input(0, rank=2), axis=1)
    at = c.reshape(c.cast(c.input(1), i64), [logs.shape[0], 1])
    found = c.add("gather_elements", logs, at, axis=1)
    return c.reshape(c.add("neg", c.add("reduce_sum", found, keepdims=False)), [1])
