"""Layers that compare, choose, order and look up elements, and those that repeat them."""

from __future__ import annotations

from weft.frontends.coreml.call import AGAIN
from weft.frontends.coreml.layer_table import Layer, layer
from weft.frontends.coreml.network_call import NetworkCall
from weft.graph.builder import Operand
from weft.graph.composites.ordering import top_k
from weft.graph.composites.slicing import FAR, slice_axes
from weft.support.dtypes import bool_, f32, i64


def _other(c: NetworkCall, alpha: int) -> Operand:
    """Returns the second input, or the number that it is compared to."""
    return c.input(1) if len(c.inputs) > 1 else c.scalar(c.params.number(alpha), c.input().dtype)


def _compared(op: str, *, swapped: bool = False, negated: bool = False, alpha: int = 2) -> Layer:
    """A comparison that gives ones and zeros."""

    def translate(c: NetworkCall) -> Operand:
        a, b = c.input(0), _other(c, alpha)
        found = c.add(op, *((b, a) if swapped else (a, b)))
        return c.cast(c.add("logical_not", found) if negated else found, f32)

    return translate


layer(815, "equal")(_compared("equal", alpha=1))
layer(820, "notEqual")(_compared("equal", negated=True, alpha=1))
layer(825, "lessThan")(_compared("less"))
layer(827, "lessEqual")(_compared("less_equal"))
layer(830, "greaterThan")(_compared("less", swapped=True))
layer(832, "greaterEqual")(_compared("less_equal", swapped=True))


def _logic(op: str) -> Layer:
    return lambda c: c.cast(c.add(op, *[c.cast(x, bool_) for x in c.inputs]), f32)


for _number, _name, _op in (
    (840, "logicalOr", "logical_or"),
    (845, "logicalXor", "logical_xor"),
    (850, "logicalNot", "logical_not"),
    (855, "logicalAnd", "logical_and"),
):
    layer(_number, _name)(_logic(_op))


@layer(1330, "whereBroadcastable")
def where(c: NetworkCall) -> Operand:
    """Elements of one tensor or of another."""
    return c.add("where", c.cast(c.input(0), bool_), c.input(1), c.input(2))


@layer(865, "modBroadcastable")
def mod(c: NetworkCall) -> Operand:
    """The remainder of a division, of the divisor's sign."""
    return c.add("floor_mod", c.input(0), c.input(1))


@layer(895, "floorDivBroadcastable")
def floor_div(c: NetworkCall) -> Operand:
    """The integer below a quotient."""
    return c.add("floor", c.add("div", c.input(0), c.input(1)))


@layer(700, "exp2")
def exp2(c: NetworkCall) -> Operand:
    """Two to the power of each element."""
    return c.add("power", c.scalar(2, c.input().dtype), c.input())


@layer(920, "tile")
def tile(c: NetworkCall) -> Operand:
    """The tensor repeated along each dimension."""
    if len(c.inputs) > 1:
        c.fail("numbers of repetitions that a run computes are not supported", "convert the model to an mlprogram")
    return c.add("tile", c.input(), repeats=c.ints(1))


def _at_indices(c: NetworkCall, op: str) -> Operand:
    """Returns the elements that *op* gathers at the indices of a layer, along its axis."""
    x = c.input()
    axis = c.axis_of(c.integer(1), x.rank)
    return c.add(op, x, _inside(c, c.input(1), x, axis), axis=axis)


def _inside(c: NetworkCall, indices: Operand, x: Operand, axis: int) -> Operand:
    """Returns indices along an axis, of which those below zero count from its end."""
    at, size = c.cast(indices, i64), c.cast(c.size(x.shape[axis]), i64)
    return c.add("where", c.add("less", at, c.scalar(0, i64)), c.add("add", at, size), at)


@layer(930, "gather")
def gather(c: NetworkCall) -> Operand:
    """The slices at indices along an axis."""
    return _at_indices(c, "gather")


@layer(940, "gatherND")
def gather_nd(c: NetworkCall) -> Operand:
    """The slices at indices, whose last dimension has the coordinates."""
    return c.add("gather_nd", c.input(0), c.cast(c.input(1), i64))


@layer(952, "gatherAlongAxis")
def gather_along_axis(c: NetworkCall) -> Operand:
    """The element at an index along an axis, for each place of the indices."""
    return _at_indices(c, "gather_elements")


@layer(960, "reverse")
def reverse(c: NetworkCall) -> Operand:
    """The elements backwards along the axes that are marked."""
    axes = [d for d, v in enumerate(c.ints(1)) if v]
    return slice_axes(c, c.input(), axes, [-1] * len(axes), [-FAR] * len(axes), [-1] * len(axes))


@layer(1015, "topK")
def largest(c: NetworkCall) -> tuple[Operand, ...]:
    """The largest, or smallest, elements along an axis, and where they are."""
    x = c.input()
    if len(c.inputs) > 1:
        c.fail("a number of elements that a run computes is not supported", "convert the model to an mlprogram")
    found = top_k(c, x, c.integer(2, 1), c.axis_of(c.integer(1), x.rank), largest=not c.params.flag(3))
    return (found[0], c.cast(found[1], f32))[: c.outputs]


def _extreme(op: str) -> Layer:
    """Where the largest, or the smallest, element along an axis is."""

    def translate(c: NetworkCall) -> Operand:
        axis = c.axis_of(c.integer(1), c.input().rank)
        return c.cast(c.add(op, c.input(), axis=axis, keepdims=not c.params.flag(2)), f32)

    return translate


layer(1020, "argMin")(_extreme("argmin"))
layer(1025, "argMax")(_extreme("argmax"))


@layer(1461, "argSort")
def argsort(c: NetworkCall) -> Operand:
    """Where the elements in order along an axis were."""
    axis = c.axis_of(c.integer(1), c.input().rank)
    return c.cast(c.add("argsort", c.input(), axis=axis, descending=c.params.flag(2)), f32)


@layer(1450, "oneHot")
def one_hot(c: NetworkCall) -> Operand:
    """A new dimension with one number at each index, and another elsewhere."""
    x = c.input()
    axis, p = c.axis_of(c.integer(2), x.rank + 1), c.params
    numbers = [c.reshape(c.scalar(v, f32), [1]) for v in (p.number(4), p.number(3) or 1.0)]
    return c.add("one_hot", c.cast(x, i64), c.add("concat", *numbers, axis=0), depth=c.integer(1), axis=axis)


@layer(1455, "cumSum")
def cumsum(c: NetworkCall) -> Operand:
    """The sum of the elements up to each along an axis, itself among them or not, from one end or the other."""
    axis = c.axis_of(c.integer(1), c.input().rank)
    return c.add("cumsum", c.input(), axis=axis, exclusive=c.params.flag(2), reverse=c.params.flag(3))


@layer(150, "embedding")
def embedding(c: NetworkCall) -> Operand:
    """The rows that indices [..., 1, 1, 1] name, as channels."""
    x = c.input(rank=4 if c.blobs_have_five_dimensions else 5)
    made = _rows(c, c.reshape(x, x.shape[:-3]), c.integer(1), c.integer(2), biased=c.params.flag(10))
    return c.reshape(made, [*x.shape[:-3], c.integer(2), 1, 1])


@layer(1040, "embeddingND")
def embedding_nd(c: NetworkCall) -> Operand:
    """The rows that indices [..., 1] name."""
    x = c.input()
    return _rows(c, c.reshape(x, x.shape[:-1]), c.integer(1), c.integer(2), biased=c.params.flag(3))


def _rows(c: NetworkCall, at: Operand, count: int, width: int, *, biased: bool) -> Operand:
    rows = c.transpose(c.weight(20, (width, count)), [1, 0])
    made = c.add("gather", rows, c.cast(at, i64), axis=0)
    return c.add("add", made, c.weight(21, (width,))) if biased else made


def _triangle(*, upper: bool) -> Layer:
    """A triangle of matrices, zero elsewhere."""
    return lambda c: c.add("trilu", c.input(), k=c.integer(1), upper=upper)


layer(1320, "lowerTriangular")(_triangle(upper=False))
layer(1325, "upperTriangular")(_triangle(upper=True))


@layer(1315, "matrixBandPart")
def band(c: NetworkCall) -> Operand:
    """The diagonals from so many below the middle one to so many above it; a number below zero keeps all."""
    x, below, above = c.input(), c.integer(1), c.integer(2)
    x = x if below < 0 else c.add("trilu", x, k=-below, upper=True)
    return x if above < 0 else c.add("trilu", x, k=above, upper=False)


@layer(1065, "getShape")
def get_shape(c: NetworkCall) -> Operand:
    """The sizes as a vector."""
    return c.cast(c.vector(c.input().shape), f32)


@layer(1080, "fillLike")
def fill_like(c: NetworkCall) -> Operand:
    """One number in a tensor's shape."""
    return c.add("full", shape=tuple(c.input().shape), value=c.params.number(1), dtype=f32)


@layer(1100, "broadcastToLike")
def broadcast_to_like(c: NetworkCall) -> Operand:
    """The elements repeated to another tensor's shape."""
    return c.add("expand", c.input(0), shape=tuple(c.input(1).shape))


@layer(1105, "broadcastToStatic")
def broadcast_to_static(c: NetworkCall) -> Operand:
    """The elements repeated to a shape."""
    return c.add("expand", c.input(), shape=tuple(c.ints(1)))


@layer(1135, "reshapeLike")
def reshape_like(c: NetworkCall) -> Operand:
    """The elements in another tensor's shape."""
    return c.reshape(c.input(0), c.input(1).shape)


@layer(1155, "constantPad")
def constant_pad(c: NetworkCall) -> Operand:
    """A number around a tensor, so many before and after it along each dimension."""
    amounts = c.ints(2)
    if c.params.flag(3) or len(c.inputs) > 1 or len(amounts) != 2 * c.input().rank:
        c.fail("pads to a size, or that a run computes, are not supported", AGAIN)
    return c.add("pad", c.input(), pads=(*amounts[::2], *amounts[1::2]), mode="constant", value=c.params.number(1))
