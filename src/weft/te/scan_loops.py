"""From a scan to loops: the initial steps are copied, then one ordered loop over time runs the nests of a step.

    (h,) = scan([first], [update], [state])          with update[t, i] = state[t - 1, i] + X[t, i]

becomes

    for t, i in ...:                                 h[t, i] = first[t, i]
    for t in range(0, T - 1):
        for i in range(0, n):
            with block("h", vt=ordered(T - 1, t), vi=spatial(n, i)):
                h[vt + 1, vi] = h[vt, vi] + X[vt + 1, vi]

An intermediate tensor of a step has a buffer with a row for each step, of which lowering keeps one. It depends on other steps
only through the states, so its block's time axis is spatial; the blocks that write a state are ordered in time. An update that
is a reduction has a buffer of its own, too, so that it can be scheduled like any other, and is then copied to the state.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, Node, Var, index, map_nodes, simplify, substitute
from weft.loop import Axis, AxisKind, Buffer, Load, Stmt, for_, make_block, seq, store
from weft.te.nests import Buffers, Rewrite, Target, around, assignments, block_axes, variables
from weft.te.scan import Scan
from weft.te.tensor import Compute, Operation, Read, Tensor


def scan_nests(scan: Scan, buffers: Buffers) -> list[Stmt]:
    """Returns the copies of the initial steps, and the loop over time."""
    results = [buffers[t] for t in scan.outputs]
    copies = [_initial(buffers[s.init], b, buffers) for s, b in zip(scan.states, results, strict=True)]
    for s, b in zip(scan.states, results, strict=True):
        buffers[s.placeholder] = b
    step = _Step(scan, buffers, results)
    time = Var(scan.step[0].axes[0].name)
    parts = [part for op in scan.step for part in step.parts(op, time)]
    return [*copies, for_(time, scan.count, seq(*parts))]


def _initial(source: Buffer, target: Buffer, buffers: Buffers) -> Stmt:
    """Copies the first steps of a state to where all of them are."""
    axes = [Axis(Var(f"v{d}"), s, AxisKind.SPATIAL) for d, s in enumerate(source.shape)]
    loops = [Var(f"ax{d}") for d in range(source.rank)]
    where = tuple([a.var for a in axes])
    name = buffers.names.of(f"{target.name}_init")
    return around(loops, axes, make_block(name, axes, loops, store(target, where, Load(source, where))))


class _Step:
    """The nests of one step; *results* are the buffers of the states."""

    def __init__(self, scan: Scan, buffers: Buffers, results: Sequence[Buffer]) -> None:
        self.scan = scan
        self.buffers = buffers
        updates = [(s.update.op, s.update.index) for s in scan.states]
        self.state_of: dict[tuple[Operation, int], Buffer] = dict(zip(updates, results, strict=True))

    def parts(self, op: Compute, time: Var) -> list[Stmt]:
        """Returns the nest of one operation, and the copies of its results to the states that it updates by a reduction."""
        tensors = op.outputs
        axes, where = self._axes(op)
        body, init = assignments(op, [self._target(t, where) for t in tensors], self._rewrite(op, axes))
        inner = [Var(v.name) for v in variables(op)[1:]]
        name = self._target(tensors[0], where)[0].name
        made = around(inner, axes[1:], make_block(name, axes, [time, *inner], body, init))
        return [made, *[self._commit(t, time) for t in tensors if op.reduction and self._key(t) in self.state_of]]

    def _key(self, t: Tensor) -> tuple[Operation, int]:
        return t.op, t.index

    def _is_direct(self, t: Tensor) -> bool:
        """Tells whether *t* is an update that its formula writes straight to the state."""
        return self._key(t) in self.state_of and isinstance(t.op, Compute) and t.op.reduction is None

    def _axes(self, op: Compute) -> tuple[tuple[Axis, ...], list[Expr]]:
        """Returns the axes of a block of the step, which counts computed steps, and its index in a buffer of the step."""
        axes = block_axes(op)
        direct = any(self._is_direct(t) for t in op.outputs)
        kind = AxisKind.ORDERED if direct else AxisKind.SPATIAL
        return (Axis(axes[0].var, self.scan.count, kind), *axes[1:]), [a.var for a in axes[: len(op.axes)]]

    def _target(self, t: Tensor, where: Sequence[Expr]) -> Target:
        """Returns where an element of *t* is, computed at the step and index *where*."""
        if self._is_direct(t):
            return self.state_of[self._key(t)], self._in_state(where)
        key = self._key(t)
        if key not in self.buffers.of:
            self.buffers[t] = Buffer(self.buffers.names.of(t.name), (self.scan.count, *t.shape[1:]), t.dtype)
        return self.buffers[t], where

    def _in_state(self, where: Sequence[Expr]) -> list[Expr]:
        return [where[0] + index(self.scan.first), *where[1:]]

    def _rewrite(self, op: Compute, axes: Sequence[Axis]) -> Rewrite:
        """Returns a rewriter of the formulas of *op*; its time is that of the block's axis, after the initial steps."""
        values: dict[Var, Expr] = dict(zip(variables(op), [a.var for a in axes], strict=True))
        step = axes[0].var
        values[op.axes[0]] = step + index(self.scan.first)

        def change(n: Node) -> Node | None:
            if not isinstance(n, Read):
                return None
            if n.tensor.op in self.scan.step:
                buffer, where = self._target(n.tensor, [step, *n.indices[1:]])
                return Load(buffer, tuple(where))
            return Load(self.buffers[n.tensor], tuple([simplify(i) for i in n.indices]))

        return lambda e: map_nodes(substitute(e, values), change)

    def _commit(self, t: Tensor, time: Var) -> Stmt:
        """Copies an update, computed by a reduction, to its state."""
        state, (source, _) = self.state_of[self._key(t)], self._target(t, ())
        axes = [Axis(Var(f"v{d}"), s, AxisKind.SPATIAL) for d, s in enumerate(source.shape)]
        axes[0] = Axis(axes[0].var, self.scan.count, AxisKind.ORDERED)
        inner = [Var(f"ax{d}") for d in range(1, source.rank)]
        where = tuple([a.var for a in axes])
        body = store(state, self._in_state(where), Load(source, where))
        return around(inner, axes[1:], make_block(state.name, axes, [time, *inner], body))
