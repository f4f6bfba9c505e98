"""Layers on vectors and on tensors of any shape: products, shapes, joining, reductions."""

from __future__ import annotations

from weft.frontends.coreml.call import AGAIN
from weft.frontends.coreml.layer_table import Layer, layer
from weft.frontends.coreml.network_call import EPSILON, NetworkCall
from weft.frontends.coreml.ops.movement import interleaved, slice_masked
from weft.graph.builder import Operand, total
from weft.graph.composites.sequences import concat as concat_of
from weft.graph.composites.sequences import stack as stack_of
from weft.graph.composites.slicing import reshape_open, slice_axes, split_axis, split_equally


@layer(140, "innerProduct")
def inner_product(c: NetworkCall) -> Operand:
    """Vectors times a matrix: the last dimension, or the channels of images of one pixel."""
    x, inputs, outputs = c.input(), c.integer(1), c.integer(2)
    w = c.weight(20, (outputs, inputs))
    pixels = c.blobs_have_five_dimensions and x.rank == 4
    rows = c.reshape(x, [x.shape[0], inputs]) if pixels else x
    made = c.add("matmul", rows, c.transpose(w, [1, 0]))
    if c.params.flag(10):
        made = c.add("add", made, c.weight(21, (outputs,)))
    return c.reshape(made, [x.shape[0], outputs, 1, 1]) if pixels else made


@layer(1045, "batchedMatmul")
def batched_matmul(c: NetworkCall) -> Operand:
    """Matrices multiplied, either of which may be given transposed, or by a matrix of weights."""
    if len(c.inputs) > 1:
        return c.add("matmul", *(_turned(c, c.input(k), turn=c.params.flag(k + 1)) for k in (0, 1)))
    rows, columns = c.integer(5), c.integer(6)
    w = c.transpose(c.weight(8, (columns, rows)), [1, 0])
    made = c.add("matmul", c.input(), w)
    return c.add("add", made, c.weight(9, (columns,))) if c.params.flag(7) else made


def _turned(c: NetworkCall, x: Operand, *, turn: bool) -> Operand:
    return c.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2]) if turn else x


@layer(175, "softmax")
def softmax(c: NetworkCall) -> Operand:
    """Exponentials divided by their sum over the channels."""
    return c.add("softmax", c.input(), axis=max(c.input().rank - 3, 0))


@layer(950, "softmaxND")
def softmax_nd(c: NetworkCall) -> Operand:
    """Exponentials divided by their sum along an axis."""
    return c.add("softmax", c.input(), axis=c.axis_of(c.integer(1), c.input().rank))


@layer(300, "reshape")
def reshape(c: NetworkCall) -> Operand:
    """Images of another shape."""
    x, shape = c.input(rank=4), c.ints(1)[-3:]
    if len(shape) != 3:
        c.fail(f"its shape {shape} is not [C, H, W]", AGAIN)
    if not c.params.integer(2):
        return c.reshape(x, [x.shape[0], *shape])
    made = c.reshape(c.transpose(x, [0, 2, 3, 1]), [x.shape[0], *shape[1:], shape[0]])
    return c.transpose(made, [0, 3, 1, 2])


@layer(301, "flatten")
def flatten(c: NetworkCall) -> Operand:
    """Images as channels of one pixel."""
    x = c.input(rank=4)
    x = c.transpose(x, [0, 2, 3, 1]) if c.params.integer(1) else x
    size = x.shape[1] * x.shape[2] * x.shape[3]
    return c.reshape(x, [x.shape[0], size, 1, 1])


@layer(310, "permute")
def permute(c: NetworkCall) -> Operand:
    """Dimensions of images in another order; the sequence, which Weft leaves out, stays first."""
    order = c.ints(1)
    if sorted(order) != [0, 1, 2, 3] or order[0] != 0:
        c.fail(f"the order {order} moves the sequence's dimension, which is not supported", AGAIN)
    return c.transpose(c.input(rank=4), order)


@layer(320, "concat")
def concat(c: NetworkCall) -> Operand:
    """Images one after another in their channels."""
    if c.params.flag(100):
        c.fail("sequences joined one after another are not supported", AGAIN)
    return concat_of(c, c.inputs, max(c.input().rank - 3, 0))


@layer(980, "concatND")
def concat_nd(c: NetworkCall) -> Operand:
    """Tensors one after another along an axis."""
    axis = c.axis_of(c.integer(1), c.input().rank)
    return interleaved(c, c.inputs, axis) if c.params.flag(2) else concat_of(c, c.inputs, axis)


@layer(925, "stack")
def stack(c: NetworkCall) -> Operand:
    """Tensors in a new dimension."""
    return stack_of(c, c.inputs, c.axis_of(c.integer(1), c.input().rank + 1))


@layer(330, "split")
def split(c: NetworkCall) -> tuple[Operand, ...]:
    """Images in equal parts of their channels."""
    axis = max(c.input().rank - 3, 0)
    return split_equally(c, c.input(), axis, _pieces(c, 1))


@layer(975, "splitND")
def split_nd(c: NetworkCall) -> tuple[Operand, ...]:
    """Parts along an axis."""
    axis = c.axis_of(c.integer(1), c.input().rank)
    sizes = c.ints(3)
    return split_axis(c, c.input(), axis, sizes) if sizes else split_equally(c, c.input(), axis, _pieces(c, 2))


def _pieces(c: NetworkCall, number: int) -> int:
    """Returns how many pieces a parameter asks for, one for each result; so a damaged one does not make millions of them."""
    count = c.integer(number)
    if count != c.outputs:
        c.fail(f"it makes {count} pieces, and has {c.outputs} results", AGAIN)
    return count


@layer(985, "transpose")
def transpose(c: NetworkCall) -> Operand:
    """Dimensions in another order."""
    return c.transpose(c.input(), c.ints(1))


@layer(1140, "reshapeStatic")
def reshape_static(c: NetworkCall) -> Operand:
    """The elements in another shape."""
    return reshape_open(c, c.input(), c.ints(1))


@layer(1150, "rankPreservingReshape")
def rank_preserving_reshape(c: NetworkCall) -> Operand:
    """The elements in another shape of as many dimensions; 0 keeps a size."""
    sizes = [c.input().shape[d] if n == 0 else n for d, n in enumerate(c.ints(1))]
    return reshape_open(c, c.input(), sizes)


@layer(1120, "squeeze")
def squeeze(c: NetworkCall) -> Operand:
    """Without dimensions of size one."""
    x = c.input()
    ones = [d for d, s in enumerate(x.shape) if getattr(s, "value", None) == 1]
    axes = ones if c.params.flag(2) else [c.axis_of(a, x.rank) for a in c.ints(1)]
    return c.reshape(x, [s for d, s in enumerate(x.shape) if d not in axes])


@layer(1125, "expandDims")
def expand_dims(c: NetworkCall) -> Operand:
    """New dimensions of size one."""
    x, axes = c.input(), c.ints(1)
    places = {c.axis_of(a, x.rank + len(axes)) for a in axes}
    sizes = iter(x.shape)
    return c.reshape(x, [1 if d in places else next(sizes) for d in range(x.rank + len(places))])


@layer(1130, "flattenTo2D")
def flatten_to_2d(c: NetworkCall) -> Operand:
    """The dimensions before an axis as one, and those from it on."""
    x = c.input()
    axis = c.axis_of(c.integer(1), x.rank)
    return c.reshape(x, [total(x.shape[:axis]), total(x.shape[axis:])])


@layer(995, "sliceStatic")
def slice_static(c: NetworkCall) -> Operand:
    """Every so many elements between two places; masks leave out ends, or drop dimensions."""
    x = c.input()
    no = [0] * x.rank
    masks = [c.params.integers(n) or no for n in (2, 4, 6)]
    return slice_masked(c, x, c.ints(1), c.ints(3), c.ints(5), masks)


@layer(350, "slice")
def slice_of_axis(c: NetworkCall) -> Operand:
    """Every so many channels, rows or columns between two places."""
    x = c.input()
    axis = x.rank - 3 + c.params.integer(4)
    if not 0 <= axis < x.rank:
        c.fail(f"it slices dimension {axis - x.rank} of {x!r}", AGAIN)
    return slice_axes(c, x, [axis], [c.integer(1)], [c.integer(2)], [c.integer(3, 1)])


@layer(290, "loadConstant")
def load_constant(c: NetworkCall) -> Operand:
    """Numbers of an image."""
    shape = c.ints(1)
    return c.reshape(c.weight(2, shape), [1, *shape])


@layer(1070, "loadConstantND")
def load_constant_nd(c: NetworkCall) -> Operand:
    """Numbers."""
    return c.weight(2, c.ints(1))


@layer(1350, "layerNormalization")
def layer_normalization(c: NetworkCall) -> Operand:
    """Normalised over the last dimensions."""
    shape = c.ints(1)
    axis = c.input().rank - len(shape)
    return c.add(
        "layer_norm", c.input(), c.weight(3, shape), c.weight(4, shape), axis=axis, epsilon=c.params.number(2, 1e-5)
    )


def _reduction(operator: str) -> Layer:
    def translate(c: NetworkCall) -> Operand:
        x = c.input()
        axes = range(x.rank) if c.params.flag(3) else [c.axis_of(a, x.rank) for a in c.ints(1)]
        return c.add(operator, x, axes=tuple(sorted(set(axes))), keepdims=c.params.flag(2))

    return translate


layer(1250, "reduceL1")(_reduction("reduce_l1"))
layer(1255, "reduceL2")(_reduction("reduce_l2"))
layer(1260, "reduceMax")(_reduction("reduce_max"))
layer(1265, "reduceMin")(_reduction("reduce_min"))
layer(1270, "reduceSum")(_reduction("reduce_sum"))
layer(1275, "reduceProd")(_reduction("reduce_prod"))
layer(1280, "reduceMean")(_reduction("reduce_mean"))
layer(1285, "reduceLogSum")(_reduction("reduce_log_sum"))
layer(1290, "reduceSumSquare")(_reduction("reduce_sum_square"))
layer(1295, "reduceLogSumExp")(_reduction("reduce_log_sum_exp"))


@layer(280, "reduce")
def reduce(c: NetworkCall) -> Operand:
    """Images reduced over some of their dimensions."""
    x = c.input(rank=4)
    axes = {0: (1, 2, 3), 1: (2, 3), 2: (1,), 3: (2,), 4: (3,)}[c.params.integer(3)]
    mode = c.params.integer(1)
    if mode == 9:
        if len(axes) != 1:
            c.fail("its mode ARGMAX reduces several dimensions", AGAIN)
        return c.cast(c.add("argmax", x, axis=axes[0], keepdims=True, last=False), x.dtype)
    if mode == 3:
        x = c.add("log", c.add("add", x, c.scalar(c.params.number(2) or EPSILON, x.dtype)))
    names = ("sum", "mean", "prod", "sum", "sum_square", "l1", "l2", "max", "min")
    return c.add(f"reduce_{names[mode]}", x, axes=axes, keepdims=True)


@layer(270, "dot")
def dot(c: NetworkCall) -> Operand:
    """The sums of products over the channels, or the cosines between the two."""
    x, y = c.inputs
    axis = (max(x.rank - 3, 0),)
    if c.params.flag(1):
        x, y = (c.add("div", v, c.add("reduce_l2", v, axes=axis, keepdims=True)) for v in (x, y))
    return c.add("reduce_sum", c.add("mul", x, y), axes=axis, keepdims=True)
