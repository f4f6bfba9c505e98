"""Walking and rebuilding statements: what schedules, lowering passes and the verifier have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, cast

from weft.ir.expr import Expr, Var
from weft.ir.node import Node
from weft.ir.rewrite import map_nodes, post_order, substitute
from weft.loop.nodes import Address, Alloc, Axis, Block, Buffer, For, Let, Load, Region, Stmt, Store, View

N = TypeVar("N", bound=Node)
_ACCESSES = (Load, Address, Store, Region, Alloc, View)


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
    if isinstance(root, Expr) and not reads_memory(root):
        return []
    return [n for n in post_order(root) if isinstance(n, Load)]


def reads_memory(e: Expr) -> bool:
    """Tells whether *e* depends on what is in memory; each node remembers it."""
    stack: list[Node] = [e]
    while stack:
        n = stack[-1]
        if hasattr(n, "reads_memory"):
            stack.pop()
            continue
        kids = n.children()
        todo = [k for k in kids if not hasattr(k, "reads_memory")]
        if todo:
            stack += todo
            continue
        _remember(n, isinstance(n, Load) or any(map(_remembered, kids)))
        stack.pop()
    return _remembered(e)


_remember = Node.reads_memory.__set__  # type: ignore[attr-defined]  # nodes are immutable but for what is remembered of them


def _remembered(n: Node) -> bool:
    return n.reads_memory  # type: ignore[attr-defined,no-any-return]


def stores(root: Stmt) -> list[Store]:
    """Returns the distinct stores in *root*, in program order."""
    return list(dict.fromkeys(s for s in statements(root) if isinstance(s, Store)))


def buffers_of(root: Node) -> list[Buffer]:
    """Returns the buffers that *root* names anywhere, in order of first use."""
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
    """Rebuilds *root* bottom-up, giving each statement (with its new children) to *change*; None keeps it.

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
    """Replaces buffers by others of the same rank and type wherever *root* names them, its declarations included."""
    if not mapping:
        return root
    return map_nodes(root, lambda n: _with_buffers(n, mapping))


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
            case For(var, begin, extent, kind, body, annotations):
                return For(fresh[var], begin, extent, kind, body, annotations)
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
