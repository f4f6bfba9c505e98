"""Inlines the host part of each kernel, the launches of its grids, into the host program.

    softmax(t0.at(0), t1.at(64), n)      ->      p1 = view(t1, 64, f32[n * 10])
                                                 softmax_kernel(t0.at(0), work0.at(0), n)
                                                 softmax_kernel1(p1.at(0), work0.at(0), n)

The host's part may hold the statements of a host program: allocations, conditions, values, launches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from weft.ir import ZERO, Expr, Node, Var, map_nodes, substitute
from weft.loop import (
    Address,
    Alloc,
    Buffer,
    Call,
    For,
    Function,
    Kernel,
    Let,
    Load,
    Program,
    Stmt,
    Store,
    View,
    external_module,
    find_note,
    statements,
)
from weft.lower import StmtRewriter, Visited
from weft.support.errors import LoweringError


def inline_kernels(host: Program, kernels: Mapping[str, Program]) -> Program:
    """Returns the entries of *host* with launches for calls, and the kernels that they launch, with their bodies.

    *kernels* has the flat program of each function that is declared for the device, by the name in *host*: its entry is the
    host's part. Functions that are declared for the processor come last. Raises `LoweringError` for one with loops of the host's,
    or calls of functions that are no kernels.
    """
    parts = {name: _named(name, p) for name, p in kernels.items()}
    for name, p in parts.items():
        check_host_part(name, p)
    entries = [f for f in host.functions if external_module(f) is None]
    others = [f for f in host.functions if external_module(f) is not None and f.name not in parts]
    made = [f.with_body(_Inline(parts).rewrite(f.body)) for f in entries]
    return Program((*made, *[f for p in parts.values() for f in p.functions[1:]], *others))


def kernel_names(name: str, symbol: str, flat: Program) -> tuple[tuple[str, str], ...]:
    """Returns the names of the kernels in *flat*, whose entry is called *symbol*, with those in a model that calls it *name*."""
    return tuple([(f.name, f"{name}{f.name.removeprefix(symbol)}") for f in flat.functions[1:]])


def _named(name: str, flat: Program) -> Program:
    """Returns *flat* with its entry and its kernels called after *name*."""
    entry, *kernels = flat.functions
    names = {entry.name: name, **dict(kernel_names(name, entry.name, flat))}
    launched = _Renamed(names).rewrite(entry.body)
    return Program((replace(entry.with_body(launched), name=name), *[replace(f, name=names[f.name]) for f in kernels]))


class _Renamed(StmtRewriter):
    """Renames the callees."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_call(self, s: Call) -> Visited:
        return Call(self.names.get(s.callee, s.callee), s.args)


def check_host_part(name: str, part: Program) -> None:
    """Raises `LoweringError` for statements in the host's part of a kernel that a host program can't contain."""
    grids = {f.name for f in part.functions if find_note(f.notes, Kernel) is not None}
    for s in statements(part.entry.body):
        if isinstance(s, Call) and s.callee not in grids:
            raise LoweringError(
                f"it calls {s.callee}, which is no kernel", where=name, hint="compile this model for a cpu target"
            )
        if isinstance(s, For):
            raise LoweringError(
                f"the host would have to run the loop {s.var.name} around its launches",
                where=name,
                hint="bind outer loops",
            )


class _Inline(StmtRewriter):
    """Replaces calls."""

    def __init__(self, parts: Mapping[str, Program]) -> None:
        self.parts = parts

    def visit_call(self, s: Call) -> Visited:
        part = self.parts.get(s.callee)
        return s if part is None else _inlined(part.entry, s)


def _inlined(part: Function, call: Call) -> Stmt:
    """Returns the body of *part* with the arguments of *call*; its variables are renamed."""
    values: dict[Var, Expr] = {p: a for p, a in zip(part.params, call.args, strict=True) if isinstance(p, Var)}
    buffers: dict[Buffer, Buffer] = {}
    views: list[tuple[Buffer, Buffer, Expr]] = []
    for p, a in zip(part.params, call.args, strict=True):
        if not isinstance(p, Buffer):
            continue
        assert isinstance(a, Address)
        if a.indices[0] is ZERO and a.buffer.dtype is p.dtype:
            buffers[p] = a.buffer
        else:
            buffers[p] = Buffer(p.name, tuple([substitute(n, values) for n in p.shape]), p.dtype, a.buffer.scope)
            views.append((buffers[p], a.buffer, a.indices[0]))
    fresh = dict(_fresh(part.body))
    body = with_buffers(substitute_all(part.body, {**fresh, **values}), buffers, {**fresh, **values})
    for made, source, begin in reversed(views):
        body = View(made, source, begin, body)
    return body


def _fresh(body: Stmt) -> Iterator[tuple[Var, Expr]]:
    """Yields the variables that *body* binds, with new ones: a kernel may be called several times."""
    for s in statements(body):
        if isinstance(s, Let):
            yield s.var, Var(s.var.name, s.var.dtype)


def substitute_all(body: Stmt, values: Mapping[Var, Expr]) -> Stmt:
    """Returns *body* with other values for variables, also where they are bound."""

    def change(n: Node) -> Node | None:
        if isinstance(n, Var):
            return values.get(n)
        return None

    return map_nodes(body, change) if values else body


def with_buffers(body: Stmt, buffers: Mapping[Buffer, Buffer], values: Mapping[Var, Expr]) -> Stmt:
    """Returns *body* over other buffers, where they are used; those that it allocates are new ones, of sizes by *values*."""
    known = dict(buffers)
    for s in statements(body):
        if isinstance(s, Alloc):
            shape = tuple([substitute(n, values) for n in s.buffer.shape])
            known[s.buffer] = Buffer(s.buffer.name, shape, s.buffer.dtype, s.buffer.scope)

    def change(n: Node) -> Node | None:
        match n:
            case Load(b, indices) if b in known:
                return Load(known[b], indices)
            case Address(b, indices) if b in known:
                return Address(known[b], indices)
            case Store(b, indices, value, mask) if b in known:
                return Store(known[b], indices, value, mask)
            case Alloc(b, inner) if b in known:
                return Alloc(known[b], inner)
            case View(b, source, offset, inner) if source in known:
                return View(b, known[source], offset, inner)
        return None

    return map_nodes(body, change)
