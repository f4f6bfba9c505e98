"""Runs the programs of threads: all threads of a grid in step, statement by statement, each statement for all of them at once.

    counters = run_threads(lower(program, target), {"A": a, "C": c}, target)

Beside computing the results, it finds errors that no execution on one machine could show for certain: data races, and with them
missing barriers, and barriers that only some threads of a block reach; and it counts the costs of a grid, see `Counters`. The
threads of a warp have consecutive numbers, x being fastest. Functions that are not kernels are the host's, which has one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from weft.codegen.interp.array_memory import Array, span, undefined
from weft.codegen.interp.faults import ExecutionError
from weft.codegen.interp.machine import Value, bind_inputs
from weft.codegen.interp.threads.atomic_updates import update
from weft.codegen.interp.threads.copies_in_flight import AsyncCopies
from weft.codegen.interp.threads.counters import Counters, count_sectors, count_turns
from weft.codegen.interp.threads.grid import Grid, Memory, meet
from weft.codegen.interp.threads.instruction_loops import with_instruction_loops
from weft.codegen.interp.threads.races import Race, RaceError, Shadow
from weft.codegen.interp.threads.thread_lanes import Lanes, Mask, Memo, active_places, spread
from weft.codegen.interp.threads.warp_shuffles import shuffle
from weft.ir import ONE, Expr, Ramp, Var
from weft.loop import (
    ATOMICS,
    WARP_SHUFFLE,
    Address,
    Alloc,
    Assert,
    Buffer,
    Call,
    Eval,
    For,
    Function,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Program,
    Seq,
    Stmt,
    Store,
    Thread,
    Waits,
    While,
    effects_of,
    find_note,
    print_stmt,
)
from weft.support.errors import LoweringError, RuntimeFailure
from weft.targets import Grid as GridFacts
from weft.targets import Sight, Target, sight_of

_LINES: Final = 3

Launch: TypeAlias = Callable[[Function, Mapping[Buffer, Array], Mapping[Var, int]], None]
"""Runs a kernel on the flat memories of its buffers, which it changes, and the values of its numbers."""


def run_threads(
    program: Program,
    inputs: Mapping[str, Value] | Sequence[Value],
    target: Target,
    function: str | None = None,
    launch: Launch | None = None,
) -> Counters:
    """Runs a function of *program*, by default the entry, with its kernels; arrays are changed in place.

    *inputs* are those of `run`. With *launch*, a device runs the kernels. Raises `RaceError` and `DivergenceError` for programs
    that are wrong whatever they compute, and the errors of `run`.
    """
    program = with_instruction_loops(program)
    f = program.entry if function is None else program[function]
    bound = bind_inputs(f, inputs)
    counters = Counters()
    given = list(zip(f.params, bound.arguments, strict=True))
    memories = {p: Memory(p, x[0], Sight.GRID) for p, x in given if isinstance(p, Buffer)}
    values: dict[Var, Any] = {v: np.int64(n) for v, n in bound.sizes.items()}
    values |= {p: p.dtype.numpy.type(x) for p, x in given if isinstance(p, Var)}
    run = _Run(program, target.grid or GridFacts(), counters, launch)
    with np.errstate(all="ignore"):
        run.function(f, memories, values)
    bound.copy_back()
    return counters


class _Run:
    """Runs statements for all threads of a grid."""

    def __init__(self, program: Program, facts: GridFacts, counters: Counters, launch: Launch | None) -> None:
        self.program = program
        self.facts = facts
        self.counters = counters
        self.launch = launch
        self.memories: dict[Buffer, Memory] = {}
        self.grid = Grid(1, 1, facts)
        self.lanes = Lanes(1, self.read)
        self.copies = AsyncCopies()
        self.in_kernel = False
        self.at: Stmt = Seq(())
        self.seen: list[Stmt] = []
        self.numbers: dict[Stmt, int] = {}

    # -- functions, loops over threads ------------------------------------------------------------------------------

    def function(self, f: Function, memories: Mapping[Buffer, Memory], values: Mapping[Var, Any]) -> None:
        """Runs a function whose parameters are *memories* and *values*."""
        outer = self.memories, self.grid, self.lanes, self.in_kernel, self.copies
        self.memories, self.in_kernel = dict(memories), find_note(f.notes, Kernel) is not None
        self.grid, self.lanes, self.copies = Grid(1, 1, self.facts), Lanes(1, self.read), AsyncCopies()
        self.lanes.values.update(values)
        if self.in_kernel:
            for m in self.memories.values():
                m.shadow = Shadow(len(m.flat))
        self.run(f.body, None)
        self.memories, self.grid, self.lanes, self.in_kernel, self.copies = outer

    def expand(self, s: For, mask: Mask) -> None:
        """Runs a loop over blocks or threads: each thread that there is becomes as many as the loop has iterations."""
        begin, extent = self.uniform(s.begin), self.uniform(s.extent)
        if mask is not None or extent <= 0:
            if extent > 0:
                raise LoweringError(f"the loop {s.var.name} over threads is under a condition")
            return
        grid, lanes = self.grid, self.lanes
        thread = find_note(s.notes, Thread)
        over_blocks = thread is not None and thread.axis.startswith("blockIdx")
        if over_blocks and grid.count != grid.blocks:
            raise LoweringError(f"the loop {s.var.name} over blocks is inside a loop over threads")
        self.grid = Grid(grid.count * extent, grid.blocks * (extent if over_blocks else 1), self.facts)
        self.lanes = Lanes(self.grid.count, self.read)
        for v, x in lanes.values.items():
            self.lanes.values[v] = np.repeat(x, extent) if np.ndim(x) else x
        self.lanes.values[s.var] = np.tile(np.arange(begin, begin + extent), grid.count)
        self.run(s.body, None)
        self.grid, self.lanes = grid, lanes

    def uniform(self, e: Expr) -> int:
        """Returns the value of *e*, which must be the same for all threads."""
        value = self.lanes.evaluate(e, None)
        if np.ndim(value):
            raise LoweringError("the number of threads is not the same for all blocks")
        return int(value)

    # -- statements -------------------------------------------------------------------------------------------------

    def run(self, s: Stmt, mask: Mask) -> None:
        """Runs *s* in the threads of *mask*."""
        while isinstance(s, Let | Alloc | Seq):
            self.at = s
            if isinstance(s, Let):
                self.lanes.values[s.var] = self.lanes.evaluate(s.value, mask)
                s = s.body
            elif isinstance(s, Alloc):
                self.memories[s.buffer] = Memory(s.buffer, np.empty(0), sight_of(s.buffer.scope))
                s = s.body
            elif s.body:
                for part in s.body[:-1]:
                    self.run(part, mask)
                s = s.body[-1]
            else:
                return
        self.at = s
        if type(s) not in _RUNNERS:
            raise LoweringError(f"a {type(s).__name__} cannot be run by threads", hint="lower the program first")
        _RUNNERS[type(s)](self, s, mask)

    def narrowed(self, cond: Any, mask: Mask) -> Array:
        """Returns the active threads in which *cond* holds."""
        holds: Array = np.broadcast_to(cond, self.grid.count)
        return holds if mask is None else holds & mask

    # -- memory -----------------------------------------------------------------------------------------------------

    def where(
        self, buffer: Buffer, indices: tuple[Expr, ...], mask: Mask, memo: Memo
    ) -> tuple[Memory, tuple[Array, ...], Array]:
        """Returns the memory of *buffer*, the active places, and the element of the memory that each of them accesses.

        A place is a thread, or a lane of one.
        """
        memory, count, lanes = self.memories[buffer], self.grid.count, max([i.dtype.lanes for i in indices], default=1)
        places = active_places(mask, count, lanes)
        shape = [self.lanes.evaluate(e, mask) for e in buffer.shape]
        strides = [self.lanes.evaluate(e, mask) for e in buffer.row_major_strides()]
        element = np.zeros(len(places[0]), np.int64)
        for d, (e, size, stride) in enumerate(zip(indices, shape, strides, strict=True)):
            i = spread(self.lanes.evaluate(e, mask, memo), count, lanes)[places]
            self._check_inside(buffer, d, i, places[0], int(size))
            element = element + i * int(stride)
        size = span(buffer.dtype, [int(n) for n in shape], [int(n) for n in strides])
        if memory.sight is not Sight.GRID or len(memory.flat) == 0:
            row, rows = self.grid.rows(memory.sight)
            if len(memory.flat) != rows * size:
                memory.flat, memory.shadow = undefined(buffer.dtype, rows * size), None
            element = element + row[places[0]] * size
        if memory.shadow is None and self.in_kernel and memory.sight is not Sight.THREAD:
            memory.shadow = Shadow(len(memory.flat))
        return memory, places, element

    def _check_inside(self, buffer: Buffer, d: int, i: Array, active: Array, size: int) -> None:
        outside = (i < 0) | (i >= size)
        if outside.any():
            k = int(np.flatnonzero(outside)[0])
            raise ExecutionError(
                f"the index {i[k]} of dimension {d} of {buffer.name} is outside of 0 .. {size - 1}, in"
                f" {self.grid.called(int(active[k]))}\n{_shown(self.at)}"
            )

    def read(self, e: Load, lanes: Lanes, mask: Mask, memo: Memo) -> Array:
        """Loads an element for each active place."""
        memory, places, element = self.where(e.buffer, e.indices, mask, memo)
        if memory.shadow is not None and self.in_kernel:
            self._check_race(memory.shadow.read(element, places[0], self.grid.clock, self._number()), memory)
        self.count(memory, places, element, writes=False, at=e)
        count = self.grid.count
        made = np.zeros(count if e.dtype.lanes == 1 else (count, e.dtype.lanes), e.buffer.dtype.numpy)
        made[places] = memory.flat[element]
        return made if count > 1 or e.dtype.lanes > 1 else made[0]

    def write(self, s: Store, mask: Mask) -> None:
        """Stores an element for each active place."""
        memo: Memo = {}
        if s.mask is not None:
            mask = self.lanes.both(self.lanes.evaluate(s.mask, mask, memo), mask)
        value = self.lanes.evaluate(s.value, mask, memo)
        memory, places, element = self.where(s.buffer, s.indices, mask, memo)
        self.touch(memory, places, element)
        self.count(memory, places, element, writes=True, at=s)
        memory.flat[element] = spread(value, self.grid.count, s.value.dtype.lanes)[places]

    def touch(self, memory: Memory, places: tuple[Array, ...], element: Array, *, updates: bool = False) -> None:
        """Checks that no other thread may touch elements that are written; atomic *updates* may be others'."""
        if memory.shadow is not None and self.in_kernel:
            noted = memory.shadow.update if updates else memory.shadow.write
            self._check_race(noted(element, places[0], self.grid.clock, self._number()), memory)

    def count(
        self, memory: Memory, places: tuple[Array, ...], element: Array, *, writes: bool, at: Load | Store
    ) -> None:
        """Counts an access. The lanes of a vector that do not lie side by side are accessed one after another."""
        if not self.in_kernel or not len(element):
            return
        c, size, lanes = self.counters, memory.flat.itemsize, max([i.dtype.lanes for i in at.indices], default=1)
        if lanes > 1 and not _lie_side_by_side(at):
            group = self.grid.warp[places[0]] * lanes + places[1]
        elif memory.sight is Sight.BLOCK:
            group = self.grid.parts_of_warps(places[0], lanes)
        else:
            group = self.grid.warp[places[0]]
        if memory.sight is Sight.GRID:
            moved = count_sectors(self.facts, group, element, size)
            c.requests += len(np.unique(group))
            c.loads += 0 if writes else moved
            c.stores += moved if writes else 0
            c.of_buffer[memory.buffer.name] += moved
        elif memory.sight is Sight.BLOCK:
            inside = element % (len(memory.flat) // self.grid.blocks)
            accesses, turns, ways = count_turns(self.facts, group, inside, size)
            c.accesses, c.turns, c.ways = c.accesses + accesses, c.turns + turns, max(c.ways, ways)

    def _number(self) -> int:
        if self.at not in self.numbers:
            self.numbers[self.at] = len(self.seen)
            self.seen.append(self.at)
        return self.numbers[self.at]

    def _check_race(self, race: Race | None, memory: Memory) -> None:
        if race is None:
            return
        size = len(memory.flat) // self.grid.rows(memory.sight)[1]
        raise RaceError(
            f"{self.grid.called(race.thread)} {race.verbs[0]} element {race.element % size} of {memory.buffer.name}, which"
            f" {self.grid.called(race.other)} {race.verbs[1]}, with no barrier between them\n  now\n{_shown(self.at)}"
            f"  before\n{_shown(self.seen[race.other_statement])}",
            hint="insert a barrier, or let one thread alone touch the element",
        )


def _lie_side_by_side(at: Load | Store) -> bool:
    return all(isinstance(i, Ramp) and i.stride is ONE for i in at.indices if i.dtype.lanes > 1)


def _shown(s: Stmt) -> str:
    lines = print_stmt(s).splitlines()
    return "\n".join([f"    {x}" for x in lines[:_LINES]] + ["    ..."] * (len(lines) > _LINES)) + "\n"


def _for(r: _Run, s: For, mask: Mask) -> None:
    if s.kind is LoopKind.BOUND:
        r.expand(s, mask)
        return
    begin, extent = r.lanes.evaluate(s.begin, mask), r.lanes.evaluate(s.extent, mask)
    if not np.ndim(extent):
        for k in range(int(extent)):
            r.lanes.values[s.var] = begin + np.int64(k)
            r.run(s.body, mask)
        return
    for k in range(int(extent.max())):
        taken = r.narrowed(k < extent, mask)
        r.counters.divergent += r.grid.split(taken, mask)
        if not taken.any():
            return
        r.lanes.values[s.var] = begin + np.int64(k)
        mask = taken
        r.run(s.body, mask)


def _while(r: _Run, s: While, mask: Mask) -> None:
    while True:
        r.at = s
        cond = r.lanes.evaluate(s.cond, mask)
        if np.ndim(cond):
            taken = r.narrowed(cond, mask)
            r.counters.divergent += r.grid.split(taken, mask)
            mask = taken
        if not (np.any(cond) if mask is None else mask.any()):
            return
        r.run(s.body, mask)


def _if(r: _Run, s: If, mask: Mask) -> None:
    cond = r.lanes.evaluate(s.cond, mask)
    if not np.ndim(cond):
        if cond:
            r.run(s.then, mask)
        elif s.other is not None:
            r.run(s.other, mask)
        return
    taken, left = r.narrowed(cond, mask), r.narrowed(~cond, mask)
    r.counters.divergent += r.grid.split(taken, mask)
    if taken.any():
        r.run(s.then, taken)
    if s.other is not None and left.any():
        r.run(s.other, left)


def _call(r: _Run, s: Call, mask: Mask) -> None:
    known = effects_of(s)
    if known is not None and known.is_hint:
        return
    waits = None if known is None else known.barrier
    if s.callee == WARP_SHUFFLE:
        r.counters.shuffles += shuffle(r, s, mask)
    elif s.callee in ATOMICS:
        update(r, s, mask)
    elif known is not None and known.step is not None:
        r.copies.run(r, s, known.step, mask)
    elif waits is Waits.BLOCK:
        came = meet(mask, r.grid.block, r.grid.blocks, "block")
        r.grid.pass_barrier(came)
        r.counters.barriers += len(came)
    elif waits is Waits.WARP:
        came = meet(mask, r.grid.warp, r.grid.warps, "warp")
        r.grid.clock.of_warp[came] += 1
        r.counters.warp_barriers += len(came)
    else:
        _launch(r, s)


def _launch(r: _Run, s: Call) -> None:
    callee = next((f for f in r.program.functions if f.name == s.callee), None)
    if callee is None or r.in_kernel:
        raise ExecutionError(f"there is no function {s.callee!r} that could be called here")
    memories: dict[Buffer, Memory] = {}
    values: dict[Var, Any] = {}
    for p, a in zip(callee.params, s.args, strict=True):
        if isinstance(p, Var):
            values[p] = r.lanes.evaluate(a, None)
        elif isinstance(a, Address):
            given, _, first = r.where(a.buffer, a.indices, None, {})
            memories[p] = Memory(p, given.flat[int(first[0]) :], Sight.GRID)
    if r.launch is None:
        r.function(callee, memories, values)
    else:
        r.launch(callee, {p: m.flat for p, m in memories.items()}, {v: int(n) for v, n in values.items()})


def _assert(r: _Run, s: Assert, mask: Mask) -> None:
    holds = np.broadcast_to(r.lanes.evaluate(s.cond, mask), r.grid.count)
    if not (holds if mask is None else holds[mask]).all():
        raise RuntimeFailure(s.message.format(*[r.lanes.evaluate(v, mask) for v in s.values]))


_RUNNERS: Final[dict[type[Stmt], Callable[[_Run, Any, Mask], None]]] = {
    For: _for,
    While: _while,
    If: _if,
    Call: _call,
    Assert: _assert,
    Store: _Run.write,
    Eval: lambda r, s, mask: r.lanes.evaluate(s.value, mask),
}
