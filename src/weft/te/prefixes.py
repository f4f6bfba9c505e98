"""Prefix sums, and prefixes of any reducer: `prefix` combines the elements up to each along one dimension, in one pass.

    y = prefix(x, sum_, 0, "y")                     y[t, j] = x[0, j] + x[1, j] + ... + x[t, j]

becomes

    for j in range(0, m):                           y[0, j] = x[0, j]
    for t in range(0, n - 1):
        for j in range(0, m):
            with block("y", vt=ordered(n - 1, t), vj=spatial(m, j)):
                y[vt + 1, vj] = y[vt, vj] + x[vt + 1, vj]

A `scan` computes the same from a formula of its step, but has time as its first dimension. Here it may be any: vectors run along
the dimensions behind it, and threads share those before it.
"""

from __future__ import annotations

from weft.ir import ONE, ZERO, Expr, Var, substitute
from weft.loop import Axis, AxisKind, Load, Stmt, make_block, store
from weft.support.dtypes import DType
from weft.support.errors import TypeMismatch
from weft.te.nests import Buffers, around, to_loads
from weft.te.reducer import Reducer
from weft.te.tensor import Operation, Read, Tensor, reads_of


class Prefix(Operation):
    """The elements of *source* up to each along dimension *axis*, combined by *reducer*.

    An *exclusive* prefix leaves the element itself out; a *reverse* one runs from the last to the first.
    """

    def __init__(
        self, name: str, source: Tensor, reducer: Reducer, axis: int, *, exclusive: bool, reverse: bool
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

    @property
    def reads(self) -> tuple[Read, ...]:
        """The access to the elements."""
        return tuple(reads_of(self.element))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensor whose prefixes are computed."""
        return tuple([r.tensor for r in self.reads])

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The type of the prefixes: that of the elements."""
        return (self.element.dtype,)


def prefix(
    source: Tensor, reducer: Reducer, axis: int, name: str = "prefix", *, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """Defines the tensor of the prefixes of *source* along dimension *axis*, combined by *reducer*.

    An *exclusive* prefix leaves the element itself out, so that the first is the reducer's identity; a *reverse* one runs from
    the last element to the first. Raises `TypeMismatch` for a dimension that *source* does not have.
    """
    if not 0 <= axis < source.rank:
        raise TypeMismatch(f"{name}: there is no dimension {axis} of a tensor of {source.rank}")
    return Prefix(name, source, reducer, axis, exclusive=exclusive, reverse=reverse).outputs[0]


def prefix_nests(op: Prefix, buffers: Buffers) -> list[Stmt]:
    """Returns the nest of the first elements, and the ordered loop over the others."""
    return [_first(op, buffers), _others(op, buffers)]


def _place(op: Prefix, index: tuple[Expr, ...], step: Expr) -> tuple[Expr, ...]:
    """Returns *index* with the position of a *step* in the dimension that the prefix runs along."""
    d = op.axis
    return (*index[:d], op.shape[d] - ONE - step if op.reverse else step, *index[d + 1 :])


def _read(op: Prefix, buffers: Buffers, index: tuple[Expr, ...]) -> Expr:
    """Returns the element at *index*."""
    return to_loads(buffers, {})(substitute(op.element, dict(zip(op.axes, index, strict=True))))


def _first(op: Prefix, buffers: Buffers) -> Stmt:
    target = buffers[op.outputs[0]]
    axes = [Axis(Var(f"v{d}"), s, AxisKind.SPATIAL) for d, s in enumerate(op.shape) if d != op.axis]
    others: list[Expr] = [a.var for a in axes]
    at = _place(op, (*others[: op.axis], ZERO, *others[op.axis :]), ZERO)
    value = op.reducer.identity(op.dtypes)[0] if op.exclusive else _read(op, buffers, at)
    loops = [Var(f"ax{d}") for d in range(len(axes))]
    name = buffers.unique(f"{target.name}_first")
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
