"""`software_pipeline`: the statements of a loop's body work on different iterations at a time.

for i in range(0, 8):                   T[0] = load(0)
    T[i] = load(i)             ->       for i in range(0, 7):
    B[i] = use(T[i])                        T[(i + 1) % 2] = load(i + 1)
                                            B[i] = use(T[i % 2])
                                        B[7] = use(T[1])

After Lam, "Software pipelining" (PLDI 1988), with the stages given instead of searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from weft.ir import ZERO, Bounds, Const, Expr, Var, index, linear_terms, prove, simplify
from weft.loop import Alloc, Buffer, For, Function, LoopKind, Stmt, for_, seq
from weft.schedule.cursors.loop_nest import parts_of
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import rebind, uses
from weft.schedule.cursors.state import Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import (
    Path,
    alloc_of,
    blocks_in,
    bounds_on,
    drop_alloc,
    loop_path,
    replace,
    symbols_of,
    the_loop,
)
from weft.schedule.legality.access_region import touched
from weft.schedule.legality.bijection import is_injective_in_loop
from weft.schedule.legality.flow_dependence import Uses, check_flat, check_structured, uncovered_read, uses_under
from weft.schedule.legality.loop_kinds import is_private
from weft.schedule.rewriting.loop_copies import loop_copy, relegalized_copy
from weft.schedule.rewriting.storage_folding import with_folded_storage


@primitive
def software_pipeline(fn: Function, loop: LoopRef, stages: Sequence[int]) -> tuple[Change, LoopRef]:
    """Runs each statement in the body of *loop* in its stage of *stages*: stage 0 is an iteration ahead of stage 1, and so on.

    Copies of the statements before and after the loop are the pipeline's prologue and epilogue. A buffer that passes values from
    one stage to a later one gets a copy for each iteration in flight. Legal for a serial loop longer than the pipeline, in which
    values pass only within an iteration, forwards. Returns the remaining loop.
    """
    path = loop_path(fn, loop)
    old = the_loop(path)
    parts, last = _stages(old, stages, bounds_on(path[:-1], fn))
    check_structured(old)
    check_flat(old)
    passed = _passed(fn, path, parts, stages)
    bounds = bounds_on(path[:-1], fn)
    taken = {b.name for b in blocks_in(fn.body)}

    def step(at: Expr) -> Stmt:
        """Returns the copies of those statements that have work in the iteration numbered *at*, counted from the first."""
        running = [(p, simplify(at - s, bounds)) for p, s in zip(parts, stages, strict=True)]
        known = [(p, i) for p, i in running if prove(i >= 0, bounds) and prove(i < old.extent, bounds)]
        return seq(*[relegalized_copy(rebind(loop_copy(p, taken), {old.var: i}, bounds), bounds) for p, i in known])

    var = Var(old.var.name)
    length = simplify(old.extent - last, bounds)
    inside = bounds.bind(var, ZERO, length - 1)
    steady = [_shifted(p, old.var, var + (last - s), inside) for p, s in zip(parts, stages, strict=True)]
    before = [step(index(u)) for u in range(last)]
    after = [step(old.extent + u) for u in range(last)]
    new: Stmt = seq(*before, for_(var, length, seq(*steady)), *after)
    own = _own_buffers(fn, path)
    for b in own:
        new = Alloc(b, new)
    made = fn.with_body(replace(path, new))
    for b in own:
        made = made.with_body(drop_alloc(made.body, b))
        places = _places(fn, path, b, passed[b]) if b in passed else None
        made = made if places is None else with_folded_storage(made, b, *places)
    return Change(made, ((old.var, var),)), LoopRef(var)


def _own_buffers(fn: Function, path: Path) -> list[Buffer]:
    """Returns the buffers allocated outside of the loop that are private to its iterations."""
    inside = [b for b in uses_under(path) if alloc_of(path[-1], b) is None]
    return [b for b in inside if (uses := uses_under(path)[b]).writes and is_private(fn, path, uses, b)]


def _shifted(part: Stmt, old: Var, value: Expr, bounds: Bounds) -> Stmt:
    return relegalized_copy(rebind(part, {old: simplify(value, bounds)}, bounds), bounds)


def _stages(old: For, stages: Sequence[int], bounds: Bounds) -> tuple[Sequence[Stmt], int]:
    """Returns the statements of the loop, and the last stage; refuses stages that do not fit."""
    parts = parts_of(old)
    if old.kind is not LoopKind.SERIAL or old.begin is not ZERO:
        refuse(f"the loop {called(old.var)} is {old.kind}, or does not begin at 0", old, "choose a serial loop")
    if len(parts) != len(stages):
        refuse(
            f"the loop {called(old.var)} has {len(parts)} statements, but {len(stages)} stages were given",
            old,
            "give a stage for each statement of the loop",
        )
    if stages[0] != 0 or stages[-1] == 0 or any(b < a for a, b in pairwise(stages)):
        refuse(
            f"the stages {list(stages)} do not go from 0 upwards",
            old,
            "a statement's stage is no less than those before",
        )
    if not prove(index(stages[-1]) < old.extent, bounds):
        refuse(
            f"the loop {called(old.var)} is not known to run longer than {stages[-1]} iterations",
            old,
            "use fewer stages, or a longer loop",
        )
    return parts, stages[-1]


def _passed(fn: Function, path: Path, parts: Sequence[Stmt], stages: Sequence[int]) -> dict[Buffer, int]:
    """Returns the buffers through which values pass to later stages, and how many stages at most.

    A statement runs ahead of those of later stages in earlier iterations, so neither may access elements that the other writes,
    except for values passed within an iteration.
    """
    used = [{r.buffer for b in blocks_in(p) for r in (*b.reads, *b.writes)} for p in parts]
    written = [{r.buffer for b in blocks_in(p) for r in b.writes} for p in parts]
    passed: dict[Buffer, int] = {}
    for q, late in enumerate(parts):
        for p in range(q):
            if stages[p] == stages[q]:
                continue
            for b in written[q] & used[p]:
                block = next(k for k in blocks_in(late) if any(r.buffer is b for r in k.writes))
                refuse(
                    f"{block.name} writes {b.name}, which is used in a stage before",
                    block,
                    "give it the stage of its first use",
                )
            for b in written[p] & used[q]:
                passed[b] = max(passed.get(b, 0), stages[q] - stages[p])
    found = uses_under(path)
    for b in passed:
        _check_passed(fn, the_loop(path), b, found[b])
    return passed


def _check_passed(fn: Function, target: For, buffer: Buffer, found: Uses) -> None:
    first = found.writes[0]
    indices = [r.begin for r in first.region.ranges]
    own = all(any(w.path == r.path and w.region is r.region for w in found.writes) for r in found.own_reads)
    unfed = uncovered_read(fn, found)
    if unfed is not None or not own:
        at = first.block if unfed is None else unfed.block
        refuse(
            f"{at.name} may use what another iteration writes to {buffer.name}",
            at,
            "only what an iteration makes itself can wait for a later stage",
        )
    if not any(a.var in indices and is_injective_in_loop(fn, first.path, target, a.var) for a in first.block.axes):
        refuse(
            f"its iterations write the same elements of {buffer.name}",
            first.block,
            "only what is made anew in each iteration can be kept for a later stage",
        )


def _places(fn: Function, path: Path, buffer: Buffer, distance: int) -> tuple[int, int] | None:
    """Returns the dimension of *buffer* along which iterations write, and how many elements are in use at a time there.

    None for a buffer that has strides, or that each iteration writes in another way than a constant number of elements further.
    """
    if buffer.strides is not None:
        return None
    var = the_loop(path).var
    box = touched(the_loop(path).body, buffer, bounds_on(path, fn), symbols_of(fn), writes=True) or ()
    moving = [d for d, r in enumerate(box) if uses(r.begin, var)]
    if len(moving) != 1:
        return None
    found = linear_terms(box[moving[0]].begin, [var])
    step, width = None if found is None else found[0].get(var), box[moving[0]].extent
    if not isinstance(step, Const) or not isinstance(width, Const) or not 0 < int(width.value) <= int(step.value):
        return None
    return moving[0], int(step.value) * (distance + 1)
