"""Pieces of a dimension laid one after another, as elements of a vector: of sizes that only a run tells.

x [2, 5] in pieces of 2 and 3 along dimension 1:     x[0, :2], x[1, :2], x[0, 2:], x[1, 2:]
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import element_count
from weft.ir import ONE, Expr
from weft.support.dtypes import i64


def in_pieces(b: Builder, x: Operand, axis: int, sizes: Operand) -> Operand:
    """Returns the elements of *x* [total] in pieces of *sizes* along *axis*, which they fill."""
    flat = b.reshape(x, (element_count(x.shape),))
    before, behind = element_count(x.shape[:axis]), element_count(x.shape[axis + 1 :])
    if before is ONE:
        return flat
    # element i lies in the piece in which index i // (before * behind) of the axis does, since pieces before it are whole
    i = b.add("range", start=0, size=element_count(x.shape), step=1)
    rows = b.size(before * behind)
    begin, size = _pieces_of(b, b.add("div", i, rows), x.shape[axis], sizes)
    local = b.add("sub", i, b.add("mul", begin, rows))
    width = b.add("mul", size, b.size(behind))
    outer, rest = b.add("div", local, width), b.add("floor_mod", local, width)
    inner = b.add("add", b.add("mul", begin, b.size(behind)), rest)
    return b.add("gather", flat, b.add("add", b.add("mul", outer, b.size(x.shape[axis] * behind)), inner), axis=0)


def of_pieces(b: Builder, elements: Operand, shape: Sequence[Expr], axis: int, sizes: Operand) -> Operand:
    """Returns the elements of a tensor of *shape* as a vector in its order, given those of its pieces: undoes `in_pieces`."""
    before, behind = element_count(shape[:axis]), element_count(shape[axis + 1 :])
    if before is ONE:
        return elements
    i = b.add("range", start=0, size=element_count(shape), step=1)
    width = b.size(shape[axis] * behind)
    outer, rest = b.add("div", i, width), b.add("floor_mod", i, width)
    begin, size = _pieces_of(b, b.add("div", rest, b.size(behind)), shape[axis], sizes)
    skipped = b.add("mul", begin, b.size(before * behind))
    own = b.add("mul", outer, b.add("mul", size, b.size(behind)))
    inner = b.add("sub", rest, b.add("mul", begin, b.size(behind)))
    return b.add("gather", elements, b.add("add", b.add("add", skipped, own), inner), axis=0)


def _pieces_of(b: Builder, at: Operand, size: Expr, sizes: Operand) -> tuple[Operand, Operand]:
    """Returns where the piece begins that each index *at* of a dimension of *size* lies in, and its size."""
    ends = b.add("cumsum", sizes, axis=0)
    places = b.reshape(b.add("range", start=0, size=size, step=1), (size, 1))
    passed = b.cast(b.add("less_equal", ends, places), i64)
    piece = b.add("gather", b.add("reduce_sum", passed, axes=(1,), keepdims=False), at, axis=0)
    begins = b.add("sub", ends, sizes)
    return b.add("gather", begins, piece, axis=0), b.add("gather", sizes, piece, axis=0)
