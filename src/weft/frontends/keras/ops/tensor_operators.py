"""Operators called on tensors that go along dimensions, such as `keras.ops.mean(x, axis=1)`: sums, shapes and indices."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from weft.frontends.keras.call import Call
from weft.frontends.keras.ops.elementwise_operators import numbers
from weft.frontends.keras.registry import Translation, translates
from weft.graph.builder import Operand, total
from weft.graph.composites.einsum import einsum
from weft.graph.composites.ordering import top_k
from weft.graph.composites.sequences import stack
from weft.graph.composites.slicing import reshape_open, roll_axis, slice_axes, split_axis, split_equally
from weft.ir import ONE, ZERO, Expr, ExprLike, as_expr
from weft.ops import simplify_size
from weft.support.dtypes import bool_, f32, i32, i64

_REDUCTIONS: Final = {
    "Mean": "reduce_mean",
    "Sum": "reduce_sum",
    "Max": "reduce_max",
    "Amax": "reduce_max",
    "Min": "reduce_min",
    "Amin": "reduce_min",
    "Prod": "reduce_prod",
    "Logsumexp": "reduce_log_sum_exp",
}
_FAR: Final = 1 << 62


def _axes(c: Call, rank: int) -> tuple[int, ...]:
    """Returns the dimensions of a reduction, in ascending order; all where none are given."""
    found = c.layer.config.get("axis")
    given = range(rank) if found is None else found if isinstance(found, list) else [found]
    return tuple(sorted({c.axis_of(_int(c, d), rank) for d in given}))


def _int(c: Call, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        c.fail(f"its settings have {value!r} for an integer", "save the model again")
    return value


def _ints(c: Call, name: str) -> list[int]:
    found = c.layer.config.get(name)
    return [_int(c, v) for v in (found if isinstance(found, list) else [found])]


def _axis(c: Call, rank: int, name: str = "axis", default: int = -1) -> int:
    return c.axis_of(c.integer(name, default), rank)


def _reduction(name: str, op: str) -> Translation:
    def translate(c: Call) -> Operand:
        exact = name not in ("Mean", "Logsumexp") and c.tensor().dtype.is_int
        x = c.tensor() if exact else c.floats()
        return c.add(op, x, axes=_axes(c, x.rank), keepdims=c.flag("keepdims"))

    return translate


for _name, _op in _REDUCTIONS.items():
    translates(f"ops.{_name}")(_reduction(_name, _op))


@translates("ops.Any", "ops.All")
def any_or_all(c: Call) -> Operand:
    """Whether an element holds, or all do."""
    op = "reduce_max" if c.layer.kind == "ops.Any" else "reduce_min"
    x = c.cast(c.cast(c.tensor(), bool_), i32)
    return c.cast(c.add(op, x, axes=_axes(c, x.rank), keepdims=c.flag("keepdims")), bool_)


@translates("ops.Var", "ops.Std")
def variance(c: Call) -> Operand:
    """The mean of squared distances from the mean; Std, the root of it."""
    x = c.floats()
    axes = _axes(c, x.rank)
    apart = c.add("sub", x, c.add("reduce_mean", x, axes=axes, keepdims=True))
    y = c.add("reduce_mean", c.add("square", apart), axes=axes, keepdims=c.flag("keepdims"))
    return c.add("sqrt", y) if c.layer.kind == "ops.Std" else y


@translates("ops.Norm")
def norm(c: Call) -> Operand:
    """The lengths of vectors."""
    c.refuse("ord", 2, "euclidean")
    x = c.floats()
    axes = _axes(c, x.rank)
    if c.has("ord") and len(axes) > 1:
        c.fail("norms of matrices are not supported", "compute it from the elements")
    return c.add("reduce_l2", x, axes=axes, keepdims=c.flag("keepdims"))


@translates("ops.Normalize")
def normalize(c: Call) -> Operand:
    """Vectors divided by their lengths."""
    c.refuse("order", 2)
    x = c.floats()
    squares = c.add("reduce_sum", c.add("square", x), axes=_axes(c, x.rank), keepdims=True)
    least = c.scalar(max(c.number("epsilon", 1e-7), 0.0) ** 2, f32)
    return c.add("mul", x, c.add("rsqrt", c.add("maximum", squares, least)))


@translates("ops.Argmax", "ops.Argmin")
def extreme(c: Call) -> Operand:
    """The place of the greatest element along a dimension, or (Argmin) of the least."""
    x = c.tensor()
    if not c.has("axis"):
        x = c.reshape(x, [total(x.shape)])
    op = c.layer.kind.removeprefix("ops.").lower()
    y = c.add(op, x, axis=_axis(c, x.rank), keepdims=c.flag("keepdims"))
    return c.cast(y, i32)


@translates("ops.TopK")
def largest(c: Call) -> tuple[Operand, ...]:
    """The greatest elements along the last dimension, and their places."""
    x = c.tensor()
    values, places = top_k(c, x, c.integer("k"), x.rank - 1, largest=True)
    return values, c.cast(places, i32)


@translates("ops.Cumsum")
def cumulative_sum(c: Call) -> Operand:
    """Sums of the elements up to each along a dimension."""
    x = c.tensor()
    return c.add("cumsum", x, axis=_axis(c, x.rank))


# products


@translates("ops.Matmul", "ops.Dot")
def matmul(c: Call) -> Operand:
    """Products of matrices; Dot, of one with the last dimension but one of the other, if that is a matrix."""
    x, y = (c.cast(t, f32) for t in c.tensors())
    if c.layer.kind == "ops.Dot" and y.rank > 2:
        c.fail(f"its second tensor should have 2 dimensions or fewer: {y!r}", "use matmul or einsum")
    return c.add("mul", x, y) if 0 in (x.rank, y.rank) else c.add("matmul", x, y)


@translates("ops.Einsum")
def sums_of_products(c: Call) -> Operand:
    """Sums of products over labelled dimensions."""
    return einsum(c, [c.cast(t, f32) for t in c.tensors()], c.text("subscripts"))


# shapes


@translates("ops.Reshape")
def reshape(c: Call) -> Operand:
    """The elements in another shape, of which one size may be -1."""
    return reshape_open(c, c.tensor(), [-1 if s is None else _int(c, s) for s in c.value("newshape", list)])


@translates("ops.Ravel")
def ravel(c: Call) -> Operand:
    """All elements in a row."""
    x = c.tensor()
    return c.reshape(x, [total(x.shape)])


@translates("ops.Transpose", "ops.Swapaxes", "ops.Moveaxis")
def transpose(c: Call) -> Operand:
    """The dimensions in another order."""
    x = c.tensor()
    order = list(range(x.rank))
    if c.layer.kind == "ops.Swapaxes":
        a, b = (_axis(c, x.rank, name) for name in ("axis1", "axis2"))
        order[a], order[b] = b, a
    elif c.layer.kind == "ops.Moveaxis":
        order = _moved(c, x.rank)
    else:
        order = [c.axis_of(d, x.rank) for d in _ints(c, "axes")] if c.has("axes") else order[::-1]
    return c.permuted(x, order)


def _moved(c: Call, rank: int) -> list[int]:
    """Returns the order in which the dimensions `source` stand at `destination`, and the others as they were."""
    pairs = [[c.axis_of(d, rank) for d in _ints(c, name)] for name in ("source", "destination")]
    order = [d for d in range(rank) if d not in pairs[0]]
    for to, d in sorted(zip(pairs[1], pairs[0], strict=True)):
        order.insert(to, d)
    return order


@translates("ops.ExpandDims")
def expand_dims(c: Call) -> Operand:
    """A new dimension of size 1."""
    x = c.tensor()
    shape = list[ExprLike](x.shape)
    for d in sorted(c.axis_of(d, x.rank + len(_ints(c, "axis"))) for d in _ints(c, "axis")):
        shape.insert(d, 1)
    return c.reshape(x, shape)


@translates("ops.Squeeze")
def squeeze(c: Call) -> Operand:
    """The tensor without dimensions of size 1."""
    x = c.tensor()
    gone = _axes(c, x.rank) if c.has("axis") else [d for d, s in enumerate(x.shape) if s is ONE]
    return c.reshape(x, [s for d, s in enumerate(x.shape) if d not in gone])


@translates("ops.Stack")
def stacked(c: Call) -> Operand:
    """Tensors of one shape along a new dimension."""
    parts = numbers(c)
    return stack(c, parts, _axis(c, parts[0].rank + 1, default=0))


@translates("ops.Split")
def split(c: Call) -> tuple[Operand, ...]:
    """Equal pieces along a dimension, or pieces that end at given places."""
    x, found = c.tensor(), c.layer.config.get("indices_or_sections")
    d = _axis(c, x.rank, default=0)
    if isinstance(found, int):
        return split_equally(c, x, d, found)
    ends: list[Expr] = [ZERO, *[as_expr(e) for e in _ints(c, "indices_or_sections")], x.shape[d]]
    return split_axis(c, x, d, [simplify_size(b - a) for a, b in pairwise(ends)])


@translates("ops.Repeat")
def repeat(c: Call) -> Operand:
    """Each element several times along a dimension."""
    x = c.tensor()
    if not c.has("axis"):
        x = c.reshape(x, [total(x.shape)])
    return c.add("repeat", x, axis=_axis(c, x.rank), times=c.integer("repeats"))


@translates("ops.Tile")
def tile(c: Call) -> Operand:
    """The tensor several times along each dimension."""
    x, times = c.tensor(), _ints(c, "repeats")
    x = c.reshape(x, [*[1] * (len(times) - x.rank), *x.shape])
    return c.add("tile", x, repeats=tuple([1] * (x.rank - len(times)) + times))


@translates("ops.BroadcastTo")
def broadcast_to(c: Call) -> Operand:
    """The tensor repeated along its dimensions of size 1."""
    return c.add("expand", c.tensor(), shape=tuple(_ints(c, "shape")))


@translates("ops.Flip")
def flip(c: Call) -> Operand:
    """The elements in reverse order along dimensions."""
    x = c.tensor()
    axes = _axes(c, x.rank)
    return c.add("slice", x, starts=(-1,) * len(axes), ends=(-_FAR,) * len(axes), axes=axes, steps=(-1,) * len(axes))


@translates("ops.Roll")
def roll(c: Call) -> Operand:
    """The elements moved along a dimension, those beyond the end to the beginning."""
    x, shift = c.tensor(), c.integer("shift")
    if not c.has("axis"):
        c.fail(f"it moves elements of {x!r} along no dimension", "give it an axis")
    return roll_axis(c, x, shift, _axis(c, x.rank, default=0))


@translates("ops.Pad")
def pad(c: Call) -> Operand:
    """Elements before and after the others along each dimension."""
    x, pairs, mode = c.tensor(), c.value("pad_width", list), c.text("mode", "constant")
    value = c.named.get("constant_values") or 0
    modes = {"constant": "constant", "reflect": "reflect", "symmetric": "symmetric", "edge": "edge"}
    if mode not in modes or not isinstance(value, int | float):
        c.fail(f"mode={mode!r} with {value!r} is not supported", "pad with a number, or by reflection")
    rows = [[_int(c, v) for v in (p if isinstance(p, list) else pairs)] for p in pairs]
    rows = rows if len(rows) == x.rank else rows[:1] * x.rank
    before, after = zip(*rows, strict=True)
    return c.add("pad", x, pads=(*before, *after), mode=modes[mode], value=float(value))


# indices


@translates("ops.Take")
def take(c: Call) -> Operand:
    """Elements along a dimension at indices."""
    x, *others = c.tensors()
    places = others[0] if others else c.named.get("indices")
    if places is None:
        c.fail("it is called without indices", "save the model again")
    if not c.has("axis"):
        x = c.reshape(x, [total(x.shape)])
    return c.add("gather", x, c.cast(places, i64), axis=_axis(c, x.rank))


@translates("ops.OneHot")
def one_hot(c: Call) -> Operand:
    """Rows of zeros with a one at an index."""
    c.refuse("sparse", False)
    x = c.cast(c.tensor(), i64)
    count = c.integer("num_classes")
    axis = _axis(c, x.rank + 1)
    ends = [c.reshape(c.scalar(v, f32), [1]) for v in (0, 1)]
    hot = c.add("one_hot", x, c.add("concat", *ends, axis=0), depth=count, axis=axis)
    wide = c.reshape(x, [*x.shape[:axis], 1, *x.shape[axis:]])
    return c.add("where", c.add("less", wide, c.scalar(0, i64)), c.scalar(0, f32), hot)


@translates("ops.GetItem")
def get_item(c: Call) -> Operand:
    """Python's `x[...]`, with numbers, slices, an ellipsis and new dimensions."""
    x = c.tensor()
    key = c.positional[1] if len(c.positional) > 1 else c.named.get("key")
    items = key if isinstance(key, list) else [key]
    own = sum(item is not None and item is not Ellipsis for item in items)
    shape: list[ExprLike] = []
    d = 0
    for item in items:
        if item is None:
            shape.append(1)
        elif item is Ellipsis:
            shape += x.shape[d : d + x.rank - own]
            d += x.rank - own
        elif isinstance(item, slice):
            x = _sliced(c, x, d, item)
            shape.append(x.shape[d])
            d += 1
        else:
            at = _int(c, item)
            x = slice_axes(c, x, [d], [at], [at + 1 if at != -1 else _FAR], [1])
            d += 1
    return c.reshape(x, [*shape, *x.shape[d:]])


def _sliced(c: Call, x: Operand, d: int, item: slice) -> Operand:
    step = 1 if item.step is None else _int(c, item.step)
    if item.start is item.stop is None and step == 1:
        return x
    start = (0 if step > 0 else -1) if item.start is None else _int(c, item.start)
    stop = (_FAR if step > 0 else -_FAR) if item.stop is None else _int(c, item.stop)
    return slice_axes(c, x, [d], [start], [stop], [step])
