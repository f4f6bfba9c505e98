"""Operators that are TensorFlow's with other inputs, or other options."""

from __future__ import annotations

from weft.frontends.tensorflow_operators.call import Results
from weft.frontends.tflite.call import LiteCall
from weft.frontends.tflite.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.slicing import reshape_open
from weft.support.dtypes import i64


@translates("QUANTIZE", "DEQUANTIZE")
def converted(c: LiteCall) -> Operand:
    """The numbers themselves: the tensors say how integers, or floats of 16 bits, stand for them."""
    return c.as_float(c.tensor())


@translates("DENSIFY")
def densify(c: LiteCall) -> Results:
    """A sparse weight, of which the file has the elements that are not zero: it is dense since it was read."""
    return c.inputs[0] if c.inputs and c.inputs[0] is not None else c.tensor()


@translates("RESHAPE")
def reshape(c: LiteCall) -> Results:
    """Another shape, of an input or an option."""
    if not c.has(1):
        return reshape_open(c, c.tensor(), c.ints("new_shape"))
    return c.of_tensorflow("Reshape")


@translates("CONCATENATION")
def concatenation(c: LiteCall) -> Results:
    """Tensors one after another."""
    axis = c.scalar(c.integer("axis"), i64)
    return c.of_tensorflow("ConcatV2", [*c.tensors(), axis])


@translates("SCATTER_ND")
def scatter_nd(c: LiteCall) -> Results:
    """Zeros with slices added at index tuples."""
    return c.of_tensorflow("ScatterNd", [c.tensor(0), c.tensor(1), c.tensor(2)])


@translates("BITCAST")
def bitcast(c: LiteCall) -> Results:
    """Reads the bits of elements as another type."""
    return c.of_tensorflow("Bitcast", type=c.made[0].dtype)


@translates("SPARSE_TO_DENSE")
def sparse_to_dense(c: LiteCall) -> Operand:
    """One number everywhere, and others at index tuples."""
    indices, values, default = c.tensor(0), c.tensor(2), c.tensor(3)
    shape = tuple(c.sizes(1, "the shape of the result"))
    if indices.rank == 0:
        indices = c.reshape(indices, [1, 1])
    elif indices.rank == 1:
        indices = c.reshape(indices, [*indices.shape, 1] if len(shape) == 1 else [1, *indices.shape])
    updates = c.add("expand", values, shape=(indices.shape[0],))
    return c.add("scatter_nd", c.add("expand", c.reshape(default, []), shape=shape), indices, updates)


@translates("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(c: LiteCall) -> Operand:
    """A tensor with a block replaced, at a place that is moved so that the block is inside."""
    x, update, begin = c.tensor(0), c.tensor(1), c.cast(c.tensor(2, 1), i64)
    last = c.vector([m - n for m, n in zip(x.shape, update.shape, strict=True)])
    at = c.add("maximum", c.add("minimum", begin, last), c.scalar(0, i64))
    whole: Operand | None = None
    for d, size in enumerate(update.shape):
        start = c.add("slice", at, starts=(d,), ends=(d + 1,), axes=(0,), steps=(1,))
        places = c.add("add", c.add("range", start=0, size=size, step=1), start)
        shape = tuple(update.shape)
        spread = c.reshape(places, [size if k == d else 1 for k in range(x.rank)])
        wide = c.reshape(c.add("expand", spread, shape=shape), [*shape, 1])
        whole = wide if whole is None else c.add("concat", whole, wide, axis=x.rank)
    return update if whole is None else c.add("scatter_nd", x, whole, update)


@translates("IF")
def if_(c: LiteCall) -> Results:
    """One of two subgraphs."""
    return c.of_tensorflow("If", c.inputs, then_branch=c.integer("then"), else_branch=c.integer("else"))


@translates("WHILE")
def while_(c: LiteCall) -> Results:
    """A loop of a subgraph while another holds."""
    return c.of_tensorflow("While", c.inputs)


@translates("NON_MAX_SUPPRESSION_V5")
def non_max_suppression_scores(c: LiteCall) -> Results:
    """The boxes that are left, filled up with zeros, their scores, and their number."""
    return c.of_tensorflow("NonMaxSuppressionV5", pad_to_max_output_size=True)


@translates("NON_MAX_SUPPRESSION_V4")
def non_max_suppression(c: LiteCall) -> Results:
    """The boxes that are left, filled up with zeros to the most that there may be, and their number."""
    return c.of_tensorflow("NonMaxSuppressionV4", pad_to_max_output_size=True)


@translates("CAST")
def cast(c: LiteCall) -> Results:
    """Converts elements to the type of the result's tensor; options may leave it out."""
    return c.of_tensorflow("Cast", DstT=c.made[0].dtype)
