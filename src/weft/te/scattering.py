"""Updates of elements whose places are data: `scatter` puts, or combines, one value after another into a tensor.

    x = placeholder((n, m), f32, "x")
    t = placeholder((k,), i64, "t")
    u = placeholder((k, m), f32, "u")
    y = scatter(x, (k, m), lambda p, j: ((t[p], j), u[p, j]), sum_, "y")      y = x; then y[t[p], j] += u[p, j]

becomes

    for i, j in ...:                 y[i, j] = x[i, j]
    for p in range(0, k):
        for j in range(0, m):
            with block("y", vp=ordered(k, p), vj=spatial(m, j)):
                y[t[vp], vj] = y[t[vp], vj] + u[vp, vj]

The work is that of the tensor and of the updates, not of their product. The updates are applied in the order of their indices, so
that of several at one place the last one wins, and sums are the same in each run. An index of the update that is an index of the
tensor, as j above, tells its elements apart: that axis is spatial, and vectors or threads may run along it. Others are ordered;
or unordered, where updates may be applied in any order (`scatter(..., any_order=True)`): then threads may run along them.

The places have to be inside of the tensor: the formula sees to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from weft.ir import INDEX, TRUE, ZERO, Expr, ExprLike, Var, as_expr
from weft.loop import Axis, AxisKind, If, Load, Stmt, make_block, store
from weft.support.dtypes import DType
from weft.support.errors import TypeMismatch
from weft.te.nests import Buffers, around, to_loads
from weft.te.promotion import as_formula
from weft.te.reducer import Reducer
from weft.te.tensor import Operation, Read, Tensor, axis_names, reads_of


class Scatter(Operation):
    """The tensor *base* with updates of shape *extents*: *fn* gives the place, the value and the condition of each.

    *reducer* combines the element that is there with the value; None replaces it. *in_place*, the tensor is in the memory of
    *base*, where only the elements that updates change are written. In *any_order*, updates are applied as they come.
    """

    def __init__(
        self,
        name: str,
        base: Tensor,
        extents: tuple[Expr, ...],
        fn: Callable[..., Any],
        reducer: Reducer | None,
        axis_names: Sequence[str] | None = None,
        in_place: bool = False,
        any_order: bool = False,
    ) -> None:
        self.name = name
        self.base = base
        self.shape = base.shape
        self.extents = extents
        self.fn = fn
        self.reducer = reducer
        self.axis_names = axis_names
        self.in_place = in_place
        self.any_order = any_order

    @cached_property
    def axes(self) -> tuple[Var, ...]:
        """The indices of an update."""
        return tuple([Var(n) for n in self.axis_names or axis_names(self.fn, len(self.extents))])

    @cached_property
    def update(self) -> tuple[tuple[Expr, ...], Expr, Expr]:
        """The place of an update, its value, and the condition under which it is applied."""
        return self.update_at(self.axes)

    def update_at(self, index: Sequence[Expr]) -> tuple[tuple[Expr, ...], Expr, Expr]:
        """Returns the place, the value and the condition of the update at *index*."""
        where, value, *given = self.fn(*index)
        place = tuple([as_expr(i, INDEX) for i in where])
        if len(place) != len(self.shape):
            raise TypeMismatch(f"{self.name} updates a tensor of {len(self.shape)} dimensions at {len(place)} indices")
        made = as_expr(value, self.base.dtype)
        if made.dtype is not self.base.dtype:
            raise TypeMismatch(f"{self.name} is {self.base.dtype}, but its updates are {made.dtype}", hint="cast them")
        return place, made, given[0] if given else TRUE

    def number(self, at: Sequence[Expr]) -> Expr:
        """Returns the number of the update at an index, in the order in which they are applied."""
        number: Expr = ZERO
        for i, extent in zip(at, self.extents, strict=True):
            number = number * extent + i
        return number

    @property
    def place(self) -> tuple[Expr, ...]:
        """The index of the element that an update changes."""
        return self.update[0]

    @property
    def apart(self) -> tuple[Expr, ...]:
        """The extents of the updates along the indices that tell their elements apart."""
        return tuple([e for a, e in zip(self.axes, self.extents, strict=True) if any(i is a for i in self.place)])

    @property
    def chained(self) -> tuple[Expr, ...]:
        """The other extents: of updates that may change the same element."""
        return tuple([e for a, e in zip(self.axes, self.extents, strict=True) if not any(i is a for i in self.place)])

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions of the formula of the updates."""
        place, value, condition = self.update
        return (*place, value, condition)

    @property
    def reads(self) -> tuple[Read, ...]:
        """Every access of the updates to a tensor."""
        return tuple(dict.fromkeys([r for e in self.expressions for r in reads_of(e)]))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensor that is updated, and the operands of the updates."""
        return tuple(dict.fromkeys([self.base, *[r.tensor for r in self.reads]]))

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The type of the tensor."""
        return (self.base.dtype,)


def scatter(
    base: Tensor,
    extents: Iterable[ExprLike],
    fn: Callable[..., Any],
    reducer: Reducer | None = None,
    name: str = "scatter",
    *,
    in_place: bool = False,
    any_order: bool = False,
) -> Tensor:
    """Defines a tensor like *base* with updates of shape *extents*, applied in the order of their indices, or in *any_order*.

    *fn* takes the index of an update and returns the index of the element that it changes, its value, and, if not all are
    applied, the condition under which it is. *reducer* combines the element with the value; None replaces it. *in_place* says
    that the caller gives the memory of *base* for the result: nothing is copied. In *any_order*, a reducer is commutative, and
    without one the caller sees to it that one update at most puts an element.

    Raises `TypeMismatch` for a reducer of several values, and, once the formula is evaluated, where it does not fit *base*.
    """
    if reducer is not None and not _takes_one(reducer, base.dtype):
        raise TypeMismatch(f"{name} combines single values, but {reducer.name} takes several")
    sizes = tuple([as_expr(e, INDEX) for e in extents])
    return Scatter(name, as_formula(base), sizes, fn, reducer, in_place=in_place, any_order=any_order).outputs[0]


def _takes_one(reducer: Reducer, dtype: DType) -> bool:
    try:
        return len(reducer.identity((dtype,))) == 1
    except IndexError:  # it asks for the type of a second value
        return False


def scatter_nests(op: Scatter, buffers: Buffers) -> list[Stmt]:
    """Returns the copy of the tensor, unless it is updated in place, and the loops over the updates."""
    if op.in_place:
        return [_updates(op, buffers)]
    target, source = buffers[op.outputs[0]], buffers[op.base]
    axes = [Axis(Var(f"v{d}"), s, AxisKind.SPATIAL) for d, s in enumerate(target.shape)]
    where = tuple([a.var for a in axes])
    loops = [Var(f"ax{d}") for d in range(target.rank)]
    copy = make_block(buffers.names.of(f"{target.name}_init"), axes, loops, store(target, where, Load(source, where)))
    return [around(loops, axes, copy), _updates(op, buffers)]


def _updates(op: Scatter, buffers: Buffers) -> Stmt:
    target = buffers[op.outputs[0]]
    axes = [Axis(Var(f"v{v.name}"), e, _kind(op, v)) for v, e in zip(op.axes, op.extents, strict=True)]
    rewrite = to_loads(buffers, dict(zip(op.axes, [a.var for a in axes], strict=True)))
    place, value, condition = op.update
    at, new = tuple(map(rewrite, place)), rewrite(value)
    if op.reducer is not None:
        new = op.reducer.combine((Load(target, at),), (new,))[0]
    body: Stmt = store(target, at, new)
    if condition is not TRUE:
        body = If(rewrite(condition), body, None)
    loops = [Var(v.name) for v in op.axes]
    return around(loops, axes, make_block(target.name, axes, loops, body))


def _kind(op: Scatter, axis: Var) -> AxisKind:
    """Returns the kind of an axis of the updates: spatial where updates that differ in it change different elements."""
    if any(i is axis for i in op.place):
        return AxisKind.SPATIAL
    return AxisKind.UNORDERED if op.any_order else AxisKind.ORDERED
