"""Walking and rebuilding statements, for schedules, lowering passes and the verifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar, cast

from weft.ir import READS, Expr, Node, Var, map_nodes, nodes_with, post_order, substitute
from weft.loop.buffer import Buffer
from weft.loop.nodes import (
    Address,
    Alloc,
    Assert,
    Axis,
    Block,
    Call,
    Eval,
    For,
    If,
    Let,
    Load,
    Region,
    Seq,
    Stmt,
    Store,
    View,
    While,
)
from weft.loop.notes import Note, buffers_in, replace_in_notes, with_buffers
from weft.loop.stmt_outline import mentioned

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


def own_buffers(s: Stmt) -> list[Buffer]:
    """Returns the buffers that *s* itself uses: not those of the statements inside it."""
    return buffers_of(s) if not sub_statements(s) else [x.buffer for e in own_exprs(s) for x in loads(e)]


def own_exprs(s: Stmt) -> list[Expr]:
    """Returns the expressions of *s* itself: not those of the statements inside it, nor a block's regions."""
    return _OWN_EXPRS[type(s)](s)


_OWN_EXPRS: Final[dict[type[Stmt], Callable[[Any], list[Expr]]]] = {
    For: lambda s: [s.begin, s.extent],
    While: lambda s: [s.cond],
    If: lambda s: [s.cond],
    Let: lambda s: [s.value],
    Alloc: lambda s: [],
    View: lambda s: [s.offset],
    Store: lambda s: [*s.indices, s.value] if s.mask is None else [*s.indices, s.value, s.mask],
    Block: lambda s: [*[a.extent for a in s.axes], *s.bindings, s.predicate],
    Call: lambda s: list(s.args),
    Assert: lambda s: [s.cond, *s.values],
    Eval: lambda s: [s.value],
    Seq: lambda s: [],
}


def bound_vars(s: Stmt) -> tuple[Var, ...]:
    """Returns the variables that *s* itself binds in its body."""
    kind = type(s)
    if kind is For or kind is Let:
        return (s.var,)  # type: ignore[attr-defined]
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
    change = _NAMING_BUFFERS.get(type(n))
    if change is not None:
        return change(n, mapping)
    return with_buffers(n, mapping) if isinstance(n, Note) else None


def _of_access(n: Load | Address, mapping: Mapping[Buffer, Buffer]) -> Node | None:
    return type(n)(mapping[n.buffer], n.indices) if n.buffer in mapping else None


def _of_store(n: Store, mapping: Mapping[Buffer, Buffer]) -> Node | None:
    return Store(mapping[n.buffer], n.indices, n.value, n.mask) if n.buffer in mapping else None


def _of_region(n: Region, mapping: Mapping[Buffer, Buffer]) -> Node | None:
    return Region(mapping[n.buffer], n.ranges) if n.buffer in mapping else None


def _of_alloc(n: Alloc, mapping: Mapping[Buffer, Buffer]) -> Node | None:
    return Alloc(mapping[n.buffer], n.body) if n.buffer in mapping else None


def _of_view(n: View, mapping: Mapping[Buffer, Buffer]) -> Node | None:
    if n.buffer not in mapping and n.source not in mapping:
        return None
    return View(mapping.get(n.buffer, n.buffer), mapping.get(n.source, n.source), n.offset, n.body)


_NAMING_BUFFERS: Final[dict[type[Node], Callable[[Any, Mapping[Buffer, Buffer]], Node | None]]] = {
    Load: _of_access,
    Address: _of_access,
    Store: _of_store,
    Region: _of_region,
    Alloc: _of_alloc,
    View: _of_view,
}
"""Renames the buffers that a node itself names, by its class; any node may be asked about, and most are arithmetic of indices."""


def _bound_in_loop(n: For, fresh: Mapping[Var, Var]) -> Node:
    return For(fresh[n.var], n.begin, n.extent, n.kind, n.body, n.notes)


def _bound_in_let(n: Let, fresh: Mapping[Var, Var]) -> Node:
    return Let(fresh[n.var], n.value, n.body)


def _bound_in_axis(n: Axis, fresh: Mapping[Var, Var]) -> Node | None:
    return Axis(fresh[n.var], n.extent, n.kind) if n.var in fresh else None


_BINDING: Final[dict[type[Node], Callable[[Any, Mapping[Var, Var]], Node | None]]] = {
    For: _bound_in_loop,
    Let: _bound_in_let,
    Axis: _bound_in_axis,
}
"""Renames the variable that a node binds, by its class."""


def rename_fresh(root: Stmt) -> Stmt:
    """Returns a copy of *root* that binds new loop, let and axis variables and new local buffers, of the same names.

    Two copies can then stand side by side, since every variable of a function is bound only once.
    """
    fresh = {v: Var(v.name, v.dtype) for s in statements(root) for v in bound_vars(s)}
    local = [s.buffer for s in statements(root) if isinstance(s, Alloc | View)]
    buffers = {b: _copy_buffer(b, fresh) for b in local}

    def change(n: Node) -> Node | None:
        bind = _BINDING.get(type(n))
        return _with_buffers(n, buffers) if bind is None else bind(n, fresh)

    memo: dict[Node, Node] = {v: w for v, w in fresh.items()}  # noqa: C416  (widens the types)
    return map_nodes(root, change, memo=memo)


def _copy_buffer(b: Buffer, fresh: Mapping[Var, Expr]) -> Buffer:
    strides = None if b.strides is None else [substitute(s, fresh) for s in b.strides]
    return Buffer(b.name, [substitute(s, fresh) for s in b.shape], b.dtype, b.scope, strides)
