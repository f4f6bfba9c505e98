"""Reads the text form of loop programs, with Python's own parser; `loop.printer` writes it.

Suites are lexical scopes: a name may be bound again in another suite. The regions of a block without `reads` or `writes` are
derived from its body. A name in a parameter's shape that is no parameter is a symbolic size, found from the arrays.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from weft.ir import TRUE, ZERO, Expr, Var, python_syntax
from weft.loop.access_parser import elements
from weft.loop.buffer import Buffer
from weft.loop.nodes import (
    NOTHING,
    Alloc,
    Assert,
    Axis,
    AxisKind,
    Block,
    Call,
    Eval,
    For,
    Function,
    If,
    Let,
    LoopKind,
    Program,
    Region,
    Stmt,
    Store,
    View,
    While,
    seq,
)
from weft.loop.note_parser import NoteParser
from weft.loop.notes import Note
from weft.loop.printer import extent_of
from weft.loop.regions import block_regions
from weft.support.errors import TypeMismatch

Binding: TypeAlias = Callable[[Stmt], Stmt]
"""A statement that still lacks the rest of its suite as its body."""

_LOOPS: Final = {k.value: k for k in LoopKind}
_AXES: Final = {k.value: k for k in AxisKind}


class LoopParser(NoteParser):
    """Reads statements. `scope` maps the names that are visible at the current position."""

    def suite(self, body: Sequence[ast.stmt]) -> Stmt:
        """Reads the statements of a suite, in a scope of their own."""
        outer, self.scope = self.scope, dict(self.scope)
        parts = [self.statement(s) for s in body]
        self.scope = outer
        rest: list[Stmt] = []
        for p in reversed(parts):
            rest = [p, *rest] if isinstance(p, Stmt) else [p(seq(*rest))]
        return seq(*rest)

    def bound(self, name: str, thing: Var | Buffer, body: Sequence[ast.stmt]) -> Stmt:
        """Reads a suite in which *name* stands for *thing*."""
        outer, self.scope = self.scope, {**self.scope, name: thing}
        made = self.suite(body)
        self.scope = outer
        return made

    def statement(self, s: ast.stmt) -> Stmt | Binding:
        """Reads one statement, or one that binds a name in the rest of the suite."""
        match s:
            case ast.Pass():
                return NOTHING
            case ast.For(ast.Name(name), iterator, body, []):
                return self.for_(s, name, iterator, body)
            case ast.While(test, body, []):
                return While(self.condition(test), self.suite(body))
            case ast.If(test, then, other):
                return If(self.condition(test), self.suite(then), self.suite(other) if other else None)
            case ast.Assign([ast.Subscript(target, where)], value):
                return self.store(s, self.buffer(target), elements(where), value, None)
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("alias"), [value], [])):
                self.scope[name] = self.expr(value)
                return seq
            case ast.Assign([ast.Name(name)], ast.Call() as call):
                thing, binding = self.binding(call, name)
                self.scope[name] = thing
                return binding
            case ast.With([ast.withitem(ast.Call(ast.Name("block"), args, keywords), None)], body):
                return self.block(s, args, keywords, body)
            case ast.With([ast.withitem(ast.Call() as call, ast.Name(name))], body):
                thing, binding = self.binding(call, name)
                return binding(self.bound(name, thing, body))
            case ast.Expr(ast.Call() as call):
                return self.action(call)
        raise self.error(s, f"expected a statement of the loop language, not `{ast.unparse(s).splitlines()[0]}`", _HELP)

    def condition(self, at: ast.expr) -> Expr:
        """Reads an expression that must be a bool."""
        made = self.expr(at)
        if not made.dtype.is_bool:
            raise self.error(at, f"a condition is a bool, not {made.dtype}")
        return made

    def for_(self, s: ast.For, name: str, iterator: ast.expr, body: Sequence[ast.stmt]) -> Stmt:
        """Reads a loop."""
        match iterator:
            case ast.Call(ast.Name(kind), [*begin, end], keywords) if kind in _LOOPS and len(begin) <= 1:
                first = self.expr(begin[0]) if begin else ZERO
                extent = extent_of(first, self.expr(end))
                var = Var(name)
                made = self.bound(name, var, body)
                return For(var, first, extent, _LOOPS[kind], made, self.notes(keywords, made))
        raise self.error(iterator, f"expected one of {', '.join(_LOOPS)}, called with (begin, end)")

    def store(
        self, s: ast.AST, buffer: Buffer, where: Sequence[ast.expr], value: ast.expr, mask: ast.expr | None
    ) -> Stmt:
        """Reads a store."""
        indices, written = self.exprs(where), self.expr(value)
        condition = None if mask is None else self.condition(mask)
        return self.make(s, lambda: Store(buffer, indices, written, condition))

    def binding(self, call: ast.Call, name: str) -> tuple[Var | Buffer, Binding]:
        """Reads the value that a name is bound to, and returns it with the statement that binds it."""
        match call:
            case ast.Call(ast.Name("let"), [at], []):
                value = self.expr(at)
                var = Var(name, value.dtype)
                return var, lambda body: Let(var, value, body)
            case ast.Call(ast.Name("alloc"), [scope, type_], keywords):
                made = self.declared(name, type_, keywords, self.text(scope))
                return made, lambda body: Alloc(made, body)
            case ast.Call(ast.Name("view"), [of, start, type_], keywords):
                source, offset = self.buffer(of), self.expr(start)
                seen = self.declared(name, type_, keywords, source.scope)
                return seen, lambda body: View(seen, source, offset, body)
        raise self.error(
            call, f"expected let(value), alloc(scope, type) or view(source, offset, type), not `{ast.unparse(call)}`"
        )

    def action(self, call: ast.Call) -> Stmt:
        """Reads a call that stands as a statement."""
        match call:
            case ast.Call(
                ast.Attribute(target, "store"), where, [ast.keyword("value", value), ast.keyword("mask", mask)]
            ):
                return self.store(call, self.buffer(target), where, value, mask)
            case ast.Call(ast.Name("check"), [cond, message, *values], []):
                return Assert(self.condition(cond), self.text(message), self.exprs(values))
            case ast.Call(ast.Name("eval_"), [value], []):
                return Eval(self.expr(value))
            case ast.Call(ast.Name("call"), [callee, *args], []):
                return Call(self.text(callee), self.exprs(args))
            case ast.Call(ast.Name(callee), args, []):
                return Call(callee, self.exprs(args))
        raise self.error(call, f"expected a statement of the loop language, not `{ast.unparse(call)}`", _HELP)

    def make(self, at: ast.AST, build: Callable[[], Stmt]) -> Stmt:
        """Builds a statement; a type error becomes a `ParseError` that shows where."""
        try:
            return build()
        except TypeMismatch as e:
            raise self.error(at, e.message, e.hint) from None

    def block(self, s: ast.With, args: list[ast.expr], keywords: list[ast.keyword], body: list[ast.stmt]) -> Stmt:
        """Reads a block with its axes, regions and `init`."""
        if len(args) != 1:
            raise self.error(s, 'a block has a name, as in block("C", vi=spatial(8, i))')
        where = [k.value for k in keywords if k.arg == "where"]
        pairs = [self.axis(k) for k in keywords if k.arg != "where"]
        name, predicate = self.text(args[0]), self.condition(where[0]) if where else TRUE
        axes, bindings = tuple([a for a, _ in pairs]), tuple([b for _, b in pairs])
        outer, self.scope = self.scope, {**self.scope, **{a.var.name: a.var for a in axes}}
        head = _Header(self, body)
        made = self.suite(head.body)
        self.scope = outer
        derived = block_regions(made, head.init)
        reads = derived[0] if head.reads is None else head.reads
        writes = derived[1] if head.writes is None else head.writes
        return Block(name, axes, bindings, predicate, reads, writes, head.init, made, head.notes)

    def axis(self, k: ast.keyword) -> tuple[Axis, Expr]:
        """Reads an axis and its binding, as in `vi=spatial(8, i)`."""
        match k:
            case ast.keyword(str(name), ast.Call(ast.Name(kind), [extent, binding], [])) if kind in _AXES:
                return Axis(Var(name), self.expr(extent), _AXES[kind]), self.expr(binding)
        raise self.error(k, f"expected one of {', '.join(_AXES)}, called with (extent, binding)")

    def function(self, f: ast.stmt) -> Function:
        """Reads a function."""
        if not isinstance(f, ast.FunctionDef):
            raise self.error(f, "expected a function, as in `def main(A: f32[8]):`")
        a = f.args
        if a.posonlyargs or a.kwonlyargs or a.vararg or a.kwarg or a.defaults:
            raise self.error(f, "parameters are plain names with types")
        name = f.name
        notes: tuple[Note, ...] = ()
        for d in f.decorator_list:
            name, notes = self.decorator(d, name)
        self.scope = {}
        params = self.params(a.args)
        return Function(name, params, self.suite(f.body), notes)

    def decorator(self, at: ast.expr, name: str) -> tuple[str, tuple[Note, ...]]:
        """Reads `@function("name", key=value)`: a name that is no identifier, and notes."""
        match at:
            case ast.Call(ast.Name("function"), args, keywords) if len(args) <= 1:
                return (self.text(args[0]) if args else name), self.notes(keywords)
        raise self.error(at, "expected @function(...)")


_HELP: Final = (
    "a loop, while, if, A[i] = value, x = let(value), x = alias(value), b = alloc(scope, type), v = view(source, offset, type), "
    "with block(...), check(cond, message), eval_(value) or f(args)"
)


class _Header:
    """The lines at the top of a block: its regions, its notes and its `init`."""

    def __init__(self, parser: LoopParser, body: list[ast.stmt]) -> None:
        self.reads: tuple[Region, ...] | None = None
        self.writes: tuple[Region, ...] | None = None
        self.notes: tuple[Note, ...] = ()
        self.init: Stmt | None = None
        count = 0
        while count < len(body) and self.take(parser, body[count]):
            count += 1
        self.body = body[count:]

    def take(self, parser: LoopParser, s: ast.stmt) -> bool:
        """Reads *s* if it belongs to the header."""
        match s:
            case ast.Expr(ast.Call(ast.Name("reads"), regions, [])):
                self.reads = tuple([parser.region(r) for r in regions])
            case ast.Expr(ast.Call(ast.Name("writes"), regions, [])):
                self.writes = tuple([parser.region(r) for r in regions])
            case ast.Expr(ast.Call(ast.Name("annotate"), [], keywords)):
                self.notes = parser.notes(keywords)
            case ast.With([ast.withitem(ast.Call(ast.Name("init"), [], []), None)], body):
                self.init = parser.suite(body)
            case _:
                return False
        return True


def parse_program(text: str) -> Program:
    """Reads a program; raises `ParseError` with line, column and the expected syntax."""
    parser = LoopParser(text, {})
    module = python_syntax(text, "exec")
    if not module.body:
        raise parser.error(module, "expected at least one function, as in `def main(A: f32[8]):`")
    return Program(tuple([parser.function(f) for f in module.body]))


def parse_stmt(text: str, scope: Mapping[str, Var | Buffer]) -> Stmt:
    """Reads statements whose free names are those of *scope*."""
    return LoopParser(text, scope).suite(python_syntax(text, "exec").body)


def parse_expr(text: str, scope: Mapping[str, Expr | Buffer]) -> Expr:
    """Reads an expression that may access the buffers of *scope*."""
    text = text.strip()
    return LoopParser(text, scope).expr(python_syntax(text, "eval").body)
