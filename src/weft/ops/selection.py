"""Operators that find how many elements there are of a kind: tensors of as much room as there may be, and the count beside them.

A late size is read from the count (`weft.graph.LateSize`), and a slice of the tensor has that many elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import INDEX, ONE, ZERO, Expr, ExprLike, Var, cast, const, eq, ne, select
from weft.loop import Buffer, If, Load, Stmt, Store, for_, seq
from weft.ops.registry import operator
from weft.ops.shapes import flatten_index, product, sized, unflatten_index
from weft.te import Tensor, compute, extern


@operator("nonzero_positions")
def nonzero_positions(x: Tensor) -> tuple[Tensor, ...]:
    """The row-major positions of the elements of *x* that are not zero, in their order, and [their number]; NaN is not zero.

    The first result has room for all elements. What is behind the positions there is undefined.
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
        return seq(Store(count, (ZERO,), ZERO, None), loop)

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
