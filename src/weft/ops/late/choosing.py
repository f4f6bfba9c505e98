"""Operators that find how many elements there are of a kind: tensors of as much room as there may be, and the count beside them.

A late size is read from the count (`weft.graph.LateSize`), and a slice of the tensor has that many elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import INDEX, ONE, ZERO, Expr, ExprLike, Var, cast, const, eq, maximum, ne, select
from weft.loop import Alloc, Buffer, If, Let, Load, Stmt, Store, While, for_, seq
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
        found = Load(count, (ZERO,))
        keep = seq(
            Store(positions, (found,), flatten_index(at, given.shape), None),
            Store(count, (ZERO,), found + ONE, None),
        )
        loop: Stmt = If(ne(Load(given, at), const(0, given.dtype)), keep, None)
        for v, size in zip(reversed(at), reversed(given.shape), strict=True):
            loop = for_(v, size, loop)
        end, rest = Var("end", INDEX), Var("rest", INDEX)
        fill = for_(rest, positions.shape[0] - end, Store(positions, (end + rest,), ZERO, None))
        return seq(Store(count, (ZERO,), ZERO, None), loop, Let(end, found, fill))

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


@operator("reshape_checked")
def reshape_checked(x: Tensor, *, shape: Sequence[ExprLike]) -> Tensor:
    """The elements, in row-major order, in a shape of late sizes; that it has as many elements is checked when it runs."""
    target = sized(*shape)

    def moved(*i: Expr) -> Expr:
        return x[unflatten_index(flatten_index(i, target), x.shape)]

    return compute(target, moved, "reshape_checked", dtype=x.dtype)


@operator("order_rows")
def order_rows(x: Tensor) -> tuple[Tensor, ...]:
    """The order in which the rows of the matrix *x* stand, equal ones as they are, and which of them differ from the one before.

    Rows are compared element by element, from the first on. They are put in their places one by one.
    """
    if x.rank != 2:
        raise TypeMismatch(f"order_rows takes a matrix, not {show_shape(x.shape)}")
    rows, columns = x.shape

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        (given,), (order, differs) = ins, outs
        state = Buffer("state", (2,), INDEX, "local")  # the place that is looked at; how rows compare: -1, 0 or 1
        i, j = Var("i", INDEX), Var("j", INDEX)
        place, sign = Load(state, (ZERO,)), Load(state, (ONE,))

        def compare(a: Expr, b: Expr) -> Stmt:
            c = Var("c", INDEX)
            own, other = Load(given, (a, c)), Load(given, (b, c))
            found = select(own < other, const(-1, INDEX), select(other < own, ONE, ZERO))
            step = If(eq(sign, ZERO), Store(state, (ONE,), found, None), None)
            return seq(Store(state, (ONE,), ZERO, None), for_(c, columns, step))

        before = Load(order, (maximum(place - ONE, ZERO),))
        move = seq(Store(order, (place,), before, None), Store(state, (ZERO,), place - ONE, None))

        def ask() -> Stmt:
            return If(place > ZERO, compare(i, before), Store(state, (ONE,), ZERO, None))

        insert = seq(
            Store(state, (ZERO,), i, None), ask(), While(sign < ZERO, seq(move, ask())), Store(order, (place,), i, None)
        )
        mark = seq(
            compare(Load(order, (maximum(j - ONE, ZERO),)), Load(order, (j,))),
            Store(differs, (j,), eq(j, ZERO) | ne(sign, ZERO), None),
        )
        return Alloc(state, seq(for_(i, rows, insert), for_(j, rows, mark)))

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
