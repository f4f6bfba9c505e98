"""Ragged tensors, as values and the places at which their rows begin: made dense, ranges of rows, and rows by their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.frontends.tensorflow_operators.call import Call, Results
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.sequences import stack
from weft.ir import ExprLike
from weft.support.dtypes import i64


@dataclass(frozen=True)
class _Rows:
    """One ragged dimension: of each element its row and its place in that, and of each row its length."""

    row: Operand
    place: Operand
    lengths: Operand


@translates("RaggedTensorToTensor")
def to_tensor(c: Call) -> Operand:
    """The values in a dense tensor, rows filled up with a default, and cut where it has a smaller shape."""
    values, default = c.tensor(1), c.tensor(2)
    levels, first = _partitions(c, values.shape[0])
    count = len(levels) + 1
    wanted = c.sizes(0, "the shape of the tensor") if c.tensor(0).rank else []
    bounds = [first, *[_longest(c, level.lengths) for level in levels]]
    sizes = [_of_size(wanted, d) for d in range(count)]
    whole = [b if s is None else _larger(c, s, b) for s, b in zip(sizes, bounds, strict=True)]
    tail = values.shape[1:]
    at = [levels[0].row, levels[0].place]
    for level in levels[1:]:
        at = [*[c.add("gather", v, level.row, axis=0) for v in at], level.place]
    shape = (*whole, *tail)
    filled = c.add("expand", c.reshape(default, [*[1] * (len(shape) - default.rank), *default.shape]), shape=shape)
    y = c.add("scatter_nd", filled, stack(c, at, 1), values, reduction="none")
    cut = [(d, s) for d, s in enumerate(sizes) if s is not None]
    if not cut:
        return y
    axes, ends = tuple(d for d, _ in cut), tuple(s for _, s in cut)
    return c.add("slice", y, starts=(0,) * len(cut), ends=ends, axes=axes, steps=(1,) * len(cut))


def _of_size(wanted: Sequence[ExprLike], d: int) -> ExprLike | None:
    """Returns the size that is wanted of a dimension, None where it is as large as its longest row."""
    size = wanted[d] if d < len(wanted) else -1
    return None if isinstance(size, int) and size < 0 else size


def _larger(c: Call, size: ExprLike, bound: ExprLike) -> ExprLike:
    if isinstance(size, int) and isinstance(bound, int):
        return max(size, bound)
    most = c.add("maximum", c.size(size), c.size(bound))
    return c.late_number(c.reshape(most, []), "width", "the longest row of a ragged tensor")


def _longest(c: Call, lengths: Operand) -> ExprLike:
    some = c.add("concat", lengths, c.reshape(c.scalar(0, i64), [1]), axis=0)
    most = c.add("reduce_max", some, axes=(0,), keepdims=False)
    return c.late_number(most, "width", "the longest row of a ragged tensor")


def _partitions(c: Call, count: ExprLike) -> tuple[list[_Rows], ExprLike]:
    """Returns the ragged dimensions, the outer one first, whose innermost has *count* elements, and the number of rows."""
    kinds = c.value("row_partition_types", (list, tuple))
    names = [k.decode() if isinstance(k, bytes) else k for k in kinds]
    given = [c.cast(c.tensor(3 + k), i64) for k in range(len(names))]
    if names[:1] == ["FIRST_DIM_SIZE"] and len(names) > 1 and set(names[1:]) == {"VALUE_ROWIDS"}:
        first = rows = c.late_number(c.reshape(given[0], []), "rows", "the number of rows of a ragged tensor")
        levels = list[_Rows]()
        for ids in given[1:]:
            levels.append(_of_ids(c, ids, rows))
            rows = ids.shape[0]
        return levels, first
    if not names or set(names) != {"ROW_SPLITS"}:
        c.fail(f"its row_partition_types are {names}", "build the model with row splits or row numbers")
    counts = [splits.shape[0] - 1 for splits in given[1:]] + [count]
    return [_of_splits(c, s, n) for s, n in zip(given, counts, strict=True)], given[0].shape[0] - 1


def _of_ids(c: Call, row: Operand, rows: ExprLike) -> _Rows:
    """Returns the dimension of *rows* rows, the number of which each element has in *row*, in order."""
    nothing, ones = (c.add("full", shape=(n,), value=v, dtype=i64) for n, v in ((rows, 0), (row.shape[0], 1)))
    lengths = c.add("scatter_nd", nothing, c.reshape(row, [row.shape[0], 1]), ones, reduction="add")
    begins = c.add("sub", c.add("cumsum", lengths, axis=0), lengths)
    return _Rows(row, _places(c, row, begins), lengths)


def _of_splits(c: Call, splits: Operand, count: ExprLike) -> _Rows:
    """Returns the dimension of *count* elements, whose rows lie between *splits*."""
    begins, ends = _begins(c, splits), _ends(c, splits)
    row = _rows_of(c, ends, count)
    return _Rows(row, _places(c, row, begins), c.add("sub", ends, begins))


def _rows_of(c: Call, ends: Operand, count: ExprLike) -> Operand:
    """Returns the row of each of *count* elements: how many rows end before it."""
    nothing = c.add("full", shape=(count + 1,), value=0, dtype=i64)
    ones = c.add("full", shape=ends.shape, value=1, dtype=i64)
    ended = c.add("scatter_nd", nothing, c.reshape(ends, [ends.shape[0], 1]), ones, reduction="add")
    row = c.add("cumsum", ended, axis=0)
    return c.add("slice", row, starts=(0,), ends=(count,), axes=(0,), steps=(1,))


def _places(c: Call, row: Operand, begins: Operand) -> Operand:
    return c.add("sub", c.add("range", start=0, size=row.shape[0]), c.add("gather", begins, row, axis=0))


def _begins(c: Call, splits: Operand) -> Operand:
    return c.add("slice", splits, starts=(0,), ends=(splits.shape[0] - 1,), axes=(0,), steps=(1,))


def _ends(c: Call, splits: Operand) -> Operand:
    return c.add("slice", splits, starts=(1,), ends=(splits.shape[0],), axes=(0,), steps=(1,))


def _laid_out(c: Call, lengths: Operand) -> tuple[Operand, _Rows]:
    """Returns the splits of rows of *lengths*, one after another, and their elements."""
    ends = c.add("cumsum", lengths, axis=0)
    splits = c.add("concat", c.reshape(c.scalar(0, i64), [1]), ends, axis=0)
    last = c.add("slice", splits, starts=(-1,), ends=(2**62,), axes=(0,), steps=(1,))
    count = c.late_number(c.reshape(last, []), "elements", "the number of elements of a ragged tensor")
    row = _rows_of(c, ends, count)
    return splits, _Rows(row, _places(c, row, _begins(c, splits)), lengths)


@translates("RaggedRange", outputs=("rt_nested_splits", "rt_dense_values"))
def ragged_range(c: Call) -> Results:
    """Rows of numbers from starts to before limits, in steps."""
    given = [c.tensor(k) for k in range(3)]
    if not given[0].dtype.is_int:
        c.fail(f"it makes ranges of {given[0].dtype}", "make ranges of integers")
    rows = next((x.shape[0] for x in given if x.rank), 1)
    start, limit, step = (c.cast(c.add("expand", c.reshape(x, x.shape or [1]), shape=(rows,)), i64) for x in given)
    far = c.add("sub", c.add("add", c.add("sub", limit, start), step), c.add("sign", step))
    lengths = c.add("maximum", c.add("div", far, step), c.scalar(0, i64))
    splits, laid = _laid_out(c, lengths)
    steps = c.add("mul", laid.place, c.add("gather", step, laid.row, axis=0))
    numbers = c.add("add", c.add("gather", start, laid.row, axis=0), steps)
    return c.cast(splits, c.dtype("Tsplits", i64)), c.cast(numbers, given[0].dtype)


@translates("RaggedGather", outputs=("output_nested_splits", "output_dense_values"))
def ragged_gather(c: Call) -> Results:
    """The rows of a ragged tensor with some numbers."""
    depth = c.integer("PARAMS_RAGGED_RANK")
    values, numbers = c.tensor(depth), c.cast(c.tensor(depth + 1), i64)
    if numbers.rank != 1:
        c.fail(f"its indices should have 1 dimension: {numbers!r}", "gather rows by a vector of numbers")
    made = list[Operand]()
    for k in range(depth):
        splits = c.cast(c.tensor(k, 1), i64)
        begins, ends = (c.add("gather", v, numbers, axis=0) for v in (_begins(c, splits), _ends(c, splits)))
        out, laid = _laid_out(c, c.add("sub", ends, begins))
        made.append(c.cast(out, c.tensor(k).dtype))
        numbers = c.add("add", c.add("gather", begins, laid.row, axis=0), laid.place)
    return (*made, c.add("gather", values, numbers, axis=0))
