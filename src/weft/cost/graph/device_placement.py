"""The time of a node on a device and on the host's processor, and of copies between their memories, in nanoseconds.

A device is fast where many threads compute at once, and slow where one has to do a step after another: each waits for memory.
Launches are no part of it, since those of neighbours overlap; so that a node leaves the device only for what it computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from weft.cost.plans.plan import Decision
from weft.cost.rules.grid_time import MEMORY_BYTES
from weft.cost.rules.row_threads import NEAR_CYCLES
from weft.cost.sizes import size_of
from weft.loop import AxisKind, Block, Call, For, If, Program, Seq, Stmt, While, sub_statements
from weft.targets import Target

DEVICE_CYCLE: Final = 0.6
"""Nanoseconds of a cycle of a multiprocessor."""

PROCESSOR_CYCLE: Final = 0.33
"""Nanoseconds of a cycle of a processor's core."""

STEP_CYCLES: Final = 4.0
"""Cycles of a step that needs the one before it, on a processor: a load from its first cache."""

COPY_LATENCY: Final = 10_000.0
"""Nanoseconds from when a copy between the memories is asked for until what follows can begin."""

LINK_BYTES: Final = 12.0
"""Bytes per nanosecond of a copy between the memory of a device and the host's: sixteen lanes of PCIe 4 give about half of 25."""


WHILE_STEPS: Final = 16
"""Steps that a loop is taken to have whose end only its values tell: those of a search, or of the levels of a sort."""


@dataclass(frozen=True)
class RunOn(Decision):
    """Whether the host's processor computes a node of a model for a device."""

    question = "computing a node on the device or on the host's processor"
    of_grids = True
    processor: bool


@dataclass(frozen=True)
class NodeWork:
    """The work of a node: *operations* on elements, of which *chain* have to be done one after another, and the *bytes* moved."""

    operations: float
    chain: float
    bytes: float


def device_time(work: NodeWork, target: Target) -> float:
    """Returns the nanoseconds of a node on the device of *target*."""
    grid = target.grid
    if grid is None or not target.has_threads:  # it is a processor, too
        return processor_time(work, target if target.processor is None else target.processor)
    rate = grid.lanes * grid.multiprocessors / DEVICE_CYCLE
    moved = work.bytes * DEVICE_CYCLE / (MEMORY_BYTES * grid.multiprocessors)
    return max(work.operations / rate, moved, work.chain * NEAR_CYCLES * DEVICE_CYCLE)


def processor_time(work: NodeWork, processor: Target) -> float:
    """Returns the nanoseconds of a node on a processor."""
    rate = processor.lanes(32) * processor.core.fma_per_cycle * processor.cores / PROCESSOR_CYCLE
    moved = work.bytes * PROCESSOR_CYCLE / (processor.caches.memory_speed * processor.cores)
    return max(work.operations / rate, moved, work.chain * STEP_CYCLES * PROCESSOR_CYCLE)


def crossing_time(nbytes: float) -> float:
    """Returns the nanoseconds of a copy between the memory of a device and the host's."""
    return COPY_LATENCY + nbytes / LINK_BYTES


def work_of(program: Program, nbytes: float) -> NodeWork:
    """Returns the work of loops that are not scheduled, which move *nbytes*."""
    called = {f.name: f.body for f in program.functions}
    found = list(_nests(program.entry.body, called))
    return NodeWork(sum([parallel * chain for parallel, chain in found]), sum([chain for _, chain in found]), nbytes)


def _nests(s: Stmt, called: Mapping[str, Stmt]) -> Iterator[tuple[float, float]]:
    """Yields, for each block, how many chains of steps it has that may run at once, and the steps of one of them."""
    if not isinstance(s, Block):
        for inner in sub_statements(s):
            yield from _nests(inner, called)
        return
    extents = [(a.kind, size_of(a.extent)) for a in s.axes]
    spatial = prod([n for kind, n in extents if kind in (AxisKind.SPATIAL, AxisKind.REDUCE)])
    ordered = prod([n for kind, n in extents if kind not in (AxisKind.SPATIAL, AxisKind.REDUCE)])
    yield float(spatial), ordered * _steps(s.body, called)


def _steps(s: Stmt, called: Mapping[str, Stmt]) -> float:
    """Returns the steps of the statements of a block, those of the functions that they call included."""
    inner = [_steps(x, called) for x in sub_statements(s)]
    if isinstance(s, Call) and s.callee in called:
        return _steps(called[s.callee], called)
    if isinstance(s, Seq):
        return sum(inner)
    if isinstance(s, If):
        return max(inner, default=1.0)
    times = size_of(s.extent) if isinstance(s, For) else WHILE_STEPS if isinstance(s, While) else 1
    return times * max(1.0, sum(inner))
