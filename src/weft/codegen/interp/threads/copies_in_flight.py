"""Asynchronous copies, interpreted: their destination is undefined until the threads have waited for them.

A copy touches the elements that it writes twice: where it begins, so that another thread may not read them any more, and where it
is waited for, so that another thread reads them after a barrier behind that alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from weft.codegen.interp.array_memory import Array, undefined
from weft.codegen.interp.faults import ExecutionError
from weft.codegen.interp.threads.grid import Grid, Memory
from weft.codegen.interp.threads.thread_lanes import Lanes, Mask, Memo, spread
from weft.ir import ONE, Expr, Ramp, broadcast, const, select
from weft.loop import Address, AsyncStep, Buffer, Call, Load


class Threads(Protocol):
    """The interface to the running threads."""

    lanes: Lanes
    grid: Grid

    def where(
        self, buffer: Buffer, indices: tuple[Expr, ...], mask: Mask, memo: Memo
    ) -> tuple[Memory, tuple[Array, ...], Array]:
        """Returns the memory of a buffer, the active places, and the element that each of them accesses."""

    def touch(self, memory: Memory, places: tuple[Array, ...], element: Array, *, updates: bool = False) -> None:
        """Checks that no other thread may touch elements that are written; atomic *updates* may be others'."""

    def count(self, memory: Memory, places: tuple[Array, ...], element: Array, *, writes: bool, at: Any) -> None:
        """Counts an access."""


@dataclass(frozen=True, eq=False)
class Copied:
    """Values on their way to elements of a memory, copied by the threads of *places*."""

    memory: Memory
    places: tuple[Array, ...]
    element: Array
    values: Array


@dataclass
class AsyncCopies:
    """The copies that have begun: those of no group yet, and the groups that no thread has waited for, in order."""

    begun: list[Copied] = field(default_factory=list)
    groups: list[list[Copied]] = field(default_factory=list)

    def run(self, r: Threads, s: Call, step: AsyncStep, mask: Mask) -> None:
        """Runs a call in the threads of *mask*."""
        if step is AsyncStep.COPY:
            self.begin(r, s, mask)
        elif mask is not None:
            raise ExecutionError(f"only some threads come by {s.callee}")
        elif step is AsyncStep.COMMIT:
            self.groups.append(self.begun)
            self.begun = []
        else:
            self.wait(r, int(r.lanes.evaluate(s.args[0], None)))

    def begin(self, r: Threads, s: Call, mask: Mask) -> None:
        """Begins a copy: it reads at once, which its reader may not rely on."""
        to, source, count, holds = s.args
        assert isinstance(to, Address)
        assert isinstance(source, Address)
        lanes = int(r.lanes.evaluate(count, None))
        read, written = [Load(a.buffer, (Ramp(a.indices[0], ONE, lanes),)) for a in (source, to)]
        values = r.lanes.evaluate(select(holds, read, broadcast(const(0, to.buffer.dtype), lanes)), mask)
        memory, places, element = r.where(to.buffer, written.indices, mask, {})
        r.touch(memory, places, element)
        r.count(memory, places, element, writes=True, at=written)
        memory.flat[element] = undefined(to.buffer.dtype, len(element))
        self.begun.append(Copied(memory, places, element, spread(values, r.grid.count, lanes)[places]))

    def wait(self, r: Threads, left: int) -> None:
        """Ends all groups but so many of the last."""
        ended = self.groups[: max(0, len(self.groups) - left)]
        self.groups = self.groups[len(ended) :]
        for c in [c for group in ended for c in group]:
            r.touch(c.memory, c.places, c.element)
            c.memory.flat[c.element] = c.values
