"""Operators on shapes, products of matrices, and reductions."""

from __future__ import annotations

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.ops.ordering import inside
from weft.frontends.mxnet.registry import Translation, translates
from weft.graph.builder import Operand, total
from weft.graph.composites.sequences import concat as concat_of
from weft.graph.composites.sequences import stack as stack_of
from weft.graph.composites.slicing import FAR, reshape_open, slice_axes, split_equally
from weft.ir import ExprLike
from weft.support.dtypes import i64


@translates("Flatten", "flatten")
def flatten(c: Call) -> Operand:
    """All but the first dimension as one."""
    x = c.input()
    return c.reshape(x, [x.shape[0], total(x.shape[1:])])


@translates("Reshape", "reshape")
def reshape(c: Call) -> Operand:
    """Another shape: 0 keeps a size, -1 is inferred, -2 keeps all that are left, -3 joins two, -4 splits one."""
    x, codes = c.input(), c.ints("shape")
    if c.flag("reverse") and -4 in codes:
        c.fail("-4 in a shape that is read from the back is not supported", "write the shape from the front")
    if c.flag("reverse"):
        return reshape_open(c, x, [*reversed(_decoded(codes[::-1], [*reversed(x.shape)]))])
    return reshape_open(c, x, _decoded(codes, list(x.shape)))


def _decoded(codes: list[int], left: list[ExprLike]) -> list[ExprLike]:
    """Returns the sizes that *codes* stand for; *left* are those that they read."""
    made: list[ExprLike] = []
    k = 0
    while k < len(codes):
        code = codes[k]
        k += 1
        if code == -2:
            made += left
            left = []
        elif code == -3:
            made.append(total([left.pop(0), left.pop(0)]))
        elif code == -4:
            made += _split_size(left.pop(0), codes[k], codes[k + 1])
            k += 2
        else:
            size = left.pop(0) if left else 1
            made.append(size if code == 0 else code)
    return made


def _split_size(size: ExprLike, first: int, second: int) -> list[ExprLike]:
    """Returns two sizes, of which -1 is the other's quotient of *size*."""
    if first == -1:
        return [size // second, second]
    return [first, size // first if second == -1 else second]


@translates("transpose", "_np_transpose", "_npi_transpose")
def transpose(c: Call) -> Operand:
    """The dimensions in another order, the opposite one by default."""
    x = c.input()
    return c.transpose(x, c.ints("axes") if c.value("axes") else [*reversed(range(x.rank))])


@translates("SwapAxis", "swapaxes", "_npi_swapaxes")
def swap_axes(c: Call) -> Operand:
    """Two dimensions in each other's place."""
    x = c.input()
    order = list(range(x.rank))
    a, b = (c.axis_of(c.integer(n, 0), x.rank) for n in ("dim1", "dim2"))
    order[a], order[b] = b, a
    return c.transpose(x, order)


@translates("expand_dims", "_npi_expand_dims")
def expand_dims(c: Call) -> Operand:
    """A new dimension of size one."""
    x = c.input()
    axis = c.axis_of(c.integer("axis"), x.rank + 1)
    return c.reshape(x, [*x.shape[:axis], 1, *x.shape[axis:]])


@translates("squeeze", "_np_squeeze", "_npi_squeeze")
def squeeze(c: Call) -> Operand:
    """Without dimensions of size one."""
    x = c.input()
    ones = [d for d, s in enumerate(x.shape) if getattr(s, "value", None) == 1]
    axes = ones if c.value("axis") is None else [c.axis_of(a, x.rank) for a in c.ints("axis")]
    return c.reshape(x, [s for d, s in enumerate(x.shape) if d not in axes])


@translates("Concat", "concat", "_rnn_param_concat")
def concat(c: Call) -> Operand:
    """Tensors one after another."""
    return concat_of(c, c.all_inputs(), c.axis_of(c.integer("dim", 1), c.input().rank))


@translates("stack")
def stack(c: Call) -> Operand:
    """Tensors in a new dimension."""
    return stack_of(c, c.all_inputs(), c.axis_of(c.integer("axis", 0), c.input().rank + 1))


@translates("SliceChannel", "split")
def split(c: Call) -> tuple[Operand, ...]:
    """Equal parts along an axis, which may be dropped."""
    x = c.input()
    axis = c.axis_of(c.integer("axis", 1), x.rank)
    parts = split_equally(c, x, axis, c.integer("num_outputs"))
    if not c.flag("squeeze_axis"):
        return parts
    return tuple([c.reshape(p, [*p.shape[:axis], *p.shape[axis + 1 :]]) for p in parts])


@translates("slice", "crop")
def slice_(c: Call) -> Operand:
    """Elements between two places; None stands for an end."""
    x, begin, end = c.input(), c.value("begin"), c.value("end")
    steps = [s or 1 for s in c.value("step") or [1] * len(begin)]
    starts = [(0 if s > 0 else FAR) if b is None else b for b, s in zip(begin, steps, strict=True)]
    ends = [(FAR if s > 0 else -FAR) if e is None else e for e, s in zip(end, steps, strict=True)]
    return slice_axes(c, x, range(len(begin)), starts, ends, steps)


@translates("slice_axis")
def slice_axis(c: Call) -> Operand:
    """Elements between two places along an axis."""
    x, end = c.input(), c.value("end")
    axis = c.axis_of(c.integer("axis"), x.rank)
    return slice_axes(c, x, [axis], [c.integer("begin")], [FAR if end is None else end], [1])


@translates("Pad", "pad")
def pad(c: Call) -> Operand:
    """Elements around those of a tensor."""
    width, mode = c.ints("pad_width"), c.text("mode", "constant")
    value = c.number("constant_value", 0.0)
    return c.add("pad", c.input(), pads=(*width[::2], *width[1::2]), mode=mode, value=value)


@translates("tile")
def tile(c: Call) -> Operand:
    """The tensor repeated along each dimension."""
    x, times = c.input(), c.ints("reps")
    x = c.reshape(x, [*[1] * (len(times) - x.rank), *x.shape])
    return c.add("tile", x, repeats=[*[1] * (x.rank - len(times)), *times])


@translates("repeat")
def repeat(c: Call) -> Operand:
    """Each element several times along an axis."""
    x = c.input()
    if c.value("axis") is None:
        return c.add("repeat", c.reshape(x, [total(x.shape)]), axis=0, times=c.integer("repeats"))
    return c.add("repeat", x, axis=c.axis_of(c.integer("axis"), x.rank), times=c.integer("repeats"))


@translates("take")
def take(c: Call) -> Operand:
    """The slices at indices along an axis; by default, those outside are moved to the ends."""
    x = c.input()
    axis = c.axis_of(c.integer("axis", 0), x.rank)
    at = c.cast(c.input(1), i64) if c.text("mode", "clip") == "raise" else inside(c, c.input(1), x, axis)
    return c.add("gather", x, at, axis=axis)


@translates("dot")
def dot(c: Call) -> Operand:
    """Sums of products over the last dimension of one tensor and the first of another; or those at the other ends, if turned."""
    x, y = c.input(0), c.input(1)
    if c.flag("transpose_a") and x.rank > 1:
        x = c.transpose(x, [*range(1, x.rank), 0])
    if c.flag("transpose_b") and y.rank > 1:
        y = c.transpose(y, [y.rank - 1, *range(y.rank - 1)])
    rows = c.reshape(x, [total(x.shape[:-1]), x.shape[-1]])
    columns = c.reshape(y, [y.shape[0], total(y.shape[1:])])
    return c.reshape(c.add("matmul", rows, columns), [*x.shape[:-1], *y.shape[1:]] if x.rank + y.rank > 2 else [1])


@translates("batch_dot")
def batch_dot(c: Call) -> Operand:
    """Matrices multiplied, one for each of a batch."""
    return c.add("matmul", *_factors(c))


def _factors(c: Call) -> list[Operand]:
    made: list[Operand] = []
    for k, side in enumerate("ab"):
        x = c.input(k)
        turn = c.flag(f"transpose_{side}") and x.rank > 1
        made.append(c.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2]) if turn else x)
    return made


def _reduction(op: str) -> Translation:
    def translate(c: Call) -> Operand:
        x = c.input()
        return c.add(op, x, axes=c.axes(x.rank), keepdims=c.flag("keepdims"))

    return translate


translates("sum", "sum_axis", "_np_sum")(_reduction("reduce_sum"))
translates("mean", "_npi_mean")(_reduction("reduce_mean"))
translates("max", "max_axis", "_np_max")(_reduction("reduce_max"))
translates("min", "min_axis", "_np_min")(_reduction("reduce_min"))
translates("prod", "_np_prod")(_reduction("reduce_prod"))
