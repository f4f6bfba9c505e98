"""`annotate`: a loop or a block carries a note for later stages: lowering, backends, users.

for i in range(0, 64):                  for i in range(0, 64, grain=2):
    S(i)                       ->           S(i)
"""

from __future__ import annotations

from weft.loop import NOTES, Block, For, Function, Stmt, UserNote, with_note
from weft.schedule.cursors.primitive import PRIMITIVES, primitive
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, refuse
from weft.schedule.cursors.tree import block_path, loop_path, replace


@primitive
def annotate(fn: Function, target: BlockRef | LoopRef, key: str, value: int | float | str) -> tuple[Change, None]:
    """Notes *key* = *value* at a loop or block; a note of the same key is replaced. The results of the program stay the same."""
    path = loop_path(fn, target) if isinstance(target, LoopRef) else block_path(fn, target)
    old = path[-1]
    if not key.isidentifier():
        refuse(f"{key!r} is not a name", old, "a key is a name such as parallel_grain")
    if key in NOTES or key in PRIMITIVES:
        refuse(f"the note {key} is made by the primitive that it belongs to", old, "call that primitive instead")
    return Change(fn.with_body(replace(path, _noted(old, UserNote(key, value)))), in_order=True), None


def _noted(old: Stmt, note: UserNote) -> Stmt:
    """Returns a loop or block with one more note, which replaces one of the same name."""
    if isinstance(old, For):
        return For(old.var, old.begin, old.extent, old.kind, old.body, with_note(old.notes, note))
    if isinstance(old, Block):
        b = old
        notes = with_note(b.notes, note)
        return Block(b.name, b.axes, b.bindings, b.predicate, b.reads, b.writes, b.init, b.body, notes)
    raise TypeError(f"a {type(old).__name__} has no notes")
