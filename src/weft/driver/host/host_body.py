"""The statements that run one graph: the calls of its kernels in order, checks between them, and late sizes as they become known.

    nonzero_positions(in0.at(0), t0.at(0), t1.at(0))
    n = let(t1[0])
    check(0 <= n, ...)
    arena1 = alloc("global", u8[n * 4])
    out0 = alloc("output@0", i64[1, n])
    if 0 < n:
        ...

Kernels that watch their indices set `outside` where one is not inside of its limits, and go on with the nearest that is. Which
one it was is looked for when all have run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.driver.host.host_checks import cannot_compute, guard_checks, late_checks
from weft.driver.host.host_memory import HostMemory
from weft.graph import Constant, Group, LateSize, Value
from weft.ir import INDEX, ONE, ZERO, Expr, all_of, cast, const, index, maximum, ne
from weft.loop import Alloc, Buffer, Call, If, Let, Load, Stmt, Store, seq
from weft.support.dtypes import i32

OUTSIDE = Buffer("outside", (ONE,), i32)
"""Where kernels report an index outside of its limits."""

Ask: TypeAlias = Callable[[int, Stmt], Stmt]
"""Gives an output of late sizes, of this number, its memory while a statement runs."""

Control: TypeAlias = "Callable[[HostBody, int, Group], Stmt]"
"""Writes the control flow of a step."""


@dataclass(frozen=True, eq=False)
class HostBody:
    """Writes the statements; *kernels* has the function's name for each group's key.

    *ask* gives late outputs their memory, *take* late inputs theirs; *control* writes the nodes of control flow; *last* are
    statements that follow all others, where all late sizes are known.
    """

    memory: HostMemory
    kernels: Mapping[str, str]
    ask: Ask
    control: Control
    take: Ask | None = None
    last: tuple[Stmt, ...] = ()

    def statements(self) -> Stmt:
        """Returns all of them."""
        fused = self.memory.fused
        checks = guard_checks(self.memory)
        calls = [self.call(n, g) for n, g in enumerate(fused.groups)]
        search = [s for n, g in enumerate(fused.groups) if g in fused.on_demand for s in (calls[n], *checks.steps[n])]
        parts: list[Stmt] = [*reversed(self.last), *([_searched(search)] if search else [])]
        late = list(fused.late_sizes)
        for n in reversed(range(-1, len(fused.groups))):
            while late and late[-1][0] == n:  # later groups are in its scope; the last to be known is the innermost
                stage = len(late)
                parts = [self.bound(stage, late.pop()[1], seq(*checks.stages[stage], *reversed(parts)))]
            if n < 0 or fused.groups[n] not in fused.on_demand:
                parts += [*reversed(checks.steps[n]), *([calls[n]] if n >= 0 else [])]
        return seq(*reversed(parts))

    def call(self, step: int, group: Group) -> Stmt:
        """Returns the call of a kernel."""
        if group.regions:
            return seq(self.control(self, step, group), *self.memory.copies(group))
        views = self.memory.of(group).views()
        workspaces = self.memory.plan.workspaces.get(step, ())
        addresses: list[Expr] = [views.address(v) for v in (*group.inputs, *group.outputs, *workspaces)]
        call = Call(self.kernels[group.key], (*addresses, *group.sizes))
        return seq(views.around(self.of_sizes(group, call, len(workspaces))), *self.memory.copies(group))

    def of_sizes(self, group: Group, call: Call, workspaces: int) -> Stmt:
        """Returns the call of a kernel, or of the version of it that fits the sizes of the call.

        Kernels compute with sizes of at least one. Where one is zero, and no version is for that, outputs are empty, or the call
        is refused.
        """
        fused = self.memory.fused
        made: Stmt = call
        if sizes := fused.zero_sizes_of(group):
            follows = all(map(group.is_empty_where_zero, sizes))
            made = If(all_of([v > ZERO for v in sizes]), call, None if follows else cannot_compute(group, sizes))
        addresses = call.args[: len(call.args) - workspaces - len(group.sizes)]
        for version in reversed(fused.versions.get(group, ())):
            other = Call(self.kernels[version.group.key], (*addresses, *version.sizes))
            made = If(version.condition, other, made)
        return made

    def bound(self, stage: int, late: LateSize, rest: Stmt) -> Stmt:
        """Returns *rest* in the scope of a late size, of the arena of its stage, and of the outputs whose sizes are known now."""
        fused, plan = self.memory.fused, self.memory.plan
        for give, values in ((self.ask, fused.graph.outputs), (self.take, fused.graph.inputs)):
            for number, v in enumerate(values):
                if give is not None and fused.stage(*v.shape) == stage:
                    rest = give(number, rest)
        for v, buffer in self.memory.kept.items():
            if fused.stage(*v.shape) == stage:
                rest = Alloc(buffer, rest)
        for m in (self.memory, self.memory.beside) if stage in plan.late else ():
            rest = rest if m is None else Alloc(m.arenas[stage], rest)
        body = seq(*late_checks(self.memory, stage, late), rest)
        if isinstance(late.value, Constant):
            return Let(late.size, index(int(late.value.array.reshape(-1)[late.element])), body)
        views = self.memory.near(late.value).views()
        found = Load(views.buffer(late.value), (views.begin(late.value) + late.element,))
        return views.around(Let(late.size, cast(found, INDEX), body))


def _searched(search: Sequence[Stmt]) -> Stmt:
    """Looks for the index that a kernel reported, if one did."""
    told, nothing = Load(OUTSIDE, (ZERO,)), const(0, i32)
    return If(ne(told, nothing), seq(Store(OUTSIDE, (ZERO,), nothing, None), *search), None)


def late_shape(v: Value) -> tuple[Expr, ...]:
    """Returns the shape of a value of late sizes, as it is told to others: formulas of sizes that are zero may be below."""
    return tuple([maximum(s, ZERO) for s in v.shape])
