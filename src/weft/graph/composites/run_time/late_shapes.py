"""Shapes that depend on the values of inputs: operators whose sizes are computed by the model, and read as late sizes.

    y = Slice(x, starts, ends)     becomes     begin, size = ...; late sizes b, n; y = slice(x, starts=(b,), ends=(b + n,))

Sizes are computed by the graph's own operators on small vectors of integers. Where a size must equal another that is known, that
other is used, and a condition checks it when the model runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
from weft.graph.composites.sequences import element
from weft.ir import INDEX, ONE, Const, Expr, as_expr, eq
from weft.ops import check_rank, same_size
from weft.support.dtypes import f64, i64


def reshape_late(b: Builder, x: Operand, shape: Operand, *, keeps_zero: bool) -> Operand:
    """Returns *x* in the shape that a vector says: -1 is inferred, and 0 keeps a dimension unless it *keeps_zero*."""
    rank = _length(b, shape, "the new shape")
    wanted = b.cast(shape, i64)
    if not keeps_zero:
        own = b.vector([*x.shape, *[ONE] * rank][:rank])
        wanted = b.add("where", b.add("equal", wanted, b.scalar(0, i64)), own, wanted)
    open_ = b.add("equal", wanted, b.scalar(-1, i64))
    given = b.add("where", open_, b.scalar(1, i64), wanted)
    product = b.add("reduce_prod", given, axes=(0,), keepdims=True)
    inferred = b.add("div", b.vector([total(x.shape)]), b.add("maximum", product, b.scalar(1, i64)))
    sizes = b.late_sizes(b.add("where", open_, inferred, wanted), "size", "a size of the new shape")
    before, after = total(x.shape), total(sizes)
    elements, made = (as_expr(n, INDEX) for n in (before, after))
    b.require(eq(elements, made), "{0} elements do not fill the {1} of its new shape", elements, made)
    return b.add("reshape_checked", x, shape=tuple(sizes))


def with_sizes(b: Builder, x: Operand, known: Sequence[int | None]) -> Operand:
    """Returns *x* with the sizes that are *known* of it in place of symbolic ones, which a run checks."""
    sizes = [s if n is None or isinstance(s, Const) else as_expr(n, INDEX) for s, n in zip(x.shape, known, strict=True)]
    for d, (own, size) in enumerate(zip(x.shape, sizes, strict=True)):
        if own is not size:
            b.require(eq(own, size), f"dimension {d} of its result is {{0}}, and {{1}} by its declaration", own, size)
    return x if tuple(sizes) == x.shape else b.add("tie_shape", x, shape=tuple(sizes))


def expand_late(b: Builder, x: Operand, shape: Operand) -> Operand:
    """Returns *x* broadcast together with the shape that a vector says."""
    rank = _length(b, shape, "the shape to expand to")
    sizes = b.late_sizes(shape, "size", "a size to expand to")
    own = [ONE] * (rank - x.rank) + list(x.shape)
    wanted = [ONE] * (x.rank - rank) + [as_expr(s, INDEX) for s in sizes]
    target = [_broadcast(b, s, w, d) for d, (s, w) in enumerate(zip(own, wanted, strict=True))]
    return b.add("expand", x, shape=tuple(target))


def _broadcast(b: Builder, own: Expr, wanted: Expr, d: int) -> Expr:
    """Returns the size that a dimension is broadcast to: one that is not known to be 1 stays, which is checked."""
    if own is ONE or same_size(own, wanted):
        return wanted
    if wanted is not ONE:
        b.require(
            eq(wanted, 1) | eq(wanted, own), f"dimension {d} is {{0}}, which does not broadcast to {{1}}", own, wanted
        )
    return own


def slice_late(b: Builder, x: Operand, axes: Sequence[int], starts: Operand, ends: Operand, steps: Operand) -> Operand:
    """Returns ranges along *axes*, from and to where vectors say, by *steps* of either sign.

    Bounds beyond a dimension are moved to its end.
    """
    count = len(axes)
    by = b.cast(steps, i64)
    sizes, zero, one = b.vector([x.shape[d] for d in axes]), b.vector([0] * count), b.vector([1] * count)
    _check_steps(b, by)
    back = b.cast(b.add("less", by, zero), i64)
    last = b.add("sub", sizes, back)  # beyond the last element of a slice forwards, the last of one backwards
    first = b.add("neg", back)
    begin, end = (_clamped(b, v, sizes, low, last) for v, low in ((starts, zero), (ends, first)))
    span = b.add("sub", end, begin)
    sign = b.add("sub", one, b.add("mul", back, b.scalar(2, i64)))
    rounded = b.add("add", span, b.add("sub", by, sign))
    divisor = b.add("where", b.add("equal", by, zero), one, by)  # before it is refused
    lengths = b.late_sizes(b.add("maximum", b.add("div", rounded, divisor), zero), "length", "the size of a slice")
    if not isinstance(by, CompileTimeConstant):
        for k, (d, length) in enumerate(zip(axes, lengths, strict=True)):
            x = _strided(b, x, d, length, element(b, begin, 0, k), element(b, by, 0, k))
        return x
    offsets = b.late_sizes(b.add("add", begin, one), "begin", "where a slice begins, from one")
    for d, length, offset, step in zip(axes, lengths, offsets, by.array.tolist(), strict=True):
        if step == 1:
            x = b.add("slice", x, starts=(offset - 1,), ends=(offset - 1 + length,), axes=(d,), steps=(1,), inside=True)
        else:
            x = b.add("gather", x, b.add("range", start=offset - 1, size=length, step=step), axis=d)
    return x


def _check_steps(b: Builder, by: Operand) -> None:
    """Refuses steps of zero, when the model runs where they are known only then."""
    if isinstance(by, CompileTimeConstant):
        return
    smallest = b.add("reduce_min", b.add("abs", by), axes=(0,), keepdims=True)
    least = as_expr(b.late_number(smallest, "step", "the smallest step"), INDEX)
    b.require(least >= 1, "a step of the slice is {0}", least)


def _strided(b: Builder, x: Operand, d: int, length: int | Expr, begin: Operand, step: Operand) -> Operand:
    """Returns *length* elements along dimension *d* from *begin* on by *step*, two numbers that only a run tells."""
    places = b.add("add", b.add("mul", b.add("range", start=0, size=length, step=1), step), begin)
    return b.add("gather", x, _padded_index(b, places, b.size(x.shape[d]), "edge"), axis=d)


def _clamped(b: Builder, position: Operand, sizes: Operand, low: Operand, high: Operand) -> Operand:
    """Returns positions, negative ones counted from the end, moved inside of their limits."""
    at = b.cast(position, i64)
    at = b.add("where", b.add("less", at, b.scalar(0, i64)), b.add("add", at, sizes), at)
    return b.add("minimum", b.add("maximum", at, low), high)


def range_late(b: Builder, start: Operand, limit: Operand, step: Operand) -> Operand:
    """Returns the numbers from *start* to before *limit* by *step*, three numbers."""
    dtype = start.dtype
    if _is(start, 0) and _is(step, 1) and (known := b.known_size(limit)) is not None:
        return b.cast(b.add("range", start=0, size=known, step=1), dtype)
    begin, end, by = (b.cast(b.reshape(v, ()), f64 if dtype.is_float else i64) for v in (start, limit, step))
    span = b.add("sub", end, begin)
    steps = _float_steps(b, span, by) if dtype.is_float else _integer_steps(b, span, by)
    count = b.add("maximum", steps, b.scalar(0, i64))
    size = b.late_number(count, "count", "the size of a range")
    places = b.cast(b.add("range", start=0, size=size, step=1), begin.dtype)
    return b.cast(b.add("add", b.add("mul", places, by), begin), dtype)


TOO_MANY: Final = 1 << 62
"""Steps that an i64 has, and no memory."""


def _float_steps(b: Builder, span: Operand, by: Operand) -> Operand:
    """Returns how many steps a *span* has, rounded up."""
    return b.cast(b.add("minimum", b.add("ceil", b.add("div", span, by)), b.scalar(TOO_MANY, f64)), i64)


def _integer_steps(b: Builder, span: Operand, by: Operand) -> Operand:
    """Does the same for integers, by arithmetic of integers alone: not all machines have f64."""
    zero, one = b.scalar(0, i64), b.scalar(1, i64)
    never = b.add("equal", by, zero)
    step = b.add("where", never, one, by)
    rest = b.add("floor_mod", span, step)
    whole = b.add("div", b.add("sub", span, rest), step)
    steps = b.add("add", whole, b.add("where", b.add("equal", rest, zero), zero, one))
    return b.add("where", never, b.scalar(TOO_MANY, i64), steps)


def _is(x: Operand, value: int) -> bool:
    return isinstance(x, CompileTimeConstant) and not x.symbolic and bool((x.array == value).all())


def tile_late(b: Builder, x: Operand, repeats: Operand) -> Operand:
    """Returns *x* repeated along each dimension, as often as a vector says."""
    if _length(b, repeats, "the repeats") != x.rank:
        b.fail(f"it repeats {x!r} along {repeats!r}")
    for d, count in enumerate(b.late_sizes(repeats, "repeats", "how often a dimension is repeated")):
        places = b.add("range", start=0, size=x.shape[d] * count, step=1)
        x = b.add("gather", x, b.add("floor_mod", places, b.size(x.shape[d])), axis=d)
    return x


def pad_late(b: Builder, x: Operand, pads: Operand, axes: Sequence[int], value: Operand | None, mode: str) -> Operand:
    """Returns *x* padded along *axes* by as much as the vector *pads* says, before all of them, then behind them."""
    count = len(axes)
    given = b.cast(pads, i64)
    before = b.add("slice", given, starts=(0,), ends=(count,), axes=(0,), steps=(1,))
    behind = b.add("slice", given, starts=(count,), ends=(2 * count,), axes=(0,), steps=(1,))
    whole = b.add("add", b.add("add", before, behind), b.vector([x.shape[d] for d in axes]))
    sizes = b.late_sizes(whole, "padded", "a padded size")
    filler = value if value is not None else b.scalar(0, x.dtype)
    for k, (d, size) in enumerate(zip(axes, sizes, strict=True)):
        at = b.add("sub", b.add("range", start=0, size=size, step=1), element(b, before, 0, k))
        own = b.size(x.shape[d])
        moved = b.add("gather", x, _padded_index(b, at, own, mode), axis=d)
        if mode == "constant":
            inside = b.add("logical_and", b.add("less", b.scalar(-1, i64), at), b.add("less", at, own))
            inside = b.reshape(inside, [size if n == d else 1 for n in range(x.rank)])
            moved = b.add("where", inside, moved, b.reshape(b.cast(filler, x.dtype), ()))
        x = moved
    return x


def split_late(b: Builder, x: Operand, axis: int, sizes: Operand) -> tuple[Operand, ...]:
    """Returns pieces of *x* along *axis*, of the sizes that a vector says; calls in which they do not fill it are refused."""
    pieces = [as_expr(s, INDEX) for s in b.late_sizes(sizes, "piece", "the size of a piece")]
    ends = [sum(pieces[: k + 1], as_expr(0, INDEX)) for k in range(len(pieces))]
    b.require(
        eq(ends[-1], x.shape[axis]),
        f"its pieces have {{0}} elements, and dimension {axis} has {{1}}",
        ends[-1],
        x.shape[axis],
    )
    return tuple(
        [
            b.add("slice", x, starts=(end - size,), ends=(end,), axes=(axis,), steps=(1,), inside=True)
            for size, end in zip(pieces, ends, strict=True)
        ]
    )


def trilu_late(b: Builder, x: Operand, k: Operand, *, upper: bool) -> Operand:
    """Returns the *upper* or the lower triangle of matrices, on one side of the diagonal *k*."""
    rows, columns = (b.add("range", start=0, size=s, step=1) for s in x.shape[-2:])
    diagonal = b.add("sub", columns, b.reshape(rows, (x.shape[-2], 1)))
    limit = b.reshape(b.cast(k, i64), ())
    pair = (limit, diagonal) if upper else (diagonal, limit)
    return b.add("where", b.add("less_equal", *pair), x, b.scalar(0, x.dtype))


def _padded_index(b: Builder, at: Operand, size: Operand, mode: str) -> Operand:
    """Returns the index inside of a dimension of *size* that stands for each of *at*, by the padding *mode*."""
    zero, one = b.scalar(0, i64), b.scalar(1, i64)
    last = b.add("sub", size, one)
    if mode == "wrap":
        return b.add("floor_mod", at, size)
    if mode == "reflect":
        period = b.add("maximum", b.add("mul", last, b.scalar(2, i64)), one)
        folded = b.add("floor_mod", at, period)
        return b.add("minimum", folded, b.add("sub", period, folded))
    return b.add("minimum", b.add("maximum", at, zero), last)


def _length(b: Builder, x: Operand, what: str) -> int:
    """Returns the number of elements of a vector, one of each dimension; raises `ModelError` where it has a symbolic size."""
    sizes = [s.value for s in x.shape if isinstance(s, Const)]
    if len(sizes) != x.rank or x.rank > 1:
        b.fail(f"{what} should be a vector, of a size that is known: {x!r}")
    count = math.prod([int(s) for s in sizes])
    check_rank(count)
    return count
