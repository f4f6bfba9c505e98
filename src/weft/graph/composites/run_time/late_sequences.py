"""Sequences of tensors of which only a run tells how many there are, and of which shapes.

    seq = [a f32[2, 3], b f32[4]]     becomes     elements f32[10]    those of a, then those of b
                                                  shapes i64[2, 3]    rows (rank, sizes, ones): (2, 2, 3), (1, 4, 1)

The sizes of both tensors are late ones. Operators on sequences are slices and concatenations of the two, so that nothing below
the graph knows of sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import element_count, static_sizes
from weft.graph.composites.run_time.late_shapes import TOO_MANY
from weft.graph.composites.run_time.pieces import in_pieces, of_pieces
from weft.graph.composites.sequences import concat, element
from weft.ir import INDEX, ONE, Expr, as_expr, eq, minimum
from weft.support.dtypes import DType, f64, i64
from weft.support.errors import UnknownValues


@dataclass(frozen=True)
class LateSequence:
    """A sequence: the *elements* of its tensors, and a row of *shapes* for each; *rank* is that of all, where that is known.

    *tail* are the tensors at its end, as far as they are known one by one.
    """

    elements: Operand
    shapes: Operand
    rank: int | None
    tail: tuple[Operand, ...] = ()

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.elements.dtype

    @property
    def count(self) -> Expr:
        """The number of tensors."""
        return self.shapes.shape[0]

    @property
    def columns(self) -> int:
        """The number of sizes that a row of shapes has room for."""
        (width,) = static_sizes(self.shapes.shape[1:]) or [1]
        return width - 1

    def __repr__(self) -> str:
        ranks = "unknown rank" if self.rank is None else f"rank {self.rank}"
        return f"a sequence of tensors of {self.dtype} and {ranks}, whose number only a run tells"


def sequence_of(b: Builder, tensors: Sequence[Operand], dtype: DType, rank: int | None = None) -> LateSequence:
    """Returns the sequence of *tensors* of *dtype*; *rank* is that of those that an empty one is to have."""
    if not tensors:
        columns = 0 if rank is None else rank
        nothing = (
            CompileTimeConstant(np.zeros(0, dtype.numpy)),
            CompileTimeConstant(np.zeros((0, 1 + columns), np.int64)),
        )
        return LateSequence(*nothing, rank)
    ranks = {x.rank for x in tensors}
    columns = max(ranks)
    rows = [size for x in tensors for size in _row(x, columns)]
    shapes = b.reshape(b.vector(rows), (len(tensors), 1 + columns))
    elements = concat(b, [_flat(b, x) for x in tensors], 0)
    return LateSequence(elements, shapes, ranks.pop() if len(ranks) == 1 else None)


def _row(x: Operand, columns: int) -> list[int | Expr]:
    return [x.rank, *x.shape, *[1] * (columns - x.rank)]


def _flat(b: Builder, x: Operand) -> Operand:
    return b.reshape(x, (element_count(x.shape),))


def checked(b: Builder, s: LateSequence, what: str) -> LateSequence:
    """Returns a sequence that a caller gives, with the checks that its shapes have its elements, and the rank that it tells."""
    sizes = b.add("slice", s.shapes, starts=(1,), ends=(1 + s.columns,), axes=(1,), steps=(1,))
    _require_none(b, b.add("less", s.shapes, b.scalar(0, i64)), f"{what} has shapes of negative sizes")
    if s.columns:
        # as floats, whose product of huge sizes does not wrap around
        counts = b.add("reduce_prod", b.cast(sizes, f64), axes=(1,), keepdims=False)
        whole = b.add("reduce_sum", counts, axes=(0,), keepdims=False)
        whole = b.cast(b.add("minimum", whole, b.scalar(TOO_MANY, f64)), i64)
        given = as_expr(b.late_number(whole, "elements", "a number of elements"), INDEX)
    else:
        given = s.count
    b.require(
        eq(given, s.elements.shape[0]),
        f"{what} has {{0}} elements, and {{1}} by its shapes",
        s.elements.shape[0],
        given,
    )
    if s.rank is not None:
        _require_rank(b, s, s.rank, f"{what} has tensors of another rank than {s.rank}")
    return s


def _require_none(b: Builder, wrong: Operand, message: str) -> None:
    """Refuses calls in which an element of *wrong* holds."""
    axes = tuple(range(wrong.rank))
    number = b.add("reduce_sum", b.cast(wrong, i64), axes=axes, keepdims=False)
    b.require(eq(as_expr(b.late_number(number, "wrong", "a number of elements"), INDEX), 0), message)


def widened(b: Builder, s: LateSequence, columns: int, rank: int | None) -> LateSequence:
    """Returns a sequence whose rows have room for *columns* sizes, of which *rank* is known."""
    more = columns - s.columns
    if not more:
        return replace(s, rank=rank)
    ones = b.add("full", shape=(s.count, more), value=1, dtype=i64)
    return LateSequence(s.elements, b.add("concat", s.shapes, ones, axis=1), rank, s.tail)


def tensor_at(b: Builder, s: LateSequence, position: Operand, declared: int | None = None) -> Operand:
    """Returns the tensor at *position*, counted from the end if it is negative; calls with another position are refused.

    Where tensors may have several ranks, it has the one *declared*, and calls in which it has another are refused.
    """
    from_end = _from_end(position)
    if 0 < from_end <= len(s.tail):
        return s.tail[-from_end]
    rank = _known_rank(b, s, declared)
    place = _place(b, s, position)
    s = widened(b, s, max(rank, s.columns), s.rank)
    row = b.add("slice", s.shapes, starts=(place - 1,), ends=(place,), axes=(0,), steps=(1,), inside=True)
    if s.rank is None:
        found = as_expr(b.late_number(element(b, row, 1, 0), "rank", "a number of dimensions"), INDEX)
        b.require(eq(found, rank), f"its tensor has {{0}} dimensions, and the model declares {rank}", found)
    sizes = [as_expr(n, INDEX) for n in _late_sizes(b, row, rank)]
    begin = _begin(b, s, place)
    piece = b.add(
        "slice", s.elements, starts=(begin,), ends=(begin + element_count(sizes),), axes=(0,), steps=(1,), inside=True
    )
    return b.add("reshape_checked", piece, shape=tuple(sizes))


def _late_sizes(b: Builder, row: Operand, rank: int) -> list[int | Expr]:
    """Returns the sizes in a row [1, 1 + columns] of shapes."""
    if not rank:
        return []
    sizes = b.add("slice", row, starts=(1,), ends=(1 + rank,), axes=(1,), steps=(1,))
    return b.late_sizes(b.reshape(sizes, (rank,)), "size", "a size of a tensor of a sequence")


def _from_end(position: Operand) -> int:
    """Returns how far from the end a position is that is known and negative: 1 for the last; 0 for another."""
    if not isinstance(position, CompileTimeConstant) or position.symbolic:
        return 0
    return max(0, -int(position.array.reshape(-1)[0]))


def _known_rank(b: Builder, s: LateSequence, declared: int | None) -> int:
    """Returns the rank of a sequence's tensors, or else that *declared*."""
    known = declared if s.rank is None else s.rank
    if known is None:
        b.fail(
            f"the number of dimensions of its result is that of the tensors of {s!r}",
            "declare the rank of the sequence's tensors, or of the result in the model's value_info, as in "
            "make_tensor_value_info(name, type, ['a', 'b']); or give the tensors' shapes: shapes={...}",
            UnknownValues,
        )
    return known


def _of_one_rank(b: Builder, s: LateSequence, declared: int | None) -> tuple[LateSequence, int]:
    """Returns a sequence, and the rank of all its tensors; calls in which one has another than that *declared* are refused."""
    rank = _known_rank(b, s, declared)
    if s.rank is not None:
        return s, rank
    _require_rank(b, s, rank, f"its sequence has tensors of another rank than {rank}, which the model declares")
    return widened(b, s, max(rank, s.columns), rank), rank


def _require_rank(b: Builder, s: LateSequence, rank: int, message: str) -> None:
    """Refuses calls in which a tensor has another rank."""
    ranks = b.add("slice", s.shapes, starts=(0,), ends=(1,), axes=(1,), steps=(1,))
    _require_none(b, b.add("logical_not", b.add("equal", ranks, b.scalar(rank, i64))), message)


def _place(b: Builder, s: LateSequence, position: Operand, *, last: int = 0) -> Expr:
    """Returns a position, counted from one, which calls check: it is that of a tensor, or *last* beyond the last one."""
    count = b.size(s.count)
    at = b.cast(b.reshape(position, ()), i64)
    at = b.add("where", b.add("less", at, b.scalar(0, i64)), b.add("add", at, count), at)
    beyond = b.add("add", count, b.scalar(1, i64))
    at = b.add("where", b.add("less", at, b.scalar(0, i64)), beyond, at)
    from_one = b.add("add", at, b.scalar(1, i64))  # a size is not zero
    place = as_expr(b.late_number(from_one, "place", "a position", least=1), INDEX)
    b.require(place <= s.count + last, "its position is none in a sequence of {0}", s.count)
    return place


def _counts(b: Builder, s: LateSequence) -> Operand:
    """Returns how many elements each tensor has."""
    if not s.columns:
        return b.add("full", shape=(s.count,), value=1, dtype=i64)
    sizes = b.add("slice", s.shapes, starts=(1,), ends=(1 + s.columns,), axes=(1,), steps=(1,))
    return b.add("reduce_prod", sizes, axes=(1,), keepdims=False)


def _begin(b: Builder, s: LateSequence, place: Expr) -> Expr:
    """Returns how many elements are before those of the tensor at *place*, from one; all are before that beyond the last."""
    before = b.add("less", b.add("range", start=0, size=s.count, step=1), b.size(place - 1))
    counts = b.add("where", before, _counts(b, s), b.scalar(0, i64))
    passed = b.add("reduce_sum", counts, axes=(0,), keepdims=False)
    begin = b.late_number(b.add("add", passed, b.scalar(1, i64)), "begin", "where a tensor begins, from one", least=1)
    return as_expr(begin, INDEX) - 1


def _parted(b: Builder, x: Operand, at: Expr, left_out: Expr | None = None) -> tuple[Operand, Operand]:
    """Returns the elements before *at* along the first dimension of *x*, and those behind it and *left_out* more.

    Both are inside of *x*, which the sizes say, so that sizes of parts of nothing are known to be zero.
    """
    end = x.shape[0]
    behind = minimum(at if left_out is None else at + left_out, end)
    at = minimum(at, end)
    return (
        b.add("slice", x, starts=(0,), ends=(at,), axes=(0,), steps=(1,), inside=True),
        b.add("slice", x, starts=(behind,), ends=(end,), axes=(0,), steps=(1,), inside=True),
    )


def inserted(b: Builder, s: LateSequence, x: Operand, position: Operand | None) -> LateSequence:
    """Returns the sequence with *x* before the tensor at *position*, or at its end."""
    rank = x.rank if s.rank == x.rank else None
    s = widened(b, s, max(s.columns, x.rank), rank)
    row = b.reshape(b.vector(_row(x, s.columns)), (1, 1 + s.columns))
    if position is None:
        elements, shapes = concat(b, [s.elements, _flat(b, x)], 0), concat(b, [s.shapes, row], 0)
        return LateSequence(elements, shapes, rank, (*s.tail, x))
    place = _place(b, s, position, last=1)
    before, behind = _parted(b, s.elements, _begin(b, s, place))
    rows, rest = _parted(b, s.shapes, place - 1)
    return LateSequence(concat(b, [before, _flat(b, x), behind], 0), concat(b, [rows, row, rest], 0), rank)


def erased(b: Builder, s: LateSequence, position: Operand) -> LateSequence:
    """Returns the sequence without the tensor at *position*."""
    from_end = _from_end(position)
    tail = s.tail[:-from_end] + s.tail[len(s.tail) - from_end + 1 :] if 0 < from_end <= len(s.tail) else ()
    place = _place(b, s, position)
    begin, end = _begin(b, s, place), _begin(b, s, place + 1)
    before, behind = _parted(b, s.elements, begin, end - begin)
    rows, rest = _parted(b, s.shapes, place - 1, ONE)
    return LateSequence(concat(b, [before, behind], 0), concat(b, [rows, rest], 0), s.rank, tail)


def concatenated(b: Builder, s: LateSequence, axis: int, declared: int | None = None) -> Operand:
    """Returns the tensors one after another along *axis*; calls in which they differ in another size are refused.

    *declared* is the rank of the result, if the model tells it.
    """
    s, rank = _of_one_rank(b, s, declared)
    axis = b.axis_of(axis, rank)
    shape = _common_sizes(b, s, rank, axis)
    sizes = element(b, s.shapes, 1, 1 + axis)
    whole = b.add("reduce_sum", sizes, axes=(0,), keepdims=False)
    shape[axis] = as_expr(b.late_number(whole, "whole", "the sum of sizes"), INDEX)
    return b.add("reshape_checked", of_pieces(b, s.elements, shape, axis, sizes), shape=tuple(shape))


def stacked(b: Builder, s: LateSequence, axis: int, declared: int | None = None) -> Operand:
    """Returns tensors of one shape as one with a new dimension at *axis*; calls in which shapes differ are refused.

    *declared* is the rank of the result, if the model tells it.
    """
    s, rank = _of_one_rank(b, s, declared - 1 if declared else None)
    axis = b.axis_of(axis, rank + 1)
    shape = _common_sizes(b, s, rank, None)
    rows = b.add("reshape_checked", s.elements, shape=(s.count, *shape))
    return b.transpose(rows, [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)])


def _common_sizes(b: Builder, s: LateSequence, rank: int, but: int | None) -> list[Expr]:
    """Returns the sizes of the first tensor, which the others are checked to have, too, *but* along one axis."""
    b.require(s.count >= 1, "its sequence is empty")
    if not rank:
        return []
    first = b.add("slice", s.shapes, starts=(0,), ends=(1,), axes=(0,), steps=(1,), inside=True)
    others = b.add("logical_not", b.add("equal", s.shapes, first))
    for d in range(rank):
        if d != but:
            _require_none(b, element(b, others, 1, 1 + d), f"the tensors of its sequence differ in dimension {d}")
    return [as_expr(n, INDEX) for n in _late_sizes(b, first, rank)]


def split_in(b: Builder, x: Operand, axis: int, sizes: Operand) -> LateSequence:
    """Returns pieces of *x* along *axis*, of the *sizes* in a vector, which have to fill it."""
    count = sizes.shape[0]
    whole = as_expr(
        b.late_number(b.add("reduce_sum", sizes, axes=(0,), keepdims=False), "whole", "the sum of sizes"), INDEX
    )
    b.require(
        eq(whole, x.shape[axis]),
        f"its pieces have {{0}} elements, and dimension {axis} has {{1}}",
        whole,
        x.shape[axis],
    )
    _require_none(b, b.add("less", sizes, b.scalar(0, i64)), "a piece has a negative size")
    column = b.reshape(sizes, (count, 1))
    others = [b.add("expand", b.vector([n]), shape=(count, 1)) for n in _row(x, x.rank)]
    others[1 + axis] = column
    elements = b.reshape(in_pieces(b, x, axis, sizes), (element_count(x.shape),))
    return LateSequence(elements, concat(b, others, 1), x.rank)


def rows_of(b: Builder, x: Operand) -> LateSequence:
    """Returns the elements of *x* along its first dimension, which they lack."""
    count, shape = x.shape[0], x.shape[1:]
    shapes = b.add("expand", b.vector([len(shape), *shape]), shape=(count, 1 + len(shape)))
    return LateSequence(_flat(b, x), shapes, len(shape))


def equal_pieces(b: Builder, size: Expr, piece: Operand) -> Operand:
    """Returns the sizes of pieces of *piece* elements each of a dimension of *size*; the last may be smaller."""
    each = b.cast(b.reshape(piece, ()), i64)
    b.late_number(each, "each", "the size of a piece", least=1)  # refuses others
    whole, one = b.size(size), b.scalar(1, i64)
    number = b.add("div", b.add("add", whole, b.add("sub", each, one)), b.add("maximum", each, one))
    count = as_expr(b.late_number(number, "pieces", "the number of pieces"), INDEX)
    begins = b.add("mul", b.add("range", start=0, size=count, step=1), each)
    return b.add("minimum", each, b.add("sub", whole, begins))
