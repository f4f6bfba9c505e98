"""Chains of nested loops, as `fuse` and `reorder` need them, and checks of loops that are replaced."""

from __future__ import annotations

from collections.abc import Sequence

from weft.loop import For, Function
from weft.schedule.cursors.state import LoopRef, called, refuse
from weft.schedule.cursors.tree import Path, loop_path, the_loop


def chain(fn: Function, loops: Sequence[LoopRef]) -> tuple[Path, list[For]]:
    """Returns the path to the outermost of *loops*, and the loops from there to the innermost, those between them too.

    Refuses loops of which one is given twice, or that are not all nested in one another.
    """
    if not loops:
        refuse("no loops were given", hint="name at least one loop")
    if len({r.var for r in loops}) != len(loops):
        refuse("a loop is given twice", hint="name each loop once")
    paths = [loop_path(fn, r) for r in loops]
    deepest = max(paths, key=len)
    shallowest = min(paths, key=len)
    for p in paths:
        if p[-1] not in deepest:
            refuse(
                f"{called(the_loop(p).var)} is not around {called(the_loop(deepest).var)}",
                p[-1],
                "the loops must be nested in one another, around the same block",
            )
    between = [s for s in deepest[len(shallowest) - 1 :] if isinstance(s, For)]
    return shallowest, between


def check_unannotated(loop: For) -> None:
    """Refuses a loop with notes, which would be lost with it."""
    if loop.notes:
        notes = ", ".join(dict.fromkeys([n.keyword for n in loop.notes]))
        refuse(
            f"the note {notes} of the loop {called(loop.var)} would be lost", loop, "take this step before annotating"
        )
