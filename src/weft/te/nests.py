"""The loop nest of one operation, and the buffers of tensors: shared by all kinds of operations when they become loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import TRUE, Expr, Node, Select, Var, map_nodes, substitute
from weft.loop import Axis, AxisKind, Buffer, Let, Load, Stmt, for_, make_block, seq, store
from weft.support.unique_names import UniqueNames
from weft.te.reducer import Reduction
from weft.te.tensor import Compute, Operation, Read, Tensor

Rewrite = Callable[[Expr], Expr]


class Buffers:
    """The buffer of each tensor, made when first asked for, with names made unique."""

    def __init__(self) -> None:
        self.of: dict[tuple[Operation, int], Buffer] = {}
        self.names = UniqueNames()

    def __getitem__(self, t: Tensor) -> Buffer:
        key = (t.op, t.index)
        if key not in self.of:
            self.of[key] = Buffer(self.names.of(t.name), t.shape, t.dtype)
        return self.of[key]

    def __setitem__(self, t: Tensor, buffer: Buffer) -> None:
        self.of[t.op, t.index] = buffer

    @property
    def made(self) -> list[Buffer]:
        """The buffers, in the order in which they were first asked for."""
        return list(dict.fromkeys(self.of.values()))


def nest(op: Compute, buffers: Buffers) -> Stmt:
    """Builds the loops around the block of one formula."""
    axes = block_axes(op)
    outputs = [buffers[t] for t in op.outputs]
    rewrite = to_loads(buffers, dict(zip(variables(op), [a.var for a in axes], strict=True)))
    where = [a.var for a in axes[: len(op.axes)]]
    body, init = assignments(op, [(b, where) for b in outputs], rewrite)
    loops = [Var(v.name) for v in variables(op)]
    return around(loops, axes, make_block(outputs[0].name, axes, loops, body, init))


def variables(op: Compute) -> tuple[Var, ...]:
    """Returns the index variables of a formula: its own, then those that it reduces over."""
    return (*op.axes, *(op.reduction.axes if op.reduction else ()))


def block_axes(op: Compute) -> tuple[Axis, ...]:
    """Returns a block's axes for the index variables of a formula."""
    spatial = [Axis(Var(f"v{v.name}"), e, AxisKind.SPATIAL) for v, e in zip(op.axes, op.shape, strict=True)]
    reduced = [Axis(Var(f"v{a.name}"), a.extent, AxisKind.REDUCE) for a in (op.reduction.axes if op.reduction else ())]
    return (*spatial, *reduced)


def around(loops: Sequence[Var], axes: Sequence[Axis], body: Stmt) -> Stmt:
    """Returns *body* inside a loop for each axis, the first outermost."""
    for v, a in zip(reversed(loops), reversed(axes), strict=True):
        body = for_(v, a.extent, body)
    return body


Target = tuple[Buffer, Sequence[Expr]]


def assignments(op: Compute, targets: Sequence[Target], rewrite: Rewrite) -> tuple[Stmt, Stmt | None]:
    """Returns the statement that computes a formula into its *targets*, and the start of its reduction, if it has one."""
    if op.reduction is None:
        return _stores(targets, [rewrite(v) for v in op.values]), None
    return _update(op.reduction, targets, rewrite), _stores(targets, op.reduction.identity())


def _update(r: Reduction, targets: Sequence[Target], rewrite: Rewrite) -> Stmt:
    so_far = tuple([Load(b, tuple(where)) for b, where in targets])
    combined = r.reducer.combine(so_far, tuple([rewrite(v) for v in r.values]))
    if r.condition is not TRUE:
        guard = rewrite(r.condition)
        combined = tuple([Select(guard, new, old) for new, old in zip(combined, so_far, strict=True)])
    return _stores(targets, combined)


def _stores(targets: Sequence[Target], values: Sequence[Expr]) -> Stmt:
    """Stores all values at once: several are computed before the first is written, since they may read each other."""
    if len(targets) == 1:
        (b, where), value = targets[0], values[0]
        return store(b, where, value)
    names = [Var(f"{b.name}_new", b.dtype) for b, _ in targets]
    body = seq(*[store(b, where, n) for (b, where), n in zip(targets, names, strict=True)])
    for n, v in zip(reversed(names), reversed(values), strict=True):
        body = Let(n, v, body)
    return body


def to_loads(buffers: Buffers, axes: dict[Var, Var]) -> Rewrite:
    """Returns a rewriter of formulas: tensors become buffers, index variables a block's axes."""

    def change(n: Node) -> Node | None:
        return Load(buffers[n.tensor], n.indices) if isinstance(n, Read) else None

    return lambda e: map_nodes(substitute(e, axes), change)
