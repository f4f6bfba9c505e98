"""Row-wise kernels: softmax, normalizations, means and matrix-vector products, each row by the threads of a block.

    for i: for k: M[i] = max(M[i], X[i, k])                  for i in bound(0, n, thread="blockIdx.x"):
    for i, j:     E[i, j] = exp(X[i, j] - M[i])                  for t in threads: for r, v: x[r, v] = X[i, (r * 64 + t) * 4 + v]
    for i, k:     S[i] += E[i, k]                      ->        for t in threads: for r, v: m = max(m, x[r, v])
    for i, j:     Y[i, j] = E[i, j] / S[i]                       M = the largest m of all threads
                                                                 for t in threads: for r, v: e[r, v] = exp(x[r, v] - M)
                                                                 ...

Each thread has the same elements in all of the blocks: vectors that lie side by side with those of its neighbours. The values
that it computes with them stay in its registers, if they are few enough, and so do elements that several blocks read. Values of
the row as a whole are computed by every thread for itself. Rows that are long, or of any length, are read again by each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.cost import (
    Planner,
    RowThreads,
    row_thread_plans,
    size_of,
)
from weft.ir import free_vars
from weft.loop import Buffer
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import block_path, blocks_in, loops_on
from weft.schedule.rules.block_facts import (
    block_of,
    inputs_of,
    is_reduction,
    loops_over,
    reads_along,
    spatial_axes,
)
from weft.schedule.rules.grid.row_group import RowsOf, group_facts, kept_results, read_again, rows_of, twin_results
from weft.schedule.rules.grid.thread_reduction import epilogue_of
from weft.schedule.rules.grid.trying import Trials
from weft.schedule.rules.grid.two_stages import reduce_in_stages
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def schedule_rows(s: Schedule, p: Planner) -> None:
    """Schedules the remaining blocks of *s* row by row, if that pays: all together, or each reduction with its epilogue."""
    free = [r for r in s.blocks() if is_free(s, r)]
    if any(is_reduction(block_of(s, r)) for r in free):
        reduce_in_stages(s, free, p)
        free = [r for r in s.blocks() if is_free(s, r)]
    if any(is_reduction(block_of(s, r)) for r in free) and _schedule_group(s, free, p):
        return
    for ref in free:
        if is_reduction(block_of(s, ref)) and is_free(s, ref):
            reader = epilogue_of(s, ref)
            _schedule_group(s, [ref] if reader is None else [ref, reader], p)


def is_free(s: Schedule, ref: BlockRef) -> bool:
    """Tells whether a block is in a loop nest by itself, and unscheduled."""
    loops = loops_on(block_path(s.function, ref))
    return all(f.kind == "range" and len(blocks_in(f)) == 1 for f in loops)


def _schedule_group(s: Schedule, refs: Sequence[BlockRef], p: Planner) -> bool:
    rows = rows_of(s, refs)
    if rows is None:
        return False
    group, program = group_facts(s, rows), s.program

    trials = Trials[RowThreads](s, p, lambda trial, choice: _share(trial, refs, rows, choice))

    def is_legal(
        choice: RowThreads,
    ) -> bool:  # results of parts may not combine in any order, or a block have to stay apart
        return choice.threads == 0 or trials.can_take(choice)

    choice = p.decide(refs[-1].name, RowThreads, lambda m: row_thread_plans(group, m), is_legal)
    if choice.threads:
        trials.carry_out(choice)
    return s.program is not program


def _share(s: Schedule, refs: Sequence[BlockRef], rows: RowsOf, choice: RowThreads) -> None:
    kept, again = (kept_results(s, rows), read_again(rows)) if choice.held else ([], {})
    work = _place(s, refs, rows.depth, choice)
    copies = [work.copied(buffer, [BlockRef(b.name) for b in users]) for buffer, users in again.items()]
    for ref in (*refs, *work.added):
        if is_reduction(block_of(s, ref)):
            work.reduce(ref)
        else:
            work.compute(ref, kept)
    for copy in copies:
        work.compute(copy, [block_of(s, copy).writes[0].buffer])
    work.bind()


def _vector_inputs(s: Schedule, parts: BlockRef, lane: LoopRef) -> list[str]:
    """Returns the names of the global buffers that a block reads contiguously along the loop *lane*."""
    block = block_of(s, parts)
    axis = next(a.var for a, b in zip(block.axes, block.bindings, strict=True) if b is lane.var)
    return list(
        dict.fromkeys(x.buffer.name for x in inputs_of(block) if x.buffer.scope == "global" and reads_along(x, axis))
    )


def _place(s: Schedule, refs: Sequence[BlockRef], depth: int, choice: RowThreads) -> _Work:
    """Places all blocks in the loop over the rows of the last one, or of the one that several last ones store."""
    final, added = refs[-1], list[BlockRef]()
    if is_reduction(block_of(s, final)) and len(block_of(s, final).writes) == 1:
        final = s.cache_write(final, "local")
        added.append(final)
    last = twin_results(s, refs)
    before = [*refs, *added][: -len(last) or None]
    loops = _row_loops(s, before[-1], depth) or [_unit_loop(s, before[-1])]
    for ref in reversed(before[:-1]):
        s.compute_at(ref, loops[-1])
    for ref in last:
        s.reverse_compute_at(ref, loops[-1])
    row = s.fuse(loops) if len(loops) > 1 else loops[0]
    around = s.split(row, [None, choice.rows]) if choice.rows > 1 else (row,)
    return _Work(s, choice, tuple(around), added, final)


def _row_loops(s: Schedule, ref: BlockRef, depth: int) -> list[LoopRef]:
    """Returns the loops over the first *depth* axes of a block's results; an axis of one element may have none."""
    return loops_over(s, ref, s.loops(ref), spatial_axes(block_of(s, ref))[:depth])


def _unit_loop(s: Schedule, ref: BlockRef) -> LoopRef:
    """Returns a loop of one iteration around those of a block."""
    inner = list(s.loops(ref))
    row = s.add_unit_loop(ref, "row")
    if inner:
        s.reorder([row, *inner])
    return row


@dataclass(frozen=True)
class _Work:
    """The scheduling of blocks inside of the loops *around* them, over rows."""

    s: Schedule
    choice: RowThreads
    around: tuple[LoopRef, ...]
    added: list[BlockRef]
    final: BlockRef

    def copied(self, buffer: Buffer, users: Sequence[BlockRef]) -> BlockRef:
        """Returns the copy of an input that all *users* are to read, made once for each row."""
        first, *others = users
        copy = self.s.cache_read(first, buffer.name, "local", others)
        self.s.compute_at(copy, self.around[-1])
        return copy

    def reduce(self, ref: BlockRef) -> None:
        """Schedules a reduction: threads reduce parts of a row, then combine their partial results."""
        s, choice = self.s, self.choice
        step, thread, lane = self._split(ref)
        parts = s.cross_thread_reduce(ref, thread, self.axis)
        if ref != self.final and block_of(s, ref).writes[0].buffer not in s.function.params:
            s.set_scope(ref, "local")
        if choice.lanes > 1:
            for name in _vector_inputs(s, parts, lane):
                self._copy_vector(parts, name, step)

    def _copy_vector(self, parts: BlockRef, name: str, step: LoopRef) -> None:
        """Lets a reduction load vectors of an input."""
        s = self.s
        copy = s.cache_read(parts, name, "local")
        s.compute_at(copy, step)
        loops = list(s.loops(copy))[len(s.loops(parts)) - 1 :]
        if [s.extent(f) for f in loops] != [self.choice.lanes]:
            raise ScheduleError(f"{copy.name} is no vector of {self.choice.lanes}: {[s.extent(f) for f in loops]}")
        s.vectorize(loops[0])

    def compute(self, ref: BlockRef, kept: Sequence[Buffer]) -> None:
        """Schedules an elementwise block: threads compute the elements of a row; a value per row is computed by each of them."""
        s, written = self.s, block_of(self.s, ref).writes
        own = len(s.loops(ref)) > len(self.around)
        if not own:
            if ref != self.final and all(w.buffer not in s.function.params for w in written):
                s.set_scope(ref, "local")
            return
        step, thread, lane = self._split(ref)
        s.reorder([thread, step, lane])
        s.bind(thread, self.axis)
        if self.choice.lanes > 1:
            s.vectorize(lane)
        for w in written:
            if any(w.buffer.name == k.name for k in kept):
                s.set_scope(ref, "local")
                self._lay_out(ref)

    def _split(self, ref: BlockRef) -> tuple[LoopRef, LoopRef, LoopRef]:
        """Splits the loops of a block along the row into steps, threads, and the elements of a vector."""
        s = self.s
        loops = list(s.loops(ref))[len(self.around) :]
        whole = s.fuse(loops) if len(loops) > 1 else loops[0]
        step, thread, lane = s.split(whole, [None, self.choice.threads, self.choice.lanes])
        return step, thread, lane

    def _lay_out(self, ref: BlockRef) -> None:
        """Lays the result of a block out by thread, so that the elements of a thread are contiguous."""
        block, c = block_of(self.s, ref), self.choice
        inside = {f.var for f in list(self.s.loops(ref))[len(self.around) :]}
        own = {a.var for a, b in zip(block.axes, block.bindings, strict=True) if inside.intersection(free_vars(b))}
        written = block.writes[0]
        names = [f"x{n}" for n in range(written.buffer.rank)]
        place = "0"
        for n, r in enumerate(written.ranges):
            place = f"({place}) * {size_of(written.buffer.shape[n])} + {names[n]}" if r.begin in own else place
        to = [x for x, r in zip(names, written.ranges, strict=True) if r.begin not in own]
        to += [f"({place}) // {c.threads * c.lanes}", f"({place}) // {c.lanes} % {c.threads}", f"({place}) % {c.lanes}"]
        self.s.transform_layout(ref, written.buffer.name, f"{', '.join(names)} -> {', '.join(to)}")

    def bind(self) -> None:
        """Binds the loops over rows."""
        self.s.bind(self.around[0], "blockIdx.x")
        if len(self.around) > 1:
            self.s.bind(self.around[1], "threadIdx.x" if self.choice.across else "threadIdx.y")

    @property
    def axis(self) -> str:
        """The axis of the threads of a row."""
        return "threadIdx.y" if self.choice.across else "threadIdx.x"
