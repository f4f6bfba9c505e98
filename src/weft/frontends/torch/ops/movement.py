"""Shapes, and operators that move elements without computing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.frontends.torch.call import Call, common_shape
from weft.frontends.torch.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand, Results, static_sizes, total
from weft.graph.composites.sequences import stack as stacked
from weft.graph.composites.slicing import reshape_open, roll_axis, slice_axes, split_axis, split_equally
from weft.ir import ONE, Const, Expr
from weft.ops import is_certain
from weft.support.dtypes import i64
from weft.support.errors import UnknownValues


@translates("view", "reshape", "_unsafe_view")
def view(c: Call) -> Results:
    """Another shape, of which one size may be -1: inferred from the number of elements."""
    return reshape_open(c, c.tensor(), c.sizes("size" if "size" in c.arguments else "shape"))


@translates("view_as")
def view_as(c: Call) -> Results:
    """The elements in another's shape."""
    return c.reshape(c.tensor(), c.tensor("other").shape)


@translates("flatten.using_ints")
def flatten(c: Call) -> Results:
    """The dimensions from one to another as one."""
    x = c.tensor()
    first, last = c.axis("start_dim", x.rank), c.axis("end_dim", x.rank)
    return c.reshape(x, [*x.shape[:first], total(x.shape[first : last + 1]), *x.shape[last + 1 :]])


@translates("unflatten.int")
def unflatten(c: Call) -> Results:
    """One dimension as several."""
    x = c.tensor()
    d = c.axis("dim", x.rank)
    return reshape_open(c, x, [*x.shape[:d], *c.sizes("sizes"), *x.shape[d + 1 :]])


@translates("permute")
def permute(c: Call) -> Results:
    """The dimensions in another order."""
    x = c.tensor()
    return c.transpose(x, [c.axis_of(d, x.rank) for d in c.arguments["dims"]])


@translates("transpose.int")
def transpose(c: Call) -> Results:
    """Two dimensions exchanged."""
    x = c.tensor()
    return _exchanged(c, x, c.axis("dim0", x.rank), c.axis("dim1", x.rank))


@translates("t")
def t(c: Call) -> Results:
    """A matrix transposed; vectors as they are."""
    x = c.tensor()
    return x if x.rank < 2 else _exchanged(c, x, 0, 1)


@translates("mT")
def m_t(c: Call) -> Results:
    """Matrices transposed."""
    x = c.tensor()
    return _exchanged(c, x, x.rank - 2, x.rank - 1)


def _exchanged(c: Call, x: Operand, a: int, b: int) -> Operand:
    order = list(range(x.rank))
    order[a], order[b] = b, a
    return c.transpose(x, order)


@translates("unsqueeze")
def unsqueeze(c: Call) -> Results:
    """A new dimension of size one."""
    x = c.tensor()
    d = c.axis("dim", x.rank + 1)
    return c.reshape(x, [*x.shape[:d], 1, *x.shape[d:]])


@translates("squeeze", "squeeze.dim", "squeeze.dims")
def squeeze(c: Call) -> Results:
    """Dimensions of size one dropped: all, or those given."""
    x = c.tensor()
    axes = () if c.arguments.get("dim") == [] else c.axes("dim", x.rank)
    dropped = {d for d in axes if x.shape[d] is ONE}
    return c.reshape(x, [s for d, s in enumerate(x.shape) if d not in dropped])


@translates("expand")
def expand(c: Call) -> Results:
    """Dimensions of size one repeated; -1 keeps a size."""
    x, sizes = c.tensor(), c.sizes("size")
    lead = len(sizes) - x.rank
    wanted = [x.shape[d - lead] if isinstance(s, int) and s == -1 else s for d, s in enumerate(sizes)]
    return c.add("expand", x, shape=tuple(wanted))


@translates("expand_as")
def expand_as(c: Call) -> Results:
    """Dimensions of size one repeated, to another's shape."""
    return c.add("expand", c.tensor(), shape=c.tensor("other").shape)


@translates("broadcast_tensors")
def broadcast_tensors(c: Call) -> Results:
    """Tensors repeated to the shape that all of them are broadcast to."""
    given = c.tensors("tensors")
    shape = common_shape([x.shape for x in given])
    return tuple([c.add("expand", x, shape=shape) for x in given])


@translates("meshgrid", "meshgrid.indexing")
def meshgrid(c: Call) -> Results:
    """Vectors repeated along the dimensions of the others: the first along rows, or along columns with the indexing "xy"."""
    given = [c.reshape(x, [total(x.shape)]) for x in c.tensors("tensors")]
    axes = list(range(len(given)))
    if c.value("indexing", "ij") == "xy" and len(given) > 1:
        axes[:2] = 1, 0
    shape = tuple([given[d].shape[0] for d in axes])  # exchanging two is its own inverse
    lying = [
        c.reshape(x, [x.shape[0] if k == d else 1 for k in range(len(given))]) for x, d in zip(given, axes, strict=True)
    ]
    return tuple([c.add("expand", x, shape=shape) for x in lying])


@translates("repeat")
def repeat(c: Call) -> Results:
    """The tensor repeated along each dimension."""
    x, times = c.tensor(), c.sizes("repeats")
    tall = c.reshape(x, [*[1] * (len(times) - x.rank), *x.shape])
    if all(isinstance(n, int) for n in times):
        return c.add("tile", tall, repeats=tuple(times))
    pairs = list(zip(times, tall.shape, strict=True))
    apart = c.reshape(tall, [size for _, s in pairs for size in (1, s)])
    whole = c.add("expand", apart, shape=tuple([size for pair in pairs for size in pair]))
    return c.reshape(whole, [n * s for n, s in pairs])


@translates("cat")
def cat(c: Call) -> Results:
    """Tensors one after another along a dimension."""
    given = c.tensors("tensors")
    most = max(x.rank for x in given)
    given = [x for x in given if x.rank == most]  # a vector of no elements goes with tensors of any shape
    parts = [c.cast(x, c.dtype) for x in given]
    return parts[0] if len(parts) == 1 else c.add("concat", *parts, axis=c.axis_of(c.integer("dim", 0), most))


@translates("stack")
def stack(c: Call) -> Results:
    """Tensors along a new dimension."""
    parts = [c.cast(x, c.dtype) for x in c.tensors("tensors")]
    return stacked(c, parts, c.axis("dim", parts[0].rank + 1))


@translates("split.Tensor")
def split(c: Call) -> Results:
    """Pieces of one size along a dimension; the last may be smaller."""
    x, size = c.tensor(), c.integer("split_size")
    d = c.axis("dim", x.rank)
    extent = x.shape[d]
    if not isinstance(extent, Const):
        c.fail(f"dimension {d} of {x!r} is symbolic: the number of pieces is not known", "give it a number in `shapes`")
    whole, rest = divmod(int(extent.value), size)
    return split_axis(c, x, d, [size] * whole + [rest] * bool(rest))


@translates("split_with_sizes")
def split_with_sizes(c: Call) -> Results:
    """Pieces of sizes given along a dimension."""
    return split_axis(c, c.tensor(), c.axis("dim", c.tensor().rank), c.sizes("split_sizes"))


@translates("chunk")
def chunk(c: Call) -> Results:
    """A number of equal pieces along a dimension; the last may be smaller."""
    x = c.tensor()
    d = c.axis("dim", x.rank)
    return split_equally(c, x, d, c.integer("chunks"))


@translates("slice.Tensor")
def slice_(c: Call) -> Results:
    """Elements of a range along a dimension."""
    x = c.tensor()
    d = c.axis("dim", x.rank)
    return slice_axes(c, x, [d], [c.value("start", 0)], [c.value("end", 2**62)], [c.integer("step", 1)])


@translates("narrow")
def narrow(c: Call) -> Results:
    """A number of elements from a start on along a dimension."""
    x, start, length = c.tensor(), c.value("start"), c.value("length")
    if isinstance(start, int) and start < 0:
        start = x.shape[c.axis("dim", x.rank)] + start
    return slice_axes(c, x, [c.axis("dim", x.rank)], [start], [start + length], [1])


@translates("select.int")
def select(c: Call) -> Results:
    """One element along a dimension, which is dropped."""
    x, k = c.tensor(), c.integer("index")
    d = c.axis("dim", x.rank)
    piece = c.add("slice", x, starts=(k,), ends=(k + 1 if k != -1 else 2**62,), axes=(d,), steps=(1,))
    return c.reshape(piece, [*x.shape[:d], *x.shape[d + 1 :]])


@translates("index_select")
def index_select(c: Call) -> Results:
    """Slices at indices along a dimension."""
    x = c.tensor()
    if x.rank == 0:
        return c.reshape(x, [])  # whose only element is at index 0
    return c.add("gather", x, c.tensor("index"), axis=c.axis("dim", x.rank))


@translates("unbind.int")
def unbind(c: Call) -> Results:
    """Each element along a dimension, which is dropped."""
    x = c.tensor()
    d = c.axis("dim", x.rank)
    sizes = static_sizes([x.shape[d]])
    if sizes is None:
        c.fail(f"dimension {d} of {x!r} is symbolic: how many there are is not known", "give it a number in `shapes`")
    pieces = split_axis(c, x, d, [1] * sizes[0])
    return tuple([c.reshape(p, [*x.shape[:d], *x.shape[d + 1 :]]) for p in pieces])


@translates("roll")
def roll(c: Call) -> Results:
    """The elements moved along dimensions, those beyond the end put at the beginning; without dimensions, all in a row."""
    x, shifts, dims = c.tensor(), c.sizes("shifts"), c.arguments.get("dims") or []
    if not dims:
        return c.reshape(roll_axis(c, c.reshape(x, [total(x.shape)]), shifts[0], 0), x.shape)
    for by, d in zip(shifts, dims, strict=True):
        x = roll_axis(c, x, by, c.axis_of(d, x.rank))
    return x


@translates("flip")
def flip(c: Call) -> Results:
    """The elements in reverse order along some dimensions."""
    x = c.tensor()
    axes = c.axes("dims", x.rank) if c.arguments["dims"] else ()
    count = len(axes)
    if not count:
        return x
    return c.add("slice", x, starts=(-1,) * count, ends=(-(2**31),) * count, axes=axes, steps=(-1,) * count)


@translates("copy")
def copy(c: Call) -> Results:
    """Another tensor's elements in the shape and type of the first."""
    return c.add("expand", c.cast(c.tensor("src"), c.dtype), shape=c.tensor().shape)


@translates("prims.convert_element_type.default")
def convert_element_type(c: Call) -> Results:
    """The elements converted."""
    return c.cast(c.tensor("a"), c.dtype)


@translates("as_strided")
def as_strided(c: Call) -> Results:
    """Elements of the memory that a contiguous tensor has, at places that sizes and strides say."""
    x, sizes, strides = c.tensor(), c.sizes("size"), c.sizes("stride")
    offset, flat = c.value("storage_offset", 0), c.reshape(x, [total(x.shape)])
    if not all(isinstance(v, int) for v in (*sizes, *strides, offset)):
        return c.add("gather", flat, places_by_strides(c, sizes, strides, offset), axis=0)
    places = np.full((), offset, np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        places = places[..., None] + np.arange(size, dtype=np.int64) * stride
    held = static_sizes(flat.shape)
    if held is not None and places.size and places.max() >= held[0]:
        c.fail(f"elements behind the last of {x!r} are not supported", "take them from the whole tensor")
    return c.add("gather", flat, CompileTimeConstant(places), axis=0)


def places_by_strides(
    c: Call, sizes: Sequence[int | Expr], strides: Sequence[int | Expr], offset: int | Expr
) -> Operand:
    """Returns the places [*sizes] that strides make, of which some sizes are symbolic."""
    places: Operand = c.size(offset)
    for d, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        steps = c.add("mul", c.cast(c.add("range", start=0, size=size, step=1), i64), c.size(stride))
        places = c.add("add", places, c.reshape(steps, [*[1] * d, size, *[1] * (len(sizes) - 1 - d)]))
    return c.add("expand", places, shape=tuple(sizes))


@translates("diagonal")
def diagonal(c: Call) -> Results:
    """The diagonals of matrices, which two of the dimensions make, as the last dimension."""
    x, offset = c.tensor(), c.integer("offset", 0)
    one, other = c.axis_of(c.integer("dim1", 0), x.rank), c.axis_of(c.integer("dim2", 1), x.rank)
    lead = [d for d in range(x.rank) if d not in (one, other)]
    matrices = c.transpose(x, [*lead, one, other])
    rows, columns = matrices.shape[-2:]
    down, right = rows - max(-offset, 0), columns - max(offset, 0)
    if not is_certain(down <= right) and not is_certain(right <= down):
        c.fail(f"diagonals of {x!r} are of a length that is not known", "give it numbers in `shapes`")
    count, first = down if is_certain(down <= right) else right, max(offset, 0) + max(-offset, 0) * columns
    flat = c.reshape(matrices, [*matrices.shape[:-2], rows * columns])
    return c.add("gather", flat, places_by_strides(c, (count,), (columns + 1,), first), axis=len(lead))


@translates("unfold", "unfold_copy")
def unfold(c: Call) -> Results:
    """Windows along a dimension, which counts them; the elements of each are the last dimension."""
    x, size, step = c.tensor(), c.integer("size"), c.integer("step")
    if x.rank == 0:
        return c.reshape(x, [size])
    d = c.axis("dimension", x.rank)
    count = (x.shape[d] - size) // step + 1
    made = c.add("gather", x, places_by_strides(c, (count, size), (step, 1), 0), axis=d)
    return c.transpose(made, [k for k in range(x.rank + 1) if k != d + 1] + [d + 1])


@translates(
    "contiguous",
    "clone",
    "detach",
    "detach_",
    "alias",
    "lift_fresh_copy",
    "resolve_conj",
    "resolve_neg",
    "conj_physical",
)
def itself(c: Call) -> Results:
    """The tensor itself: a value of a graph has no place in memory that could be shared."""
    return c.tensor()


@translates("_to_copy", "to.dtype", "to.dtype_layout", "to.device", "to.other", "type_as")
def to(c: Call) -> Results:
    """The elements converted."""
    return c.cast(c.tensor(), c.dtype)


@translates("_operator.getitem")
def getitem(c: Call) -> Results:
    """One of several results."""
    found: Operand | None = c.arguments["self"][c.arguments["other"]]
    return (
        c.fail("this result of an operator is not supported", "export the module without it")
        if found is None
        else found
    )


_PAD_MODES: Final = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@translates("constant_pad_nd", "pad")
def pad(c: Call) -> Results:
    """Pads by a number, or by elements of the tensor; the list begins with the last dimension's pads."""
    x, given, mode = c.tensor(), c.sizes("pad"), c.value("mode", "constant")
    pads = [0] * (2 * x.rank)
    for k, size in enumerate(given):
        pads[x.rank - 1 - k // 2 + x.rank * (k % 2)] = size if isinstance(size, int) else 0
    made = c.add("pad", x, pads=tuple(pads), mode=_PAD_MODES[mode], value=c.value("value", 0))
    symbolic = {k: size for k, size in enumerate(given) if isinstance(size, Expr)}
    if symbolic and mode != "constant":
        c.fail("pads of symbolic size are supported by a number only", "export it with static shapes", UnknownValues)
    for k, size in symbolic.items():
        made = _padded_by_size(c, made, size, x.rank - 1 - k // 2, behind=bool(k % 2))
    return made


def _padded_by_size(c: Call, x: Operand, size: Expr, axis: int, *, behind: bool) -> Operand:
    """Returns *x* with a number before or behind it along *axis*, as often as *size* says, which may not be negative."""
    if not is_certain(size >= 0):
        c.require(size >= 0, "pads by {0}, which may not be negative", size)
    shape = tuple([size if d == axis else s for d, s in enumerate(x.shape)])
    more = c.add("full", shape=shape, value=c.value("value", 0), dtype=x.dtype)
    return c.add("concat", *((x, more) if behind else (more, x)), axis=axis)
