"""Rows in pages: those that a table chooses, one page after another."""

from __future__ import annotations

from weft.ir import INDEX, Expr, ExprLike, as_expr
from weft.ops.index_ranges import IndexRange, Shaped, either_way, takes_indices
from weft.ops.movement import chosen_index
from weft.ops.registry import operator
from weft.ops.shapes import normalize_axis
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute


@operator("gather_pages")
def gather_pages(pages: Tensor, table: Tensor, *, rows: ExprLike, axis: int = 1) -> Tensor:
    """The first *rows* of those in the *pages* [count, ...] that *table* [*B, n] chooses; *axis* has the rows of a page.

    The result is [*B, rows, ...], the other dimensions of a page behind. Numbers of pages may be negative, and count from the
    end; the kernel reports ones outside.
    """
    d = normalize_axis(axis, pages.rank)
    if not table.rank or d == 0:
        raise TypeMismatch("gather_pages takes a table of at least one dimension, and pages of rows")
    lead, size = table.rank - 1, pages.shape[d]

    def gathered(*i: Expr) -> Expr:
        row, rest = i[lead], i[lead + 1 :]
        page = chosen_index(table[(*i[:lead], row // size)], pages.shape[0])
        return pages[(page, *rest[: d - 1], row % size, *rest[d - 1 :])]

    shape = (*table.shape[:-1], as_expr(rows, INDEX), *pages.shape[1:d], *pages.shape[d + 1 :])
    return compute(shape, gathered, "gather_pages", dtype=pages.dtype)


@takes_indices("gather_pages")
def _pages_range(pages: Shaped, table: Shaped, *, rows: ExprLike, axis: int = 1) -> IndexRange:
    return IndexRange(1, (either_way(pages.shape[0]),))
