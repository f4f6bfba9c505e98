"""Loop nests of scheduled programs as a batch: the reference for nests that are derived from plans alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from weft.cost import LoopNest, nests, operations_of, size_of
from weft.ir import Expr, RangesOrZero, Var
from weft.loop import Axis, AxisKind, Buffer, LoopKind, Program, loads
from weft.support.errors import ScheduleError
from weft.tune.features.nest_batch import KINDS, Ints, NestAccess, NestBatch


def nests_of_programs(programs: Sequence[Program], block: str = "", *, fma: bool = True) -> NestBatch:
    """Returns the nests around one block of schedules of one program: that with the most iterations, or the one named *block*.

    A loop that moves a block along none of its axes is one along a further axis, on which no access depends. Raises
    `ScheduleError` where the programs' blocks have different axes or accesses.
    """
    found = [_ProgramNest(_main_nest(p, block)) for p in programs]
    first = found[0]
    if any(n.signature != first.signature for n in found):
        raise ScheduleError("the programs are not schedules of one program: their blocks differ in axes or accesses")
    return NestBatch(
        accesses=first.accesses,
        is_reduction=(*[a.kind is AxisKind.REDUCE for a in first.axes], False),
        operations=operations_of(first.nest.store.value, fma=fma),
        axis=_padded([n.axis_of_level for n in found], -1),
        extent=_padded([[x.extent for x in n.nest.levels] for n in found], 1),
        step=_padded([n.step_of_level for n in found], 0),
        kind=_padded([[_kind(x.kind) for x in n.nest.levels] for n in found], 0),
        decisions=np.zeros((len(found), 0), np.float32),
        decision_names=(),
        axis_sizes=(*[size_of(a.extent) for a in first.axes], 1),
    )


def _main_nest(program: Program, block: str) -> LoopNest:
    found = [n for n in nests(program.entry.body) if not block or n.block.name == block]
    if not found:
        raise ScheduleError(f"the program has no block {block!r}")
    return max(found, key=lambda n: float(np.prod([float(x.extent) for x in n.levels])))


class _ProgramNest:
    """The nest around a block, by the block's own axes."""

    def __init__(self, nest: LoopNest) -> None:
        self.nest = nest
        self.axes: tuple[Axis, ...] = tuple(nest.block.axes)

    @cached_property
    def accesses(self) -> tuple[NestAccess, ...]:
        read = dict.fromkeys((x.buffer, x.indices) for x in loads(self.nest.store.value))
        stored = self._access(self.nest.store.buffer, self.nest.store.indices, is_store=True)
        return (stored, *[self._access(b, i, is_store=False) for b, i in read])

    @property
    def signature(self) -> tuple[object, ...]:
        return len(self.axes), tuple(
            [(a.shape, a.element_bytes, a.in_registers, a.coefficients.tobytes()) for a in self.accesses]
        )

    def _access(self, buffer: Buffer, indices: Sequence[Expr], *, is_store: bool) -> NestAccess:
        steps = [[_change(i, a.var, 1) for a in self.axes] + [0] for i in indices]
        coefficients = np.asarray(steps, np.int64).reshape(len(indices), len(self.axes) + 1)
        shape = tuple(map(size_of, buffer.shape))
        return NestAccess(buffer.name, shape, buffer.dtype.bytes, coefficients, is_store, buffer.in_registers)

    @cached_property
    def _moves(self) -> list[tuple[int, int]]:
        """The axis that each level moves along, and how far an iteration goes."""
        steps = [[_change(b, x.var, x.scale) for b in self.nest.block.bindings] for x in self.nest.levels]
        first = [next((a for a, s in enumerate(row) if s), len(self.axes)) for row in steps]
        return [(a, [*row, 1][a]) for a, row in zip(first, steps, strict=True)]

    @property
    def axis_of_level(self) -> list[int]:
        return [a for a, _ in self._moves]

    @property
    def step_of_level(self) -> list[int]:
        return [s for _, s in self._moves]


def _change(e: Expr, var: Var, by: int) -> int:
    """Returns how much *e* grows from 0 to *by* of *var*, all else at 0."""
    return RangesOrZero({var: (by, by)}).ends_of(e)[0] - RangesOrZero({}).ends_of(e)[0]


def _kind(kind: LoopKind) -> int:
    return KINDS.index(kind) if kind in KINDS else KINDS.index(LoopKind.PARALLEL)


def _padded(rows: Sequence[Sequence[int]], fill: int) -> Ints:
    """Returns a matrix of *rows*, the shorter ones with *fill* before their first."""
    width = max(map(len, rows))
    return np.asarray([[fill] * (width - len(r)) + list(r) for r in rows], np.int64).reshape(len(rows), width)
