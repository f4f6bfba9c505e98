"""The loops and blocks under a statement, remembered by it: a rewrite keeps most statements, and so their outlines."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from weft.ir import Var, accesses
from weft.loop.buffer import Buffer
from weft.loop.nodes import Address, Alloc, Block, For, Load, Stmt, Store, View
from weft.loop.notes import Note, buffers_in

T = TypeVar("T")
Name: TypeAlias = "Var | str | Buffer"


class Outline(NamedTuple):
    """The loops and blocks under a statement, in program order; the statement itself would keep itself alive.

    `names` has those of the statement, too, and of all under it; `used` the buffers that it and the blocks under it read and
    write, but for those that are allocated around them there; `has_notes` tells whether it or a loop under it has any.
    """

    loops_and_blocks: tuple[For | Block, ...]
    names: frozenset[Name]
    used: frozenset[Buffer]
    has_notes: bool


NAME_OF: Final[dict[type[Stmt], Callable[[Any], Name]]] = {
    For: attrgetter("var"),
    Block: attrgetter("name"),
    Alloc: attrgetter("buffer"),
}
"""The names by which statements are found: a loop's variable, a block's name, the buffer of an allocation."""

_LISTED: Final = (For, Block)
_ACCESSES: Final = (Load, Address)
_NAMING: Final = (Store, Alloc, View)


def outline(root: Stmt) -> Outline:
    """Returns the loops and blocks under *root*, computed once for each statement."""
    found: Outline | None = getattr(root, "outlined", None)
    return found if found is not None else _remembered(root, "outlined", _remember_outline, _outlined)


def mentioned(root: Stmt) -> frozenset[Buffer]:
    """Returns the buffers that *root* uses or declares, or names in notes, computed once for each statement."""
    found: frozenset[Buffer] | None = getattr(root, "mentioned", None)
    return found if found is not None else _remembered(root, "mentioned", _remember_mentioned, _mentioned)


def _remembered(root: Stmt, slot: str, remember: Callable[[Stmt, T], None], compute: Callable[[Stmt], T]) -> T:
    """Computes the answer for all statements under *root* that do not know theirs, the inner ones first."""
    pending, stack = [], [root]
    while stack:
        s = stack.pop()
        if not hasattr(s, slot):
            pending.append(s)
            stack += s.bodies()
    for s in reversed(pending):
        if not hasattr(s, slot):  # it may be in several statements
            remember(s, compute(s))
    result: T = getattr(root, slot)
    return result


_remember_outline = Stmt.outlined.__set__  # type: ignore[attr-defined]  # nodes are immutable but for cached answers
_remember_mentioned = Stmt.mentioned.__set__  # type: ignore[attr-defined]


def _outlined(s: Stmt) -> Outline:
    """Returns the outline of *s* from those of the statements directly inside."""
    listed, names, used, has_notes = _inside(s.bodies())
    kind: Any = type(s)
    this: Any = s
    if kind is For:
        return Outline(listed, names | {this.var}, used, has_notes or bool(this.notes))
    if kind is Alloc:
        return Outline(listed, names | {this.buffer}, used - {this.buffer}, has_notes)
    if kind is Block:
        accessed = frozenset([r.buffer for r in (*this.reads, *this.writes)])
        return Outline(listed, names | {this.name}, accessed, has_notes)
    return Outline(listed, names, used, has_notes)


def _with_itself(s: Stmt) -> Outline:
    """Returns the outline of *s*, which knows its own, with *s* as the first in it if it is a loop or a block."""
    below = outline(s)
    if not isinstance(s, _LISTED):
        return below
    return Outline((s, *below.loops_and_blocks), below.names, below.used, below.has_notes)


def _inside(kids: tuple[Stmt, ...]) -> Outline:
    """Returns the outline of *kids* together, themselves included."""
    if len(kids) == 1:  # a chain of loops and allocations, mostly
        return _with_itself(kids[0])
    parts = [_with_itself(k) for k in kids]
    return Outline(
        tuple([x for p in parts for x in p.loops_and_blocks]),
        frozenset[Name]().union(*[p.names for p in parts]),
        frozenset[Buffer]().union(*[p.used for p in parts]),
        any(p.has_notes for p in parts),
    )


def _mentioned(s: Stmt) -> frozenset[Buffer]:
    inner = s.bodies()
    found: set[Buffer] = set()
    for k in s.children():
        if isinstance(k, Note):
            found.update(buffers_in(k))
        elif k not in inner:
            found.update([n.buffer for n in accesses(k) if isinstance(n, _ACCESSES)])
    if isinstance(s, Block):
        found.update([r.buffer for r in (*s.reads, *s.writes)])
    elif isinstance(s, _NAMING):
        found.add(s.buffer)
        if isinstance(s, View):
            found.add(s.source)
    if not found and len(inner) == 1:
        return mentioned(inner[0])
    return frozenset(found.union(*[mentioned(k) for k in inner]))
