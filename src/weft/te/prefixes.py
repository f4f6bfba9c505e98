"""Prefix sums, and prefixes of any reducer: `prefix` combines the elements up to each along one dimension, in one pass.

    y = prefix(x, sum_, 0, "y")                     y[t, j] = x[0, j] + x[1, j] + ... + x[t, j]

becomes

    for j in range(0, m):                           y[0, j] = x[0, j]
    for t in range(0, n - 1):
        for j in range(0, m):
            with block("y", vt=ordered(n - 1, t), vj=spatial(m, j)):
                y[vt + 1, vj] = y[vt, vj] + x[vt + 1, vj]

A `scan` computes the same from a formula of its step, but has time as its first dimension. Here it may be any: vectors run along
the dimensions behind it, and threads share those before it. Prefixes of a part of a longer dimension begin with a *start*, the
elements before the part combined.
"""

from __future__ import annotations

from weft.ir import ONE, ZERO, Const, Expr, Var, minimum, substitute
from weft.loop import Axis, AxisKind, Load, Stmt, make_block, store
from weft.support.dtypes import DType
from weft.support.errors import TypeMismatch
from weft.te.nests import Buffers, around, to_loads
from weft.te.reducer import Reducer
from weft.te.tensor import Operation, Read, Tensor, reads_of


class Prefix(Operation):
    """The elements of *source* up to each along dimension *axis*, combined by *reducer*.

    An *exclusive* prefix leaves the element itself out; a *reverse* one runs from the last to the first. *start* has what is
    combined before all elements, in dimension *axis* alone.
    """

    def __init__(
        self,
        name: str,
        source: Tensor,
        reducer: Reducer,
        axis: int,
        start: Tensor | None = None,
        *,
        exclusive: bool,
        reverse: bool,
    ) -> None:
        self.name = name
        self.source = source
        self.shape = source.shape
        self.reducer = reducer
        self.axis = axis
        self.exclusive = exclusive
        self.reverse = reverse
        self.axes = tuple([Var(f"i{d}") for d in range(source.rank)])
        self.element = source[self.axes]
        self.start = None if start is None else start[(*self.axes[:axis], ZERO, *self.axes[axis + 1 :])]

    @property
    def reads(self) -> tuple[Read, ...]:
        """The accesses to the elements, and to the prefixes before them."""
        return tuple([r for e in (self.element, self.start) if e is not None for r in reads_of(e)])

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensor whose prefixes are computed, and that of what is combined before them."""
        return tuple(dict.fromkeys([r.tensor for r in self.reads]))

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The type of the prefixes: that of the elements."""
        return (self.element.dtype,)


def prefix(
    source: Tensor,
    reducer: Reducer,
    axis: int,
    name: str = "prefix",
    *,
    start: Tensor | None = None,
    exclusive: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Defines the tensor of the prefixes of *source* along dimension *axis*, combined by *reducer*.

    An *exclusive* prefix leaves the element itself out, so that the first is the reducer's identity; a *reverse* one runs from
    the last element to the first. *start*, of one element along *axis*, is combined before the first. Raises `TypeMismatch` for a
    dimension that *source* does not have, and for a *start* of another type or of more elements.
    """
    if not 0 <= axis < source.rank:
        raise TypeMismatch(f"{name}: there is no dimension {axis} of a tensor of {source.rank}")
    one = (*source.shape[:axis], ONE, *source.shape[axis + 1 :])
    if start is not None and (start.shape != one or start.dtype is not source.dtype):
        raise TypeMismatch(
            f"{name}: the start is {start.dtype}{list(start.shape)} where prefixes of {source.dtype}{list(source.shape)} begin",
            hint=f"give it one element along dimension {axis}",
        )
    return Prefix(name, source, reducer, axis, start, exclusive=exclusive, reverse=reverse).outputs[0]


def prefix_nests(op: Prefix, buffers: Buffers) -> list[Stmt]:
    """Returns the nest of the first elements, and the ordered loop over the others."""
    return [_first(op, buffers), _others(op, buffers)]


def _place(op: Prefix, index: tuple[Expr, ...], step: Expr) -> tuple[Expr, ...]:
    """Returns *index* with the position of a *step* in the dimension that the prefix runs along."""
    d = op.axis
    return (*index[:d], op.shape[d] - ONE - step if op.reverse else step, *index[d + 1 :])


def _read(op: Prefix, buffers: Buffers, index: tuple[Expr, ...], element: Expr | None = None) -> Expr:
    """Returns the element at *index*, or what stands for *element* there."""
    read = op.element if element is None else element
    return to_loads(buffers, {})(substitute(read, dict(zip(op.axes, index, strict=True))))


def _first_value(op: Prefix, buffers: Buffers, at: tuple[Expr, ...]) -> Expr:
    """Returns the first prefix of a slice, at the index *at*."""
    before = None if op.start is None else _read(op, buffers, at, op.start)
    if op.exclusive:
        return op.reducer.identity(op.dtypes)[0] if before is None else before
    own = _read(op, buffers, at)
    return own if before is None else op.reducer.combine((before,), (own,))[0]


def _first(op: Prefix, buffers: Buffers) -> Stmt:
    """Returns the nest of the first elements: of none, where the size of the dimension is a formula that may be zero."""
    target, d, size = buffers[op.outputs[0]], op.axis, op.shape[op.axis]
    axes = [Axis(Var(f"v{n}"), s, AxisKind.SPATIAL) for n, s in enumerate(op.shape)]
    index: list[Expr] = [a.var for a in axes]
    index[d] = ZERO
    axes[d : d + 1] = [] if isinstance(size, Const | Var) else [Axis(axes[d].var, minimum(size, ONE), AxisKind.SPATIAL)]
    at = _place(op, tuple(index), ZERO)
    value = _first_value(op, buffers, at)
    loops = [Var(f"ax{n}") for n in range(len(axes))]
    name = buffers.names.of(f"{target.name}_first")
    return around(loops, axes, make_block(name, axes, loops, store(target, at, value)))


def _others(op: Prefix, buffers: Buffers) -> Stmt:
    target, d = buffers[op.outputs[0]], op.axis
    axes = [Axis(Var(f"v{v.name}"), s, AxisKind.SPATIAL) for v, s in zip(op.axes, op.shape, strict=True)]
    axes[d] = Axis(axes[d].var, op.shape[d] - ONE, AxisKind.ORDERED)
    index: tuple[Expr, ...] = tuple([a.var for a in axes])
    before, at = _place(op, index, axes[d].var), _place(op, index, axes[d].var + ONE)
    element = _read(op, buffers, before if op.exclusive else at)
    value = op.reducer.combine((Load(target, before),), (element,))[0]
    loops = [Var(v.name) for v in op.axes]
    return around(loops, axes, make_block(target.name, axes, loops, store(target, at, value)))
