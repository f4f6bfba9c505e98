"""Walking and rebuilding statements, for schedules, lowering passes and the verifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, cast

from weft.ir import READS, Expr, Node, Var, map_nodes, nodes_with, post_order, substitute
from weft.loop.buffer import Buffer
from weft.loop.nodes import Address, Alloc, Axis, Block, For, Let, Load, Region, Seq, Stmt, Store, View
from weft.loop.notes import Note, buffers_in, replace_in_notes, with_buffers
from weft.loop.stmt_outline import mentioned

N = TypeVar("N", bound=Node)
_ACCESSES = (Load, Address, Store, Region, Alloc, View)
_WITHOUT_EXPRS = (Alloc, Seq)


def sub_statements(s: Stmt) -> tuple[Stmt, ...]:
    """Returns the statements directly inside *s*, in order."""
    return s.bodies()


def statements(root: Stmt) -> Iterator[Stmt]:
    """Yields every statement of *root*, a parent before its children, in program order."""
    stack = [root]
    while stack:
        s = stack.pop()
        yield s
        stack += s.bodies()[::-1]


def blocks(root: Stmt) -> Iterator[Block]:
    """Yields every block of *root*, outer ones first."""
    return (s for s in statements(root) if isinstance(s, Block))


def loads(root: Node) -> list[Load]:
    """Returns the distinct loads in *root*, in program order; a load in the index of another comes before it."""
    return [n for n in nodes_with(READS, root) if isinstance(n, Load)]


def stores(root: Stmt) -> list[Store]:
    """Returns the distinct stores in *root*, in program order."""
    return list(dict.fromkeys(s for s in statements(root) if isinstance(s, Store)))


def buffers_of(root: Node) -> list[Buffer]:
    """Returns the buffers that *root* uses or declares, in order of first use; notes alone do not use them."""
    used: dict[Buffer, None] = {}
    for n in post_order(root):
        if isinstance(n, _ACCESSES):
            used[n.buffer] = None
        if isinstance(n, View):
            used[n.source] = None
    return list(used)


def own_exprs(s: Stmt) -> list[Expr]:
    """Returns the expressions of *s* itself: not those of the statements inside it, nor a block's regions."""
    own: list[Expr] = []
    if type(s) in _WITHOUT_EXPRS:
        return own
    for k in s.children():
        if isinstance(k, Expr):
            own.append(k)
        elif isinstance(k, Axis):
            own.append(k.extent)
    return own


def bound_vars(s: Stmt) -> tuple[Var, ...]:
    """Returns the variables that *s* itself binds in its body."""
    if isinstance(s, For | Let):
        return (s.var,)
    return tuple([a.var for a in s.axes]) if isinstance(s, Block) else ()


def map_stmts(root: Stmt, change: Callable[[Stmt], Stmt | None]) -> Stmt:
    """Rebuilds *root* bottom-up, passing each statement (with its new children) to *change*; None keeps it.

    Expressions are not walked, so this costs far less than `map_nodes`.
    """
    done: dict[Stmt, Stmt] = {}
    stack = [root]
    while stack:
        s = stack[-1]
        if s in done:
            stack.pop()
            continue
        inner = s.bodies()
        if todo := [k for k in inner if k not in done]:
            stack += reversed(todo)
            continue
        stack.pop()
        new = s
        if any(done[k] is not k for k in inner):
            new = cast(Stmt, s.rebuild([done[k] if isinstance(k, Stmt) else k for k in s.children()]))
        changed = change(new)
        done[s] = new if changed is None else changed
    return done[root]


def replace_buffer(root: N, mapping: Mapping[Buffer, Buffer]) -> N:
    """Replaces buffers by others of the same rank and type wherever *root* names them, in declarations and notes, too."""
    if not mapping:
        return root
    memo = _untouched(root, mapping) if isinstance(root, Stmt) else None
    return map_nodes(root, lambda n: _with_buffers(n, mapping), memo=memo)


def _untouched(root: Stmt, mapping: Mapping[Buffer, Buffer]) -> dict[Node, Node]:
    """Returns the outermost statements of *root* that mention no buffer of *mapping*, as they stay."""
    kept: dict[Node, Node] = {}
    stack = [root]
    while stack:
        s = stack.pop()
        if mentioned(s).isdisjoint(mapping):
            kept[s] = s
        else:
            stack += s.bodies()
    return kept


def replace_in_loop_notes(root: Stmt, mapping: Mapping[Buffer, Buffer]) -> Stmt:
    """Replaces buffers in the notes of the loops of *root*, and nowhere else."""
    if not any(b in mapping for s in statements(root) if isinstance(s, For) for n in s.notes for b in buffers_in(n)):
        return root

    def change(s: Stmt) -> Stmt | None:
        if not isinstance(s, For):
            return None
        return For(s.var, s.begin, s.extent, s.kind, s.body, replace_in_notes(s.notes, mapping))

    return map_stmts(root, change)


def _with_buffers(n: Node, mapping: Mapping[Buffer, Buffer]) -> Node | None:
    match n:
        case Load(buffer, indices) if buffer in mapping:
            return Load(mapping[buffer], indices)
        case Store(buffer, indices, value, mask) if buffer in mapping:
            return Store(mapping[buffer], indices, value, mask)
        case Address(buffer, indices) if buffer in mapping:
            return Address(mapping[buffer], indices)
        case Region(buffer, ranges) if buffer in mapping:
            return Region(mapping[buffer], ranges)
        case Alloc(buffer, body) if buffer in mapping:
            return Alloc(mapping[buffer], body)
        case View(buffer, source, offset, body) if buffer in mapping or source in mapping:
            return View(mapping.get(buffer, buffer), mapping.get(source, source), offset, body)
        case Note():
            return with_buffers(n, mapping)
    return None


def rename_fresh(root: Stmt) -> Stmt:
    """Returns a copy of *root* that binds new loop, let and axis variables and new local buffers, of the same names.

    Two copies can then stand side by side, since every variable of a function is bound only once.
    """
    fresh = {v: Var(v.name, v.dtype) for s in statements(root) for v in bound_vars(s)}
    local = [s.buffer for s in statements(root) if isinstance(s, Alloc | View)]
    buffers = {b: _copy_buffer(b, fresh) for b in local}

    def change(n: Node) -> Node | None:
        match n:
            case For(var, begin, extent, kind, body, notes):
                return For(fresh[var], begin, extent, kind, body, notes)
            case Let(var, value, body):
                return Let(fresh[var], value, body)
            case Axis(var, extent, kind) if var in fresh:
                return Axis(fresh[var], extent, kind)
        return _with_buffers(n, buffers)

    memo: dict[Node, Node] = {v: w for v, w in fresh.items()}  # noqa: C416  (widens the types)
    return map_nodes(root, change, memo=memo)


def _copy_buffer(b: Buffer, fresh: Mapping[Var, Expr]) -> Buffer:
    strides = None if b.strides is None else [substitute(s, fresh) for s in b.strides]
    return Buffer(b.name, [substitute(s, fresh) for s in b.shape], b.dtype, b.scope, strides)
