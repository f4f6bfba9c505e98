"""`annotate`: a loop or a block carries a note for what comes after the schedule.

for i in range(0, 64):                  for i in range(0, 64, prefetch=2):
    S(i)                       ->           S(i)
"""

from __future__ import annotations

from weft.loop.intrinsics import PREFETCH_HINT
from weft.loop.nodes import CROSS_THREAD, TENSOR, Annotation, Block, For, Function, Stmt
from weft.schedule.primitive import PRIMITIVES, primitive
from weft.schedule.state import BlockRef, Change, LoopRef, refuse
from weft.schedule.tree import block_path, loop_path, replace

_RESERVED = (TENSOR, CROSS_THREAD, "thread")
"""Annotations that primitives make, and vouch for, besides those of their own names."""


@primitive
def annotate(fn: Function, target: BlockRef | LoopRef, key: str, value: int | float | str) -> tuple[Change, None]:
    """Notes *key* = *value* at a loop or block; a note of the same key is replaced. What the program computes stays the same."""
    path = loop_path(fn, target) if isinstance(target, LoopRef) else block_path(fn, target)
    old = path[-1]
    if not key.isidentifier():
        refuse(f"{key!r} is not a name", old, "a key is a name such as parallel_grain")
    if key in _RESERVED or key in PRIMITIVES or key.startswith(PREFETCH_HINT):
        refuse(f"the annotation {key} is made by the primitive that it belongs to", old, "call that primitive instead")
    return Change(fn.with_body(replace(path, _noted(old, key, value)))), None


def _noted(old: Stmt, key: str, value: Annotation) -> Stmt:
    """Returns a loop or block with one more annotation."""
    if isinstance(old, For):
        return For(old.var, old.begin, old.extent, old.kind, old.body, _with(old.annotations, key, value))
    if isinstance(old, Block):
        b = old
        notes = _with(b.annotations, key, value)
        return Block(b.name, b.axes, b.bindings, b.predicate, b.reads, b.writes, b.init, b.body, notes)
    raise TypeError(f"a {type(old).__name__} has no annotations")


def _with(notes: tuple[tuple[str, Annotation], ...], key: str, value: Annotation) -> tuple[tuple[str, Annotation], ...]:
    return (*[n for n in notes if n[0] != key], (key, value))
