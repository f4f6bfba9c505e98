"""Sparse tensors with others: sums, products and extremes at the places that they have, pieces, and softmax."""

from __future__ import annotations

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, Results
from weft.frontends.tensorflow_operators.ops.sparse_and_ragged.sparse import positions, sizes_of
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand, total
from weft.graph.composites.selection import true_positions
from weft.graph.composites.sequences import concat, element
from weft.ir import as_expr
from weft.support.dtypes import bool_, i64


@translates("SparseReduceSum")
def sparse_sums(c: Call) -> Operand:
    """The sums of a sparse tensor along dimensions, as a dense tensor."""
    sizes = sizes_of(c, 2)
    axes = tuple(c.axes_at(3, len(sizes))) or tuple(range(len(sizes)))
    return c.add("reduce_sum", _dense(c, 0), axes=axes, keepdims=c.flag("keep_dims"))


def _dense(c: Call, k: int) -> Operand:
    """Returns the sparse tensor whose indices, values and shape are inputs from *k* on, as a dense tensor."""
    indices, values = c.tensor(k, 2), c.tensor(k + 1, 1)
    zeros = c.add("full", shape=tuple(sizes_of(c, k + 2)), value=0, dtype=values.dtype)
    return c.add("scatter_nd", zeros, indices, values, reduction="add")


_WITH_DENSE = {"SparseDenseCwiseAdd": "add", "SparseDenseCwiseMul": "mul", "SparseDenseCwiseDiv": "div"}


@translates(*_WITH_DENSE)
def sparse_with_dense(c: Call) -> Operand:
    """The values of a sparse tensor with the elements of a dense one at their places, which is broadcast to its shape."""
    indices, values = c.tensor(0, 2), c.tensor(1, 1)
    dense = c.add("expand", c.tensor(3), shape=tuple(sizes_of(c, 2)))
    return c.add(_WITH_DENSE[c.op], values, c.add("gather_nd", dense, indices, batch_dims=0))


_UNIONS = {"SparseSparseMaximum": "maximum", "SparseSparseMinimum": "minimum", "SparseAdd": "add"}


@translates("SparseAdd", outputs=("sum_indices", "sum_values", "sum_shape"))
@translates("SparseSparseMaximum", "SparseSparseMinimum", outputs=("output_indices", "output_values"))
def sparse_union(c: Call) -> Results:
    """The sum of two sparse tensors, or their greater or lesser elements, at the places that either has."""
    sizes = sizes_of(c, 2)
    parts = [_dense(c, 0), _dense(c, 3)]
    nowhere = c.add("full", shape=tuple(sizes), value=0, dtype=i64)
    for k in (0, 3):
        ones = c.add("full", shape=c.tensor(k + 1, 1).shape, value=1, dtype=i64)
        nowhere = c.add("scatter_nd", nowhere, c.tensor(k, 2), ones, reduction="max")
    y, there = c.add(_UNIONS[c.op], *parts), c.cast(nowhere, bool_)
    if c.op == "SparseAdd":
        small = c.add("less", c.add("abs", y), c.cast(c.tensor(6), y.dtype))
        there = c.add("logical_and", there, c.add("logical_not", small))
    flat = true_positions(c, there)
    rows = c.transpose(c.cast(c.add("unravel_index", flat, shape=tuple(sizes)), i64), [1, 0])
    values = c.add("gather", c.reshape(y, [total(y.shape)]), flat, axis=0)
    return (rows, values, c.vector(sizes)) if c.op == "SparseAdd" else (rows, values)


@translates("SparseConcat", outputs=("output_indices", "output_values", "output_shape"))
def sparse_concat(c: Call) -> Results:
    """Sparse tensors one after another along a dimension."""
    n = c.integer("N", len(c.inputs) // 3)
    if n < 1 or len(c.inputs) != 3 * n:
        c.fail(f"it has {len(c.inputs)} inputs for {n} sparse tensors", SAVE_AGAIN)
    shapes = [sizes_of(c, 2 * n + k) for k in range(n)]
    d = c.axis_of(c.integer("concat_dim"), len(shapes[0]))
    whole, moved = list(shapes[0]), list[Operand]()
    whole[d] = 0
    for k, shape in enumerate(shapes):
        by = [c.size(whole[d] if axis == d else 0) for axis in range(len(shape))]
        offset = c.reshape(c.add("concat", *[c.reshape(v, [1]) for v in by], axis=0), [1, len(shape)])
        moved.append(c.add("add", c.tensor(k, 2), offset))
        whole[d] = whole[d] + shape[d]
    indices, values = concat(c, moved, 0), concat(c, [c.tensor(n + k, 1) for k in range(n)], 0)
    order = c.add("argsort", positions(c, indices, whole), axis=0)
    return c.add("gather", indices, order, axis=0), c.add("gather", values, order, axis=0), c.vector(whole)


@translates("SparseSlice", outputs=("output_indices", "output_values", "output_shape"))
def sparse_slice(c: Call) -> Results:
    """The elements of a sparse tensor within a box, counted from its corner."""
    indices, values = c.tensor(0, 2), c.tensor(1, 1)
    shape, begin, size = (sizes_of(c, k) for k in (2, 3, 4))
    first = c.reshape(c.vector(begin), [1, len(begin)])
    last = c.reshape(c.vector([b + s for b, s in zip(begin, size, strict=True)]), [1, len(begin)])
    inside = c.add("logical_and", c.add("less_equal", first, indices), c.add("less", indices, last))
    kept = c.add("reduce_min", c.cast(inside, i64), axes=(1,), keepdims=False)
    chosen = true_positions(c, kept)
    rows = c.add("sub", c.add("gather", indices, chosen, axis=0), first)
    left = [c.add("sub", c.size(n), c.size(b)) for n, b in zip(shape, begin, strict=True)]
    most = [c.add("minimum", c.size(s), rest) for s, rest in zip(size, left, strict=True)]
    sizes = c.add("concat", *[c.reshape(v, [1]) for v in most], axis=0)
    return rows, c.add("gather", values, chosen, axis=0), sizes


@translates("SparseSoftmax")
def sparse_softmax(c: Call) -> Operand:
    """The softmax of the values in each row of the last dimension, over those that are there."""
    indices, values, sizes = c.tensor(0, 2), c.tensor(1, 1), sizes_of(c, 2)
    count = total([as_expr(s) for s in sizes[:-1]])
    outer = [element(c, indices, 1, k) for k in range(len(sizes) - 1)]
    row: Operand = outer[0]
    for axis, v in enumerate(outer[1:], 1):
        row = c.add("add", c.add("mul", row, c.size(sizes[axis])), v)
    at = c.reshape(row, [row.shape[0], 1])
    lowest = c.add("full", shape=(count,), value=-3e38, dtype=values.dtype)
    most = c.add("gather", c.add("scatter_nd", lowest, at, values, reduction="max"), row, axis=0)
    e = c.add("exp", c.add("sub", values, most))
    zeros = c.add("full", shape=(count,), value=0, dtype=values.dtype)
    return c.add("div", e, c.add("gather", c.add("scatter_nd", zeros, at, e, reduction="add"), row, axis=0))
