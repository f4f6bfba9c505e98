"""Sparse tensors, as indices, values and a shape: made dense, multiplied, added, rows summed by segments, and their indices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, Results
from weft.frontends.tensorflow_operators.ops.reduction import segment_count
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.selection import true_positions
from weft.graph.composites.sequences import element, stack
from weft.ir import Expr, ExprLike, as_expr
from weft.ops import simplify_size
from weft.support.dtypes import bool_, f32, i64


def sizes_of(c: Call, k: int) -> list[int | Expr]:
    """Returns the shape that input *k* is, whose sizes may be computed when the model runs."""
    return c.sizes(k, "the shape") if c.is_known(k) else c.late_sizes(c.tensor(k), "size", "a size of a sparse tensor")


@translates("SparseToDense")
def sparse_to_dense(c: Call) -> Operand:
    """A tensor of one number, with others at indices."""
    indices, values, default = c.tensor(0), c.tensor(2), c.tensor(3)
    shape = tuple(sizes_of(c, 1))
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
    rows, columns = sizes_of(c, 2)
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
    count: ExprLike
    if c.op.endswith("NumSegments"):
        count = c.late_number(c.cast(c.reshape(c.tensor(3), []), i64), "segments", "the number of segments")
    else:
        count = segment_count(c, ids)
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


@translates("SparseReshape", outputs=("output_indices", "output_shape"))
def sparse_reshape(c: Call) -> Results:
    """The indices in another shape, of whose sizes one may be -1, and that shape."""
    indices, old, new = c.tensor(0, 2), c.sizes(1, "the shape"), c.sizes(2, "the new shape")
    open_ = [k for k, size in enumerate(new) if isinstance(size, int) and size == -1]
    if open_:
        rest: Any = reduce(lambda m, n: m * n, [s for k, s in enumerate(new) if k != open_[0]], 1)
        if len(open_) > 1 or (isinstance(rest, int) and rest < 1):
            c.fail(f"its new shape is {new}", SAVE_AGAIN)
        whole = reduce(lambda m, n: m * n, old, 1)
        new[open_[0]] = simplify_size(as_expr(whole) // rest)
    flat = positions(c, indices, old)
    rows = c.add("unravel_index", flat, shape=tuple(new))
    return c.transpose(c.cast(rows, indices.dtype), [1, 0]), c.vector(new)


def positions(c: Call, indices: Operand, sizes: Sequence[Any]) -> Operand:
    """Returns the row-major positions of indices [n, rank] in a shape."""
    if not sizes or c.size(indices.shape[1]).array.item() != len(sizes):
        c.fail(f"its indices {indices!r} are not those of a tensor of {len(sizes)} dimensions", SAVE_AGAIN)
    flat = c.cast(element(c, indices, 1, 0), i64)
    for k, size in enumerate(sizes[1:], 1):
        flat = c.add("add", c.add("mul", flat, c.size(size)), c.cast(element(c, indices, 1, k), i64))
    return flat


@translates("SparseReorder", outputs=("output_indices", "output_values"))
def sparse_reorder(c: Call) -> Results:
    """The indices in row-major order, and their values."""
    indices, values = c.tensor(0, 2), c.tensor(1, 1)
    order = c.add("argsort", positions(c, indices, sizes_of(c, 2)), axis=0)
    return c.add("gather", indices, order, axis=0), c.add("gather", values, order, axis=0)


_FILLED = ("output_indices", "output_values", "empty_row_indicator", "reverse_index_map")


@translates("SparseFillEmptyRows", outputs=_FILLED)
def sparse_fill_empty_rows(c: Call) -> Results:
    """The indices with one of the first column for each row that had none, whose value is a default, by rows.

    Further results tell which rows had none, and where each index went.
    """
    indices, values, default = c.tensor(0, 2), c.tensor(1, 1), c.tensor(3)
    shape = sizes_of(c, 2)
    if not shape or c.size(indices.shape[1]).array.item() != len(shape):
        c.fail(f"its indices {indices!r} are not those of a tensor of {len(shape)} dimensions", SAVE_AGAIN)
    rows, given = element(c, indices, 1, 0), indices.shape[0]
    empty = c.add("logical_not", _are_there(c, rows, shape[0]))
    added = true_positions(c, empty)
    first = [c.cast(added, indices.dtype), *[_zeros(c, added.shape[0], indices)] * (len(shape) - 1)]
    whole = c.add("concat", indices, stack(c, first, 1), axis=0)
    filler = c.add("expand", c.reshape(default, [1]), shape=(added.shape[0],))
    order = c.add("argsort", element(c, whole, 1, 0), axis=0)
    places = c.cast(c.add("argsort", order, axis=0), i64)
    return (
        c.add("gather", whole, order, axis=0),
        c.add("gather", c.add("concat", values, filler, axis=0), order, axis=0),
        empty,
        c.add("slice", places, starts=(0,), ends=(given,), axes=(0,), steps=(1,)),
    )


def _are_there(c: Call, rows: Operand, count: ExprLike) -> Operand:
    """Tells which of *count* rows are among *rows*."""
    nowhere = c.add("full", shape=(count,), value=0, dtype=i64)
    ones = c.add("full", shape=rows.shape, value=1, dtype=i64)
    return c.cast(c.add("scatter_nd", nowhere, c.reshape(rows, [*rows.shape, 1]), ones, reduction="max"), bool_)


def _zeros(c: Call, count: ExprLike, like: Operand) -> Operand:
    return c.add("full", shape=(count,), value=0, dtype=like.dtype)
