"""Reductions over dimensions."""

from __future__ import annotations

import math

import numpy as np

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import CompileTimeConstant, Operand, Results, static_sizes, total
from weft.graph.composites.slicing import neighbours
from weft.support.dtypes import bool_, f64, i64, u8


def _reduction(op: str) -> Translation:
    def translate(c: Call) -> Results:
        x = c.cast(c.tensor(), c.dtype)
        numbers = c.cast(x, u8) if x.dtype is bool_ else x  # of which the extremes are reduced
        made = c.add(op, numbers, axes=c.axes("dim", x.rank), keepdims=bool(c.value("keepdim", False)))
        return c.cast(made, c.dtype)

    return translate


translates("sum", "sum.dim_IntList")(_reduction("reduce_sum"))
translates("mean", "mean.dim")(_reduction("reduce_mean"))
translates("amax", "max")(_reduction("reduce_max"))
translates("amin", "min")(_reduction("reduce_min"))
translates("prod", "prod.dim_int")(_reduction("reduce_prod"))


@translates("linalg_vector_norm")
def vector_norm(c: Call) -> Results:
    """The norm of an order over dimensions: the root of the sum of powers of lengths, or an extreme of lengths."""
    return norm_of(c, c.cast(c.tensor(), c.dtype))


def norm_of(c: Call, x: Operand) -> Operand:
    """Returns the norms of real numbers, by the arguments of the call."""
    order = float(c.value("ord", 2))
    over = {"axes": c.axes("dim", x.rank), "keepdims": bool(c.value("keepdim", False))}
    if order in (1, 2):
        return c.add("reduce_l1" if order == 1 else "reduce_l2", x, **over)
    if order == 0:
        is_zero = c.add("equal", x, c.scalar(0, x.dtype))
        return c.add("reduce_sum", c.cast(c.add("logical_not", is_zero), x.dtype), **over)
    lengths = c.add("abs", x)
    if math.isinf(order):
        return c.add("reduce_max" if order > 0 else "reduce_min", lengths, **over)
    total_of_powers = c.add("reduce_sum", c.add("power", lengths, c.scalar(order, x.dtype)), **over)
    return c.add("power", total_of_powers, c.scalar(1 / order, x.dtype))


def _quantifier(op: str) -> Translation:
    """Tells whether any, or every, element is not zero."""

    def translate(c: Call) -> Results:
        x = c.cast(c.cast(c.tensor(), bool_), u8)
        made = c.add(op, x, axes=c.axes("dim", x.rank), keepdims=bool(c.value("keepdim", False)))
        return c.cast(c.cast(made, bool_), c.dtype)

    return translate


translates("any", "any.dim", "any.dims")(_quantifier("reduce_max"))
translates("all", "all.dim", "all.dims")(_quantifier("reduce_min"))


def _place(op: str) -> Translation:
    """Where the largest or smallest element along a dimension is, or in the flat tensor."""

    def translate(c: Call) -> Results:
        x = c.tensor()
        keepdims = bool(c.value("keepdim", False))
        if c.arguments.get("dim") is None or x.rank == 0:
            place = c.add(op, c.reshape(x, [total(x.shape)]), axis=0, keepdims=False, last=False)
            return c.reshape(place, [1] * x.rank) if keepdims else place
        return c.add(op, x, axis=c.axis("dim", x.rank), keepdims=keepdims, last=False)

    return translate


translates("argmax")(_place("argmax"))
translates("argmin")(_place("argmin"))


def _running(op: str) -> Translation:
    """The sums or the products of the elements up to each along a dimension."""

    def translate(c: Call) -> Results:
        x = c.cast(c.tensor(), c.dtype)
        if x.rank == 0:
            return x
        return c.add(op, x, axis=c.axis("dim", x.rank), exclusive=False, reverse=False)

    return translate


translates("cumsum")(_running("cumsum"))
translates("cumprod")(_running("cumprod"))


@translates("diff")
def diff(c: Call) -> Results:
    """The differences of neighbours along a dimension, *n* times; of truth values, whether they differ."""
    x = c.tensor()
    d = c.axis("dim", x.rank)
    parts = [p for p in (c.optional("prepend"), x, c.optional("append")) if p is not None]
    x = parts[0] if len(parts) == 1 else c.add("concat", *[c.cast(p, c.dtype) for p in parts], axis=d)
    for _ in range(c.integer("n", 1)):
        x = c.add("logical_xor" if c.dtype is bool_ else "sub", *neighbours(c, x, d))
    return x


@translates("logcumsumexp")
def logcumsumexp(c: Call) -> Results:
    """The logarithms of the sums of the exponentials up to each element.

    Each is of its own largest element, so that none underflows that counts: n^2 operations for n elements.
    """
    x = c.tensor()
    if x.rank == 0:
        return x
    axis = c.axis("dim", x.rank)
    size = x.shape[axis]
    places = c.add("range", start=0, size=size, step=1)
    seen = c.add("less_equal", places, c.reshape(places, [size, 1]))
    rows = c.reshape(x, [*x.shape[:axis], 1, *x.shape[axis:]])
    given = c.add(
        "where", c.reshape(seen, [size, size, *[1] * (x.rank - axis - 1)]), rows, c.scalar(-math.inf, x.dtype)
    )
    most = c.add("reduce_max", given, axes=(axis + 1,), keepdims=True)
    base = c.add("where", c.add("is_inf", most), c.scalar(0, x.dtype), most)
    sums = c.add("reduce_sum", c.add("exp", c.add("sub", given, base)), axes=(axis + 1,), keepdims=True)
    return c.reshape(c.add("add", c.add("log", sums), base), x.shape)


@translates("var.correction", "var.dim", "var")
def var(c: Call) -> Results:
    """The mean square of the distance to the mean; the divisor is the number of elements, less a correction."""
    return variance(c, c.tensor(), "dim", keepdims=bool(c.value("keepdim", False)))[0]


@translates("prims.var.default")
def prims_var(c: Call) -> Results:
    """The same, as decompositions have it."""
    return variance(c, c.tensor("inp"), "dims", keepdims=False)[0]


@translates("var_mean.correction")
def var_mean(c: Call) -> Results:
    """The variance, and the mean."""
    return variance(c, c.tensor(), "dim", keepdims=bool(c.value("keepdim", False)))


@translates("histc")
def histc(c: Call) -> Results:
    """How many elements lie in each of a number of equal intervals, from one bound to another, or over all elements."""
    bins, bounds = c.integer("bins", 100), (c.value("min", 0), c.value("max", 0))
    x = c.cast(c.reshape(c.tensor(), [total(c.tensor().shape)]), f64)
    low: Operand = c.scalar(bounds[0], f64)
    high: Operand = c.scalar(bounds[1], f64)
    if bounds[0] == bounds[1]:
        low, high = (c.add(op, x, axes=(0,), keepdims=False) for op in ("reduce_min", "reduce_max"))
        same = c.add("equal", low, high)
        low, high = (c.add("where", same, c.add("add", v, c.scalar(d, f64)), v) for v, d in ((low, -1), (high, 1)))
    place = c.add("mul", c.add("div", c.add("sub", x, low), c.add("sub", high, low)), c.scalar(bins, f64))
    inside = c.add("logical_and", c.add("less_equal", low, x), c.add("less_equal", x, high))
    place = c.add("minimum", c.add("floor", place), c.scalar(bins - 1, f64))
    place = c.add("where", inside, place, c.scalar(-1, f64))
    numbers = CompileTimeConstant(np.arange(bins, dtype=np.float64)[:, None])
    counted = c.cast(c.add("equal", numbers, place), i64)
    return c.cast(c.add("reduce_sum", counted, axes=(1,), keepdims=False), c.dtype)


def variance(c: Call, x: Operand, name: str, *, keepdims: bool) -> tuple[Operand, Operand]:
    """Returns the variance and the mean over the axes in the argument *name*."""
    axes = c.axes(name, x.rank)
    correction = c.value("correction", 1 if c.value("unbiased", True) else 0)
    mean = c.add("reduce_mean", x, axes=axes, keepdims=True)
    spread = c.add("square", c.add("sub", x, mean))
    shape = mean.shape if keepdims else [s for d, s in enumerate(x.shape) if d not in axes]
    count = [x.shape[d] for d in axes]
    sizes = static_sizes(count)
    if sizes is not None:
        divisor: Operand = c.scalar(max(math.prod(sizes) - correction, 0), x.dtype)
    else:
        divisor = c.cast(c.size(total(count)), x.dtype)
        divisor = c.add("sub", divisor, c.scalar(correction, x.dtype))
    made = c.add("div", c.add("reduce_sum", spread, axes=axes, keepdims=keepdims), divisor)
    return made, c.reshape(mean, shape)
