"""Sparse tensors, as indices, values and a shape: made dense, multiplied, added, and rows summed by segments."""

from __future__ import annotations

from weft.frontends.tensorflow_operators.call import Call
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.sequences import element
from weft.support.dtypes import f32


@translates("SparseToDense")
def sparse_to_dense(c: Call) -> Operand:
    """A tensor of one number, with others at indices."""
    indices, values, default = c.tensor(0), c.tensor(2), c.tensor(3)
    shape = tuple(c.sizes(1, "the shape of the result"))
    if indices.rank < 2:
        indices = c.reshape(indices, [indices.shape[0] if indices.rank else 1, 1])
    spread = c.add("expand", values, shape=(indices.shape[0],))
    filled = c.add("expand", c.reshape(default, [1] * len(shape)), shape=shape)
    return c.add("scatter_nd", filled, indices, spread, reduction="none")


@translates("SparseTensorDenseAdd")
def sparse_plus_dense(c: Call) -> Operand:
    """The sum of a sparse tensor and a dense one."""
    return c.add("scatter_nd", c.tensor(3), c.tensor(0, 2), c.tensor(1, 1), reduction="add")


@translates("SparseTensorDenseMatMul")
def sparse_times_dense(c: Call) -> Operand:
    """The product of a sparse matrix and a dense one, either of which may be given transposed."""
    indices, values, dense = c.tensor(0, 2), c.tensor(1, 1), c.tensor(3, 2)
    rows, columns = c.sizes(2, "the shape of the sparse matrix")
    of_row, of_column = (element(c, indices, 1, k) for k in range(2))
    if c.flag("adjoint_a"):
        rows, of_row, of_column = columns, of_column, of_row
    dense = c.transpose(dense, [1, 0]) if c.flag("adjoint_b") else dense
    terms = c.add("mul", c.add("gather", dense, of_column, axis=0), c.reshape(values, [values.shape[0], 1]))
    zeros = c.add("full", shape=(rows, dense.shape[1]), value=0, dtype=dense.dtype)
    return c.add("scatter_nd", zeros, c.reshape(of_row, [of_row.shape[0], 1]), terms, reduction="add")


_SUMS = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")


@translates(*_SUMS, *[f"{name}WithNumSegments" for name in _SUMS])
def sparse_segments(c: Call) -> Operand:
    """The sums of chosen rows by segments, or their means, or the sums divided by the root of their number."""
    x, ids = c.tensor(0), c.tensor(2, 1)
    rows = c.add("gather", x, c.tensor(1, 1), axis=0)
    if c.op.endswith("NumSegments"):
        count = int(c.number_at(3, "the number of segments"))
    else:
        count = int(c.numbers(2, "the segments").max(initial=-1)) + 1
    places = c.reshape(ids, [ids.shape[0], 1])

    def summed(rows: Operand) -> Operand:
        zeros = c.add("full", shape=(count, *rows.shape[1:]), value=0, dtype=rows.dtype)
        return c.add("scatter_nd", zeros, places, rows, reduction="add")

    made = summed(rows)
    if "Sum" in c.op.removesuffix("WithNumSegments"):
        return made
    each = summed(c.add("full", shape=(ids.shape[0],), value=1, dtype=f32))
    by = c.add("maximum", each if "Mean" in c.op else c.add("sqrt", each), c.scalar(1, f32))
    return c.add("div", made, c.cast(c.reshape(by, [count, *[1] * (x.rank - 1)]), x.dtype))
