"""Operators whose result takes its shape from another tensor, or from an attribute alone."""

from __future__ import annotations

from typing import Final

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import Translation, translates
from weft.graph.builder import Operand, total
from weft.graph.composites.slicing import slice_axes
from weft.ir import ExprLike
from weft.support.dtypes import DType, i64

_MOST_ELEMENTS: Final = 1 << 24


def _full(value: float) -> Translation:
    return lambda c: c.add("full", shape=tuple(c.input().shape), value=value, dtype=c.input().dtype)


translates("zeros_like")(_full(0))
translates("ones_like")(_full(1))


def _of_shape(value: float | None) -> Translation:
    """One number in all places of a shape; sizes of zero, which an operator behind it knows, are broadcast to it."""

    def translate(c: Call) -> Operand:
        given = c.number("value") if value is None else value
        shape = tuple([size or 1 for size in c.ints("shape")])
        return c.add("full", shape=shape, value=given, dtype=c.dtype("float32"))

    return translate


translates("_zeros", "_npi_zeros")(_of_shape(0))
translates("_ones", "_npi_ones")(_of_shape(1))
translates("_full")(_of_shape(None))


@translates("_arange", "_npi_arange")
def arange(c: Call) -> Operand:
    """Numbers from one to before another, by a step, each several times."""
    start, stop, step = c.number("start", 0.0), c.value("stop"), c.number("step", 1.0)
    start, stop = (0.0, start) if stop is None else (start, c.number("stop"))
    count = max(-int((start - stop) // step), 0) if step else -1
    if not 0 <= count <= _MOST_ELEMENTS:
        c.fail(f"its range has no end, or more than {_MOST_ELEMENTS} elements", "give it a step towards its end")
    return _steps(c, start, step, count, c.dtype("float32"))


def _steps(c: Call, start: float, step: float, count: ExprLike, dtype: DType) -> Operand:
    numbers = c.cast(c.add("range", start=0, size=count, step=1), dtype)
    if step != 1:
        numbers = c.add("mul", numbers, c.scalar(step, dtype))
    made = numbers if start == 0 else c.add("add", numbers, c.scalar(start, dtype))
    times = c.integer("repeat", 1)
    return made if times == 1 else c.add("repeat", made, axis=0, times=times)


@translates("_contrib_arange_like")
def arange_like(c: Call) -> Operand:
    """As many numbers as a tensor has elements, in its shape, or as it has along an axis."""
    x = c.input()
    start, step = c.number("start", 0.0), c.number("step", 1.0)
    if c.integer("repeat", 1) != 1:
        c.fail("repeat is not supported", "repeat the result")
    if c.value("axis") is not None:
        return _steps(c, start, step, x.shape[c.axis_of(c.integer("axis"), x.rank)], x.dtype)
    return c.reshape(_steps(c, start, step, total(x.shape), x.dtype), x.shape)


@translates("shape_array")
def shape_array(c: Call) -> Operand:
    """The sizes as a vector."""
    return c.cast(c.vector(c.input().shape), i64)


@translates("size_array")
def size_array(c: Call) -> Operand:
    """The number of elements, as a vector of one."""
    return c.cast(c.vector([total(c.input().shape)]), i64)


@translates("reshape_like")
def reshape_like(c: Call) -> Operand:
    """The elements in the shape of another tensor, or some of their dimensions in some of the other's."""
    x, other = c.input(0), c.input(1)
    ends = [_part(c, side, t.rank) for side, t in (("lhs", x), ("rhs", other))]
    (b, e), (ob, oe) = ends
    return c.reshape(x, [*x.shape[:b], *other.shape[ob:oe], *x.shape[e:]])


def _part(c: Call, side: str, rank: int) -> tuple[int, int]:
    """Returns the dimensions that are replaced, all by default."""
    begin, end = c.value(f"{side}_begin"), c.value(f"{side}_end")
    found = [0 if begin is None else c.integer(f"{side}_begin"), rank if end is None else c.integer(f"{side}_end")]
    b, e = (v + rank if v < 0 else v for v in found)
    if not 0 <= b <= e <= rank:
        c.fail(f"its dimensions from {b} to {e} are not among {rank}", "save the network again")
    return b, e


@translates("slice_like")
def slice_like(c: Call) -> Operand:
    """The first elements, as many as another tensor has along the axes given, or along all."""
    x, other = c.input(0), c.input(1)
    given = c.value("axes")
    axes = range(other.rank) if given in (None, ()) else [c.axis_of(a, x.rank) for a in c.ints("axes")]
    zeros = [0] * len(axes)
    return slice_axes(c, x, axes, zeros, [other.shape[a] for a in axes], [1] * len(axes))


@translates("broadcast_like")
def broadcast_like(c: Call) -> Operand:
    """The elements repeated to the shape of another tensor."""
    x, other = c.input(0), c.input(1)
    if c.value("lhs_axes") is None:
        return c.add("expand", x, shape=tuple(other.shape))
    made = list(x.shape)
    for a, b in zip(c.ints("lhs_axes"), c.ints("rhs_axes"), strict=True):
        made[c.axis_of(a, x.rank)] = other.shape[c.axis_of(b, other.rank)]
    return c.add("expand", x, shape=tuple(made))


@translates("broadcast_to", "_npi_broadcast_to")
def broadcast_to(c: Call) -> Operand:
    """The elements repeated to a shape; 0 keeps a size."""
    x, wanted = c.input(), c.ints("shape")
    if len(wanted) != x.rank:
        c.fail(f"its shape {wanted} has not the dimensions of {x!r}", "save the network again")
    return c.add("expand", x, shape=tuple([n or s for n, s in zip(wanted, x.shape, strict=True)]))


@translates("broadcast_axis", "broadcast_axes")
def broadcast_axis(c: Call) -> Operand:
    """The elements repeated along dimensions of size one."""
    x = c.input()
    made = list(x.shape)
    for a, n in zip(c.ints("axis"), c.ints("size"), strict=True):
        made[c.axis_of(a, x.rank)] = n  # type: ignore[call-overload]
    return c.add("expand", x, shape=tuple(made))
