"""Slices: by begins and sizes, and Python's with steps, ellipses and new dimensions."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.builder.element_source import element_source
from weft.graph.composites.run_time import late_shapes
from weft.graph.composites.sequences import element
from weft.graph.composites.slicing import FAR, slice_axes
from weft.ir import ONE, Expr
from weft.support.dtypes import i64


@translates("Slice")
def slice_(c: Call) -> Operand:
    """As many elements as are asked for, from where they begin; -1 for all that there are."""
    x = c.tensor(0)
    axes = range(x.rank)
    if not (c.is_known(1) and c.is_known(2)):
        return _slice_late(c, x)
    begins, sizes = c.sizes(1, "where the slice begins"), c.sizes(2, "the sizes of the slice")
    if len(begins) != x.rank or len(sizes) != x.rank:
        c.fail(f"it gives {len(begins)} begins and {len(sizes)} sizes for {x!r}", SAVE_AGAIN)
    ends = [FAR if isinstance(n, int) and n == -1 else b + n for b, n in zip(begins, sizes, strict=True)]
    cut = [d for d in axes if not (_is(begins[d], 0) and (ends[d] is FAR or ends[d] is x.shape[d]))]
    pick = [[v[d] for d in cut] for v in (begins, ends)]
    return slice_axes(c, x, cut, pick[0], pick[1], [1] * len(cut)) if cut else x


def _slice_late(c: Call, x: Operand) -> Operand:
    """Returns a slice of which only a run tells where some dimensions begin, or how many elements they have."""
    begin, size = c.tensor(1, 1), c.tensor(2, 1)
    for d in range(x.rank):
        first, count = (_element(v, d) for v in (begin, size))
        if first is not None and count is not None:
            end = FAR if isinstance(count, int) and count == -1 else first + count
            x = x if _is(first, 0) and end is FAR else slice_axes(c, x, [d], [first], [end], [1])
            continue
        at, number = (c.cast(c.reshape(element(c, v, 0, d), [1]), i64) for v in (begin, size))
        behind = c.add(
            "where", c.add("less", number, c.scalar(0, i64)), c.vector([x.shape[d]]), c.add("add", at, number)
        )
        x = late_shapes.slice_late(c, x, [d], at, behind, c.vector([1]))
    return x


def _element(x: Operand, d: int) -> int | Expr | None:
    """Returns an element of a vector of integers; None for one that only a run computes."""
    if isinstance(x, CompileTimeConstant):
        value = x.array[d]
        return value if isinstance(value, Expr) else int(value)
    found = element_source(x, d)
    return None if isinstance(found, tuple) else found


def _is(size: Any, number: int) -> bool:
    return isinstance(size, int) and size == number


class _Item(NamedTuple):
    """One item of an index as in Python: `x[begin:end:step]`, a number that drops its dimension, or a new dimension."""

    place: int
    dimension: int
    is_new: bool
    is_index: bool
    from_start: bool
    to_end: bool


@translates("StridedSlice")
def strided_slice(c: Call) -> Operand:
    """Python's slices, with numbers, ellipses and new dimensions."""
    x = c.tensor(0)
    items = _items(c, x)
    steps = c.ints_at(3, "the steps of the slice")
    sliced = [i for i in items if not i.is_new and not i.is_index]
    cut = [i for i in sliced if not (i.from_start and i.to_end and steps[i.place] == 1)]
    for item in cut:
        x = _ranged(c, x, item, steps[item.place])
    indices = [i for i in items if i.is_index]
    for item in reversed(indices):
        x = _indexed(c, x, item)
    gone = {i.dimension for i in indices}
    return _with_new(c, x, items, gone)


def _with_new(c: Call, x: Operand, items: list[_Item], gone: set[int]) -> Operand:
    """Returns *x* with the new dimensions of an index; the dimensions *gone* are no longer in it."""
    if not any(i.is_new for i in items):
        return x
    shape: list[Expr] = []
    rest = list(x.shape)
    at = 0
    for item in items:
        if item.is_new:
            before = item.dimension - sum(1 for d in gone if d < item.dimension)
            shape += rest[at:before]
            at = max(at, before)
            shape.append(ONE)
    return c.reshape(x, [*shape, *rest[at:]])


def _items(c: Call, x: Operand) -> list[_Item]:
    """Returns the items of an index, each with the dimension of *x* that it is about."""
    masks = {n: c.integer(f"{n}_mask", 0) for n in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    begin = c.tensor(1, 1)
    count = int(getattr(begin.shape[0], "value", -1))
    if count < 0 or count > 64:
        c.fail(f"its index is of symbolic size, or too long: {begin!r}", SAVE_AGAIN)
    own = sum(1 for i in range(count) if not (masks["new_axis"] | masks["ellipsis"]) >> i & 1)
    made: list[_Item] = []
    d = 0
    for i in range(count):
        if masks["ellipsis"] >> i & 1:
            d += x.rank - own
            continue
        is_new = bool(masks["new_axis"] >> i & 1)
        is_index = bool(masks["shrink_axis"] >> i & 1) and not is_new
        made.append(_Item(i, d, is_new, is_index, bool(masks["begin"] >> i & 1), bool(masks["end"] >> i & 1)))
        d += not is_new
    if d > x.rank:
        c.fail(f"its index has {d} items for {x!r}", SAVE_AGAIN)
    return made


def _ranged(c: Call, x: Operand, item: _Item, step: int) -> Operand:
    """Returns a range of a dimension."""
    d = item.dimension
    if not step:
        c.fail("its step is 0", SAVE_AGAIN)
    begin, end = _bound(c, 1, item, is_open=item.from_start), _bound(c, 2, item, is_open=item.to_end)
    first: Any = (0 if step > 0 else -1) if begin is None else begin
    last: Any = (FAR if step > 0 else -(2**62)) if end is None else end
    if isinstance(first, int | Expr) and isinstance(last, int | Expr):
        return slice_axes(c, x, [d], [first], [last], [step])
    ends = [c.reshape(v, [1]) if not isinstance(v, int | Expr) else c.vector([v]) for v in (first, last)]
    if ends[0].dtype is not ends[1].dtype:
        dtype = next(v.dtype for v, given in zip(ends, (first, last), strict=True) if not isinstance(given, int | Expr))
        ends = [c.cast(v, dtype) for v in ends]
    return late_shapes.slice_late(c, x, [d], ends[0], ends[1], c.vector([step]))


def _bound(c: Call, i: int, item: _Item, *, is_open: bool) -> Operand | int | Expr | None:
    """Returns a bound of a range: a number, a size, a value that only a run computes, or None for an open one."""
    if is_open:
        return None
    found = element(c, c.tensor(i, 1), 0, item.place)
    if not isinstance(found, CompileTimeConstant):
        known = c.known_size(found)
        return found if known is None else known
    value = found.array.reshape(-1)[0]
    return value if isinstance(value, Expr) else int(value)


def _indexed(c: Call, x: Operand, item: _Item) -> Operand:
    """Returns the element of a dimension at a number, which is dropped."""
    at = _bound(c, 1, item, is_open=False)
    d = item.dimension
    if isinstance(at, int):
        size = getattr(x.shape[d], "value", None)
        if isinstance(size, int) and not -size <= at < size:
            c.fail(f"it takes element {at} of dimension {d} of {x!r}", SAVE_AGAIN)
        piece = c.add("slice", x, starts=(at,), ends=(FAR if at == -1 else at + 1,), axes=(d,), steps=(1,))
        return c.reshape(piece, [*x.shape[:d], *x.shape[d + 1 :]])
    assert at is not None
    return c.add("gather", x, c.size(at) if isinstance(at, Expr) else at, axis=d)
