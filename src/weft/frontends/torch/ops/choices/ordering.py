"""Operators that sort, and choose elements by their order, along a dimension."""

from __future__ import annotations

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Operand, Results, total
from weft.graph.composites import ordering
from weft.ir import Const
from weft.support.dtypes import bool_, i64, u8


@translates("sort", "sort.stable")
def sort(c: Call) -> Results:
    """The elements in order, and where they were."""
    x = _vector(c)
    axis = c.axis("dim", x.rank)
    order = c.add("argsort", x, axis=axis, descending=bool(c.value("descending", False)))
    return _shaped(c, _taken(c, x, order, axis)), _shaped(c, c.cast(order, i64))


@translates("topk")
def topk(c: Call) -> Results:
    """The largest or smallest elements, in order, and where they were."""
    x = _vector(c)
    axis = c.axis_of(c.integer("dim", -1), x.rank)
    values, places = ordering.top_k(c, x, c.integer("k"), axis, largest=bool(c.value("largest", True)))
    return (values, places) if c.tensor().rank else (c.reshape(values, []), c.reshape(places, []))


@translates("kthvalue")
def kthvalue(c: Call) -> Results:
    """The element of a place in the order, and where it was."""
    x = _vector(c)
    return _chosen(c, x, c.axis_of(c.integer("dim", -1), x.rank), c.integer("k") - 1)


@translates("median.dim")
def median_dim(c: Call) -> Results:
    """The element in the middle of the order, the smaller of two, and where it was; NaN where there is one."""
    x = _vector(c)
    axis = c.axis("dim", x.rank)
    middle, place = _chosen(c, x, axis, (_extent(c, x, axis) - 1) // 2)
    if not x.dtype.is_float:
        return middle, place
    keepdims = bool(c.value("keepdim", False))
    unordered = c.cast(c.add("is_nan", x), u8)
    any_nan = c.reshape(c.cast(c.add("reduce_max", unordered, axes=(axis,), keepdims=keepdims), bool_), middle.shape)
    where = c.reshape(c.add("argmax", unordered, axis=axis, keepdims=keepdims, last=False), place.shape)
    nan = c.scalar(float("nan"), x.dtype)
    return c.add("where", any_nan, nan, middle), c.add("where", any_nan, where, place)


@translates("median")
def median(c: Call) -> Results:
    """The element in the middle of the order of all; NaN where there is one."""
    x = c.reshape(c.tensor(), [total(c.tensor().shape)])
    k = (_extent(c, x, 0) - 1) // 2
    ordered = _taken(c, x, c.add("argsort", x, axis=0, descending=False), 0)
    middle = c.reshape(c.add("slice", ordered, starts=(k,), ends=(k + 1,), axes=(0,), steps=(1,)), [])
    if not x.dtype.is_float:
        return middle
    unordered = c.cast(c.add("is_nan", x), u8)
    any_nan = c.cast(c.add("reduce_max", unordered, axes=(0,), keepdims=False), bool_)
    return c.add("where", any_nan, c.scalar(float("nan"), x.dtype), middle)


@translates("nanmedian.dim", "nanmedian")
def nanmedian(c: Call) -> Results:
    """The element in the middle of the order of those that are not NaN, the smaller of two, and where it was."""
    x, of_all = _vector(c), "dim" not in c.arguments
    x = c.reshape(x, [total(x.shape)]) if of_all else x
    axis = 0 if of_all else c.axis("dim", x.rank)
    order = c.add("argsort", x, axis=axis, descending=False)
    numbers = c.cast(c.add("logical_not", c.add("is_nan", x)), i64) if x.dtype.is_float else None
    if numbers is None:
        numbers = c.add("full", shape=x.shape, value=1, dtype=i64)
    count = c.add("reduce_sum", numbers, axes=(axis,), keepdims=True)
    last = c.add("maximum", c.add("sub", count, c.scalar(1, i64)), c.scalar(0, i64))
    place = c.cast(_taken(c, order, c.add("div", last, c.scalar(2, i64)), axis), i64)
    value = _taken(c, x, place, axis)
    if of_all:
        return c.reshape(value, [])
    keepdims = bool(c.value("keepdim", False)) and c.tensor().rank > 0
    shape = [s for d, s in enumerate(value.shape) if d != axis or keepdims]
    return c.reshape(value, shape), c.reshape(place, shape)


@translates("mode")
def mode(c: Call) -> Results:
    """The most frequent element along a dimension, the smallest of several, and where it is last."""
    x = _vector(c)
    axis = c.axis("dim", x.rank)
    rows, columns = (c.reshape(x, [*x.shape[:at], 1, *x.shape[at:]]) for at in (axis, axis + 1))
    same = c.cast(c.add("equal", rows, columns), i64)
    counts = c.add("reduce_sum", same, axes=(axis + 1,), keepdims=False)
    most = c.add("reduce_max", counts, axes=(axis,), keepdims=True)
    order = c.add("argsort", x, axis=axis, descending=False)
    is_mode = c.cast(_taken(c, c.add("equal", counts, most), order, axis), u8)
    first = c.add("argmax", is_mode, axis=axis, keepdims=True, last=False)
    value = _taken(c, x, _taken(c, order, first, axis), axis)
    place = c.add("argmax", c.cast(c.add("equal", x, value), u8), axis=axis, keepdims=True, last=True)
    keepdims = bool(c.value("keepdim", False)) and c.tensor().rank > 0
    shape = [s for d, s in enumerate(value.shape) if d != axis or keepdims]
    return c.reshape(value, shape), c.reshape(place, shape)


@translates("searchsorted.Tensor")
def searchsorted(c: Call) -> Results:
    """Where elements would stand in rows, sorted by themselves or by a sorter."""
    rows, sorter = c.tensor("sorted_sequence"), c.optional("sorter")
    rows = rows if sorter is None else c.add("gather_elements", rows, c.cast(sorter, i64), axis=rows.rank - 1)
    return _places_in(c, rows, behind=bool(c.value("right", False)) or c.value("side") == "right")


@translates("bucketize.Tensor")
def bucketize(c: Call) -> Results:
    """Where elements would stand among sorted boundaries."""
    return _places_in(c, c.tensor("boundaries"), behind=bool(c.value("right", False)))


def _places_in(c: Call, rows: Operand, *, behind: bool) -> Operand:
    """Returns where elements would stand in sorted rows, before equal ones or *behind* them: how many are smaller."""
    x, lead = c.tensor(), rows.shape[:-1]
    keys = c.cast(c.reshape(x, [*x.shape, 1]), rows.dtype)
    if rows.rank > 1:
        rows = c.reshape(rows, [*lead, 1, rows.shape[-1]])
    counted = c.add("logical_not", c.add("less", keys, rows)) if behind else c.add("less", rows, keys)
    number = c.add("reduce_sum", c.cast(counted, c.dtype), axes=(counted.rank - 1,), keepdims=False)
    return c.reshape(number, x.shape)


def _extreme(op: str, place: str) -> Translation:
    """The smallest or largest element along a dimension, and where it is."""

    def translate(c: Call) -> Results:
        x = _vector(c)
        axis, keepdims = c.axis("dim", x.rank), bool(c.value("keepdim", False))
        numbers = c.cast(x, u8) if x.dtype is bool_ else x
        best = c.cast(c.add(op, numbers, axes=(axis,), keepdims=keepdims), x.dtype)
        where = c.add(place, numbers, axis=axis, keepdims=keepdims, last=False)
        return (best, where) if c.tensor().rank else (c.reshape(best, []), c.reshape(where, []))

    return translate


def _running_extreme(*, largest: bool) -> Translation:
    """The extremes so far along a dimension, and where they are."""

    def translate(c: Call) -> Results:
        x = _vector(c)
        values, places = c.add_many("running_extreme", x, axis=c.axis("dim", x.rank), largest=largest)
        return _shaped(c, values), _shaped(c, places)

    return translate


translates("cummax")(_running_extreme(largest=True))
translates("cummin")(_running_extreme(largest=False))
translates("max.dim")(_extreme("reduce_max", "argmax"))
translates("min.dim")(_extreme("reduce_min", "argmin"))


def _vector(c: Call) -> Operand:
    """Returns self, a number as a vector of one."""
    x = c.tensor()
    return c.reshape(x, [1]) if x.rank == 0 else x


def _shaped(c: Call, made: Operand) -> Operand:
    return c.reshape(made, c.tensor().shape) if c.tensor().rank == 0 else made


def _taken(c: Call, x: Operand, order: Operand, axis: int) -> Operand:
    return c.add("gather_elements", x, order, axis=axis)


def _extent(c: Call, x: Operand, axis: int) -> int:
    size = x.shape[axis]
    if not isinstance(size, Const):
        c.fail(f"dimension {axis} of {x!r} is symbolic: its middle is not known", "give it a number in `shapes`")
    if not size.value:
        c.fail(f"dimension {axis} of {x!r} is empty", "give it elements")
    return int(size.value)


def _chosen(c: Call, x: Operand, axis: int, k: int) -> tuple[Operand, Operand]:
    """Returns the element at place *k* of the order along *axis*, and where it was."""
    order = c.add("argsort", x, axis=axis, descending=False)
    place = c.add("slice", order, starts=(k,), ends=(k + 1,), axes=(axis,), steps=(1,))
    value = _taken(c, x, place, axis)
    shape = [1 if d == axis else s for d, s in enumerate(x.shape)]
    if not c.value("keepdim", False) or c.tensor().rank == 0:
        shape = [s for d, s in enumerate(x.shape) if d != axis]
    return c.reshape(value, shape), c.reshape(c.cast(place, i64), shape)
