"""Operators that find how many elements there are of a kind: tensors of as much room as there may be, and the count beside them.

A late size is read from the count (`weft.graph.LateSize`), and a slice of the tensor has that many elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import INDEX, ONE, ZERO, Expr, ExprLike, Var, cast, const, eq, maximum, ne, select
from weft.loop import Alloc, Buffer, If, Load, Stmt, for_, get, let, put, seq, store
from weft.ops.algorithms.radix_sort import sort_indices
from weft.ops.algorithms.sort_records import sort_word
from weft.ops.registry import operator
from weft.ops.shapes import flatten_index, normalize_axis, product, show_shape, sized, unflatten_index
from weft.support.dtypes import bool_
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, extern


@operator("nonzero_positions")
def nonzero_positions(x: Tensor) -> tuple[Tensor, ...]:
    """The row-major positions of the elements of *x* that are not zero, in their order, and [their number]; NaN is not zero.

    The first result has room for all elements, and zeros behind the positions.
    """

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        (given,), (positions, count) = ins, outs
        at = tuple([Var(f"i{d}", INDEX) for d in range(given.rank)])
        found = get(count)
        keep = seq(store(positions, (found,), flatten_index(at, given.shape)), put(count, found + ONE))
        loop: Stmt = If(ne(Load(given, at), const(0, given.dtype)), keep, None)
        for v, size in zip(reversed(at), reversed(given.shape), strict=True):
            loop = for_(v, size, loop)

        def filled(end: Expr) -> Stmt:
            rest = Var("rest")
            return for_(rest, positions.shape[0] - end, store(positions, (end + rest,), ZERO))

        return seq(put(count, 0), loop, let("end", found, filled))

    room: tuple[Expr, ...] = (product(x.shape),)
    return extern([room, (ONE,)], [x], body, [INDEX, INDEX], "nonzero_positions")


@operator("unravel_index")
def unravel_index(positions: Tensor, *, shape: Sequence[ExprLike]) -> Tensor:
    """The indices in a tensor of *shape* of the row-major *positions*, a vector: a row for each dimension."""
    sizes = sized(*shape)

    def index_of(d: Expr, i: Expr) -> Expr:
        parts = unflatten_index(cast(positions[i], INDEX), sizes)
        made = parts[-1] if parts else ZERO
        for n in reversed(range(len(parts) - 1)):
            made = select(eq(d, n), parts[n], made)
        return made

    return compute((len(sizes), positions.shape[0]), index_of, "unravel_index", dtype=INDEX)


@operator("reshape_checked", renames=True)
def reshape_checked(x: Tensor, *, shape: Sequence[ExprLike]) -> Tensor:
    """The elements, in row-major order, in a shape of late sizes; that it has as many elements is checked when it runs."""
    target = sized(*shape)

    def moved(*i: Expr) -> Expr:
        return x[unflatten_index(flatten_index(i, target), x.shape)]

    return compute(target, moved, "reshape_checked", dtype=x.dtype)


@operator("order_rows")
def order_rows(x: Tensor) -> tuple[Tensor, ...]:
    """The order in which the rows of the matrix *x* stand, equal ones as they are, and which of them differ from the one before.

    Rows are compared element by element, from the first on; NaN is larger than any number, and differs from NaN. They are put in
    the order of one column after another, from the last on.
    """
    if x.rank != 2:
        raise TypeMismatch(f"order_rows takes a matrix, not {show_shape(x.shape)}")
    rows, columns = x.shape

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        (given,), (order, differs) = ins, outs
        before = Buffer("before", (rows,), INDEX, "local")
        i, j, k, c, n = (Var(name) for name in ("i", "j", "k", "c", "n"))

        def by_column(column: Expr) -> Stmt:
            def word(row: Expr) -> Expr:
                return sort_word(Load(given, (Load(before, (row,)), column)))

            def emit(place: Expr, row: Expr) -> Stmt:
                return store(order, (place,), Load(before, (row,)))

            kept = for_(i, rows, store(before, (i,), Load(order, (i,))))
            return seq(kept, sort_indices(rows, word(ZERO).dtype, word, emit))

        own, other = (Load(given, (Load(order, (row,)), c)) for row in (j, maximum(j - ONE, ZERO)))
        mark = seq(
            store(differs, (j,), eq(j, ZERO)),
            for_(c, columns, store(differs, (j,), Load(differs, (j,)) | ne(own, other))),
        )
        start = for_(k, rows, store(order, (k,), k))
        ordered = for_(n, columns, let("column", columns - ONE - n, by_column))
        return Alloc(before, seq(start, ordered, for_(j, rows, mark)))

    return extern([(rows,), (rows,)], [x], body, [INDEX, bool_], "order_rows")


@operator("element_at")
def element_at(x: Tensor, place: Tensor, *, axis: int = 0) -> Tensor:
    """The element of *x* along *axis* at *place*, a number that is known to be inside; the dimension is dropped."""
    d = normalize_axis(axis, x.rank)
    if place.rank:
        raise TypeMismatch(f"element_at takes one number, not {show_shape(place.shape)}")
    shape = (*x.shape[:d], *x.shape[d + 1 :])

    def element(*i: Expr) -> Expr:
        return x[(*i[:d], cast(place[()], INDEX), *i[d:])]

    return compute(shape, element, "element_at", dtype=x.dtype)
