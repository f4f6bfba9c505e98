"""Choosing the kind of a loop (serial, parallel, vectorised ...), and its legality."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from weft.ir import ONE, ZERO, Const, Expr, Var, free_vars, linear_terms, prove, substitute
from weft.loop import NOTHING, Alloc, AxisKind, Buffer, For, Function, LoopKind, buffers_of
from weft.schedule.cursors.state import Illegal, LoopRef, called, refuse
from weft.schedule.cursors.tree import (
    Path,
    alloc_of,
    blocks_in,
    bounds_on,
    drop_alloc,
    loop_path,
    loops_in,
    loops_on,
    replace,
    the_loop,
)
from weft.schedule.legality.access_region import ends_over
from weft.schedule.legality.bijection import is_injective, is_injective_in_loop
from weft.schedule.legality.flow_dependence import (
    Access,
    Uses,
    check_structured,
    is_defined,
    is_finished,
    is_spread,
    roots,
    uncovered_read,
    uses_under,
)
from weft.schedule.legality.loop_carried import carried_read
from weft.schedule.legality.trust import is_trusted


def set_kind(fn: Function, loop: LoopRef, kind: LoopKind) -> Function:
    """Makes *loop* run as *kind* says."""
    path = loop_path(fn, loop)
    old = the_loop(path)
    if old.kind is not LoopKind.SERIAL:
        refuse(f"the loop is {old.kind} already", old, "choose a serial loop")
    new = For(old.var, old.begin, old.extent, kind, old.body, old.notes)
    return fn.with_body(replace(path, new))


def check_constant_extent(fn: Function, loop: LoopRef) -> None:
    """Refuses a loop of symbolic extent."""
    found = the_loop(loop_path(fn, loop))
    if not isinstance(found.extent, Const):
        refuse("its extent is not a constant", found, "split it by a constant factor first")


def check_independent(fn: Function, loop: LoopRef, *, private: bool, threads: bool = False) -> list[Buffer]:
    """Refuses a loop whose iterations are not independent; returns the buffers to be privatised to an iteration.

    Each block under it must use the loop in its spatial axes only. Of each buffer written there, different iterations must
    access different elements or, if *private* memory is possible, the buffer must be used nowhere outside the loop; and an
    iteration may read only elements that the same iteration has written. Where schedules are trusted, that is asked only of
    buffers that may become private. Iterations that are *threads* may update elements in any order, each by an atomic operation.
    """
    path = loop_path(fn, loop)
    target = the_loop(path)
    check_structured(target)
    if target.extent is ONE:
        return []
    _check_spatial(target, threads=threads)
    if is_trusted() and not private:
        return []
    found = uses_under(path)
    around = {f.var for f in loops_on(path)}
    needed: list[Buffer] = []
    for buffer, uses in found.items():
        if not _is_in_question(fn, path, buffer, uses, threads=threads):
            continue
        unfed = uncovered_read(fn, uses, around)
        if unfed is None and carried_read(fn, uses, target, around) is None and _is_apart(fn, uses, target):
            continue
        if _take_windows(fn, uses, target, around):
            continue
        if unfed is not None:
            refuse(
                f"{unfed.block.name} may use what another iteration writes to {buffer.name}",
                unfed.block,
                "compute it where it is used, or run another loop this way",
            )
        if not private or not is_private(fn, path, uses, buffer):
            refuse(
                f"its iterations write the same elements of {buffer.name}",
                uses.writes[0].block,
                "run a loop that the results' indices depend on this way",
            )
        needed.append(buffer)
    return needed


def _is_in_question(fn: Function, path: Path, buffer: Buffer, uses: Uses, *, threads: bool) -> bool:
    """Tells whether iterations may meet in *buffer*: written in the loop at the end of *path*, and not allocated there.

    They need not care where they are *threads* that do nothing with it but update elements, in any order.
    """
    if not uses.writes or alloc_of(path[-1], buffer) is not None or (threads and _is_only_updated(uses)):
        return False
    return not is_trusted() or _is_used_here_only(fn, path, buffer)


def _is_only_updated(uses: Uses) -> bool:
    """Tells whether one block alone accesses a buffer, and updates its elements in any order."""
    (block, *others) = dict.fromkeys([a.block for a in (*uses.writes, *uses.reads, *uses.own_reads)])
    return not others and any(a.kind is AxisKind.UNORDERED for a in block.axes)


def _check_spatial(target: For, *, threads: bool) -> None:
    """Refuses a loop along which a block reduces, or must keep its order; *threads* need none for updates."""
    fine = (AxisKind.SPATIAL, AxisKind.UNORDERED) if threads else (AxisKind.SPATIAL,)
    for block in blocks_in(target):
        for axis, binding in zip(block.axes, block.bindings, strict=True):
            if axis.kind not in fine and any(v is target.var for v in free_vars(binding)):
                refuse(
                    f"the block {block.name} combines values along it: its axis {called(axis.var)} is of kind {axis.kind}",
                    block,
                    "run a spatial loop this way",
                )


def _is_apart(fn: Function, uses: Uses, target: For) -> bool:
    """Tells whether iterations of *target* write disjoint elements: all writes are within those of its first writes."""
    return all(
        (is_spread(fn, w) and is_injective(fn, w.path, target)) or _is_told_apart(fn, w, target)
        for w in roots(fn, uses)
    )


def _is_told_apart(fn: Function, write: Access, target: For) -> bool:
    """Tells whether some index that is a plain axis differs in different iterations of *target*."""
    axes = [a.var for a in write.block.axes if a.kind is AxisKind.SPATIAL]
    indices = [r.begin for r in write.region.ranges if r.extent is ONE]
    return any(v in indices and is_injective_in_loop(fn, write.path, target, v) for v in axes)


def _take_windows(fn: Function, uses: Uses, target: For, around: Collection[Var]) -> bool:
    """Tells whether, along one dimension, the range of each iteration of *target* ends before that of the next begins."""
    accesses = (*uses.writes, *uses.reads, *uses.own_reads)
    return any(_follow(fn, accesses, d, target, around) for d in range(accesses[0].region.buffer.rank))


def _follow(fn: Function, accesses: Sequence[Access], dimension: int, target: For, around: Collection[Var]) -> bool:
    windows: list[tuple[Expr, Expr]] = []
    for a in accesses:
        inner = [f for f in a.loops if f.var not in around and f.var is not target.var]
        found = ends_over(a.block, a.region.ranges[dimension], inner, bounds_on(a.path, fn))
        step = None if found is None else linear_terms(found[0], [target.var])
        if found is None or step is None or not prove(step[0].get(target.var, ZERO) >= ZERO):
            return False
        windows.append(found)
    bounds = bounds_on(loop_path(fn, LoopRef(target.var)), fn)
    later = {target.var: target.var + ONE}
    return all(prove(last < substitute(first, later), bounds) for _, last in windows for first, _ in windows)


def is_private(fn: Function, path: Path, uses: Uses, buffer: Buffer) -> bool:
    """Tells whether *buffer* can be private to an iteration: allocated here, used nowhere else, and not live on entry."""
    if alloc_of(fn.body, buffer) is None or not all(is_finished(w.path, path) for w in uses.writes):
        return False
    first = uses.writes[0]
    if (
        not is_defined(first)
        or any(r.path == first.path for r in uses.own_reads)
        or uncovered_read(fn, uses) is not None
    ):
        return False
    return _is_used_here_only(fn, path, buffer)


def _is_used_here_only(fn: Function, path: Path, buffer: Buffer) -> bool:
    """Tells whether *buffer* is allocated in *fn*, and used nowhere but at the end of *path*."""
    if alloc_of(fn.body, buffer) is None:
        return False
    return buffer not in buffers_of(drop_alloc(replace(path, NOTHING), buffer))


def with_own_buffers(fn: Function, loop: LoopRef, buffers: list[Buffer]) -> Function:
    """Moves the allocations of *buffers* into *loop*, so that each iteration has a private copy."""
    for b in buffers:
        fn = fn.with_body(drop_alloc(fn.body, b))
        path = loop_path(fn, loop)
        old = the_loop(path)
        new = For(old.var, old.begin, old.extent, old.kind, Alloc(b, old.body), old.notes)
        fn = fn.with_body(replace(path, new))
    return fn


_CHECKED: Final = frozenset({LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.BOUND})


def relegalize(fn: Function, before: Function, *, in_order: bool = False) -> Function:
    """Checks the parallel, bound and vectorised loops that a step has changed, and privatises buffers to their iterations.

    A loop that was serial *before* has been checked by the primitive that chose its kind; one of the same kind was checked then,
    which still holds where the step is *in_order* (see `Change`).
    """
    checked = [f for f in loops_in(fn.body) if f.kind in _CHECKED]
    old = {f.var: f for f in loops_in(before.body)} if checked else {}
    for loop in checked:
        known = old.get(loop.var)
        if known is None or (known is not loop and known.kind is loop.kind and not in_order):
            fn = _settled(fn, loop, known)
    return fn


def _settled(fn: Function, loop: For, known: For | None) -> Function:
    ref = LoopRef(loop.var)
    try:
        private = check_independent(
            fn, ref, private=loop.kind is not LoopKind.VECTORIZED, threads=loop.kind is LoopKind.BOUND
        )
    except Illegal as e:
        refuse(f"in the {loop.kind} loop {called(loop.var)}, {e.message}", known or e.at, e.hint)
    return with_own_buffers(fn, ref, private)
