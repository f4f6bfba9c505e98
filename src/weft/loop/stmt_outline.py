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


_NAME: Final[dict[type[Stmt], Callable[[Any], Name]]] = {
    For: attrgetter("var"),
    Block: attrgetter("name"),
    Alloc: attrgetter("buffer"),
}
_LISTED: Final = (For, Block)
_ACCESSES: Final = (Load, Address)
_NAMING: Final = (Store, Alloc, View)


def own_name(s: Stmt) -> Name | None:
    """Returns the name by which *s* is found: a loop's variable, a block's name, the buffer of an allocation."""
    name = _NAME.get(type(s))
    return None if name is None else name(s)


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
    kids, name = s.bodies(), own_name(s)
    has_notes = type(s) is For and bool(s.notes)
    if len(kids) == 1:  # a chain of loops and allocations, mostly: they share the outline of their innermost body
        kid = kids[0]
        below = outline(kid)
        inside = (kid, *below.loops_and_blocks) if isinstance(kid, _LISTED) else below.loops_and_blocks
        names = below.names if name is None else below.names | {name}
        return Outline(inside, names, _used(s, below.used), has_notes or below.has_notes)
    found: list[For | Block] = []
    for k in kids:
        if isinstance(k, _LISTED):
            found.append(k)
        found += outline(k).loops_and_blocks
    own = () if name is None else (name,)
    names = frozenset(own).union(*[outline(k).names for k in kids])
    used = frozenset([b for k in kids for b in outline(k).used])
    return Outline(tuple(found), names, _used(s, used), has_notes or any(outline(k).has_notes for k in kids))


def _used(s: Stmt, inside: frozenset[Buffer]) -> frozenset[Buffer]:
    """Returns the buffers that *s* uses from outside, given those that the statements *inside* use."""
    if type(s) is Block:
        return frozenset([r.buffer for r in (*s.reads, *s.writes)])
    return inside - {s.buffer} if type(s) is Alloc and s.buffer in inside else inside


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
