"""Products, pieces and new tensors as `mxnet.np` has them."""

from __future__ import annotations

from typing import Final

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.ops.ordering import inside
from weft.frontends.mxnet.registry import Translation, translates
from weft.graph.builder import Operand, static_sizes, total
from weft.graph.composites.einsum import einsum as einsum_of
from weft.graph.composites.sequences import concat
from weft.graph.composites.slicing import FAR, neighbours, roll_axis, slice_axes
from weft.ir import ExprLike
from weft.support.dtypes import DType, f32, i64

_MOST_ELEMENTS: Final = 1 << 24


@translates("_npi_matmul")
def matmul(c: Call) -> Operand:
    """Matrices multiplied, batches of them broadcast; a vector is a row on the left and a column on the right."""
    return c.add("matmul", c.input(0), c.input(1))


@translates("_np_dot")
def dot(c: Call) -> Operand:
    """Sums of products over the last dimension of one tensor and the last but one of another; a product with a number."""
    x, y = c.input(0), c.input(1)
    if not x.rank or not y.rank:
        return c.add("mul", x, y)
    return _summed(c, [x.rank - 1], [max(y.rank - 2, 0)])


@translates("_npi_tensordot")
def tensordot(c: Call) -> Operand:
    """Sums of products over some axes of one tensor and of another."""
    return _summed(c, c.ints("a_axes_summed"), c.ints("b_axes_summed"))


@translates("_npi_tensordot_int_axes")
def tensordot_at_ends(c: Call) -> Operand:
    """Sums of products over the last axes of one tensor and as many first ones of another."""
    count, rank = c.integer("axes"), c.input(0).rank
    return _summed(c, list(range(rank - count, rank)), list(range(count)))


def _summed(c: Call, left: list[int], right: list[int]) -> Operand:
    x, y = c.input(0), c.input(1)
    left, right = [c.axis_of(a, x.rank) for a in left], [c.axis_of(a, y.rank) for a in right]
    kept, others = ([d for d in range(t.rank) if d not in taken] for t, taken in ((x, left), (y, right)))
    inner = total([x.shape[d] for d in left])
    rows = c.reshape(c.transpose(x, [*kept, *left]), [total([x.shape[d] for d in kept]), inner])
    columns = c.reshape(c.transpose(y, [*right, *others]), [inner, total([y.shape[d] for d in others])])
    return c.reshape(c.add("matmul", rows, columns), [*[x.shape[d] for d in kept], *[y.shape[d] for d in others]])


@translates("_npi_einsum")
def einsum(c: Call) -> Operand:
    """Sums of products by Einstein's notation."""
    return einsum_of(c, c.all_inputs(), c.text("subscripts"))


@translates("_npi_flip")
def flip(c: Call) -> Operand:
    """The elements backwards along axes, all by default."""
    x = c.input()
    axes = list(c.axes(x.rank))
    return slice_axes(c, x, axes, [-1] * len(axes), [-FAR] * len(axes), [-1] * len(axes))


@translates("_np_roll")
def roll(c: Call) -> Operand:
    """The elements moved along axes, those that fall off put in front; without axes, all in a row."""
    x, shifts = c.input(), c.ints("shift")
    if c.text("axis", "None") == "None":
        return c.reshape(roll_axis(c, c.reshape(x, [total(x.shape)]), sum(shifts), 0), x.shape)
    axes = [c.axis_of(a, x.rank) for a in c.ints("axis")]
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    for by, axis in zip(shifts, axes, strict=True):
        x = roll_axis(c, x, by, axis)
    return x


@translates("_np_moveaxis")
def moveaxis(c: Call) -> Operand:
    """Some axes in other places, the others in their order."""
    x = c.input()
    sources, places = ([c.axis_of(a, x.rank) for a in c.ints(name)] for name in ("source", "destination"))
    order = [d for d in range(x.rank) if d not in sources]
    for place, source in sorted(zip(places, sources, strict=True)):
        order.insert(place, source)
    return c.transpose(x, order)


def _joined(least: int, axis: int) -> Translation:
    """Joins tensors of *least* dimensions or more along *axis*; vectors along their only one."""

    def translate(c: Call) -> Operand:
        parts = [_of_rank(c, p, least) for p in c.all_inputs()]
        return concat(c, parts, min(axis, parts[0].rank - 1))

    return translate


def _of_rank(c: Call, x: Operand, least: int) -> Operand:
    """Returns *x* with dimensions of size one: one behind a vector where it should have three, and the others before it."""
    shape: list[ExprLike] = list(x.shape)
    if least == 3 and 0 < len(shape) < 3:
        shape = [*[1] * (2 - len(shape)), *shape, 1]
    return c.reshape(x, [*[1] * (least - len(shape)), *shape])


translates("_npi_vstack")(_joined(2, 0))
translates("_npi_hstack")(_joined(1, 1))
translates("_npi_dstack")(_joined(3, 2))


@translates("_npi_column_stack")
def column_stack(c: Call) -> Operand:
    """Columns side by side, which vectors are."""
    parts = [p if p.rank > 1 else c.reshape(p, [total(p.shape), 1]) for p in c.all_inputs()]
    return concat(c, parts, 1)


for _rank, _name in enumerate(("_np_atleast_1d", "_np_atleast_2d", "_np_atleast_3d"), 1):
    translates(_name)(lambda c, r=_rank: tuple([_of_rank(c, p, r) for p in c.all_inputs()]))  # type: ignore[misc]


@translates("_npi_tril")
def tril(c: Call) -> Operand:
    """The lower triangle of matrices, zero above a diagonal."""
    return c.add("trilu", c.input(), k=c.integer("k", 0), upper=False)


@translates("_npi_eye", "_eye", "_npi_identity")
def eye(c: Call) -> Operand:
    """Ones on a diagonal."""
    rows, columns = (c.ints("shape") * 2)[:2] if c.node.op == "_npi_identity" else _sizes(c)
    if not 0 <= rows * columns <= _MOST_ELEMENTS:
        c.fail(f"it has {rows} rows and {columns} columns", "make it an input")
    places = [c.add("range", start=0, size=n, step=1) for n in (rows, columns)]
    moved = c.add("add", c.reshape(places[0], [rows, 1]), c.scalar(c.integer("k", 0), places[0].dtype))
    return c.cast(c.add("equal", moved, places[1]), c.dtype("float32"))


def _sizes(c: Call) -> tuple[int, int]:
    rows = c.integer("N")
    columns = 0 if c.text("M", "None") == "None" else c.integer("M")
    return rows, columns or rows


@translates("_npi_full_like")
def full_like(c: Call) -> Operand:
    """One number in all places of a tensor's shape."""
    x = c.input()
    dtype: DType = x.dtype if c.text("dtype", "None") == "None" else c.dtype()
    return c.add("full", shape=tuple(x.shape), value=c.number("fill_value"), dtype=dtype)


@translates("_linspace")
def linspace(c: Call) -> Operand:
    """Numbers in equal steps from one to another, that one among them or not."""
    start, stop, count = c.number("start", 0.0), c.number("stop"), c.integer("num", 50)
    if not 0 <= count <= _MOST_ELEMENTS:
        c.fail(f"it has {count} elements", "make it an input")
    steps = count - 1 if c.flag("endpoint", True) else count
    numbers = c.cast(c.add("range", start=0, size=count, step=1), f32)
    scaled = c.add("mul", numbers, c.scalar((stop - start) / max(steps, 1), f32))
    return c.cast(c.add("add", scaled, c.scalar(start, f32)), c.dtype("float32"))


@translates("_np_diag", "diag")
def diag(c: Call) -> Operand:
    """The diagonal of a matrix, or a matrix with a vector on its diagonal; of more dimensions, those of two axes."""
    x, k = c.input(), c.integer("k", 0)
    if x.rank > 1:
        return _diagonal(c, x, k, (c.integer("axis1", 0), c.integer("axis2", 1)))
    return _on_diagonal(c, x, k)


@translates("_np_diagflat")
def diagflat(c: Call) -> Operand:
    """A matrix with all elements on its diagonal."""
    return _on_diagonal(c, c.reshape(c.input(), [total(c.input().shape)]), c.integer("k", 0))


@translates("_np_diagonal", "_np_trace")
def diagonal(c: Call) -> Operand:
    """The diagonals of matrices along two axes, or their sums."""
    made = _diagonal(c, c.input(), c.integer("offset", 0), (c.integer("axis1", 0), c.integer("axis2", 1)))
    if c.node.op == "_np_diagonal":
        return made
    return c.add("reduce_sum", made, axes=(made.rank - 1,), keepdims=False)


def _diagonal(c: Call, x: Operand, k: int, axes: tuple[int, int]) -> Operand:
    """Returns the diagonal *k* of matrices along two axes, as the last dimension."""
    a, b = (c.axis_of(d, x.rank) for d in axes)
    turned = c.transpose(x, [*[d for d in range(x.rank) if d not in (a, b)], a, b])
    sizes = static_sizes(turned.shape[-2:])
    if sizes is None:
        c.fail(f"its matrices are of a symbolic size: {x!r}", "give them numbers: shapes={...}")
    rows, columns = sizes
    first = (0, k) if k >= 0 else (-k, 0)
    count = max(min(rows - first[0], columns - first[1]), 0)
    flat = c.reshape(turned, [*turned.shape[:-2], rows * columns])
    start = first[0] * columns + first[1]
    at = c.vector([start + i * (columns + 1) for i in range(count)])
    return c.add("gather", flat, at, axis=flat.rank - 1)


def _on_diagonal(c: Call, x: Operand, k: int) -> Operand:
    sizes = static_sizes(x.shape)
    if sizes is None:
        c.fail(f"its input is of a symbolic size: {x!r}", "give it a number: shapes={...}")
    side = sizes[0] + abs(k)
    if side > _MOST_ELEMENTS // max(side, 1):
        c.fail(f"its matrix would have {side} rows", "make it an input")
    rows, columns = (c.add("range", start=0, size=side, step=1) for _ in range(2))
    is_there = c.add("equal", c.add("add", c.reshape(rows, [side, 1]), c.scalar(k, rows.dtype)), columns)
    spread = c.add("pad", x, pads=(max(k, 0), max(-k, 0)), mode="constant", value=0.0)
    return c.add("where", is_there, c.reshape(spread, [1, side]), c.scalar(0, x.dtype))


@translates("_npi_diff")
def diff(c: Call) -> Operand:
    """The difference of neighbours along an axis, several times."""
    x = c.input()
    axis = c.axis_of(c.integer("axis", -1), x.rank)
    for _ in range(min(c.integer("n", 1), 64)):
        x = c.add("sub", *neighbours(c, x, axis))
    return x


@translates("batch_take")
def batch_take(c: Call) -> Operand:
    """The element of each row that an index names."""
    x = c.input(0, rank=2)
    at = c.reshape(inside(c, c.input(1), x, 1), [x.shape[0], 1])
    return c.reshape(c.add("gather_elements", x, at, axis=1), [x.shape[0]])


@translates("scatter_nd")
def scatter_nd(c: Call) -> Operand:
    """Zeros with slices put at indices, of which the first dimension has the coordinates."""
    data, at, shape = c.input(0), c.cast(c.input(1), i64), c.ints("shape")
    if not 0 <= total(shape) <= _MOST_ELEMENTS:
        c.fail(f"its result has the shape {shape}", "give it another shape")
    zeros = c.add("full", shape=tuple(shape), value=0, dtype=data.dtype)
    return c.add("scatter_nd", zeros, c.transpose(at, [*range(1, at.rank), 0]), data)


@translates("_ravel_multi_index")
def ravel_multi_index(c: Call) -> Operand:
    """The row-major positions in a shape of indices, whose first dimension has the coordinates."""
    x, shape = c.input(rank=2), c.ints("shape")
    strides, by = list[int](), 1
    for size in reversed(shape):
        strides.insert(0, by)
        by *= max(size, 1)
    scaled = c.add("mul", x, c.cast(c.reshape(c.vector(strides), [len(strides), 1]), x.dtype))
    return c.add("reduce_sum", scaled, axes=(0,), keepdims=False)


@translates("MakeLoss", "_identity_with_attr_like_rhs")
def unchanged(c: Call) -> Operand:
    """Returns the first input: the operator's effect is for training."""
    return c.input(0)
