"""Rewriting statements: a method for each kind of statement, on an explicit stack, so that no program is too deep.

A method that needs a sub-statement rewritten yields it and is sent the result; state that it sets before the `yield` and
restores after it is the scope of that sub-statement:

    def visit_for(self, s: For) -> Steps:
        outer, self.depth = self.depth, self.depth + 1
        body = yield s.body
        self.depth = outer
        return rebuilt(s, body)

A class that defines `default` has it called for each kind of statement that it has no method for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import lru_cache
from typing import Any, ClassVar, Final, TypeAlias

from weft.ir import ONE, Bounds, Expr, Var, free_vars
from weft.loop import (
    Alloc,
    Assert,
    Block,
    Call,
    Eval,
    For,
    Function,
    If,
    Let,
    Param,
    Program,
    Seq,
    Stmt,
    Store,
    View,
    While,
    seq,
)

Steps: TypeAlias = Generator[Stmt, Stmt, Stmt]
Visited: TypeAlias = Stmt | Steps


class StmtRewriter:
    """Rebuilds a statement from the leaves up; each method does it for one kind, `expr` for the expressions in it."""

    _methods: ClassVar[dict[type[Stmt], Callable[[Any, Any], Visited]]] = {}

    def __init_subclass__(cls) -> None:
        cls._methods = {t: cls._method(f"visit_{t.__name__.lower()}") for t in _KINDS}

    @classmethod
    def _method(cls, name: str) -> Callable[[Any, Any], Visited]:
        """Returns the method *name* if a subclass has it, else `default` if one has that, else this class' method."""
        below = cls.__mro__[: cls.__mro__.index(StmtRewriter)]
        own = any(name in c.__dict__ for c in below)
        if not own and name in _LEAVES and cls.default is StmtRewriter.default and cls.expr is StmtRewriter.expr:
            return _kept
        method: Callable[[Any, Any], Visited] = getattr(
            cls, name if own or cls.default is StmtRewriter.default else "default"
        )
        return method

    def default(self, s: Stmt) -> Visited:
        """Rewrites a statement of a kind that the subclass has no method for."""
        raise NotImplementedError

    def rewrite(self, root: Stmt) -> Stmt:
        """Returns *root* rewritten; the very same object where nothing changes."""
        pending: list[Steps] = []
        made = self.visit(root)
        while True:
            try:
                if not isinstance(made, Stmt):
                    pending.append(made)
                    child = next(made)
                elif pending:
                    child = pending[-1].send(made)
                else:
                    return made
            except StopIteration as stop:
                pending.pop()
                made = stop.value
            else:
                made = self.visit(child)

    def visit(self, s: Stmt) -> Visited:
        """Rewrites one statement, or begins to."""
        return self._methods[type(s)](self, s)

    def expr(self, e: Expr) -> Expr:
        """Rewrites an expression that occurs in a statement."""
        return e

    def exprs(self, values: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Rewrites several expressions."""
        return tuple([self.expr(e) for e in values])

    def visit_for(self, s: For) -> Visited:
        """Rewrites a loop."""
        return self._for(s)

    def _for(self, s: For) -> Steps:
        begin, extent = self.expr(s.begin), self.expr(s.extent)
        body = yield s.body
        return For(s.var, begin, extent, s.kind, body, s.notes)

    def visit_while(self, s: While) -> Visited:
        """Rewrites a while loop."""
        return self._while(s)

    def _while(self, s: While) -> Steps:
        cond = self.expr(s.cond)
        body = yield s.body
        return While(cond, body)

    def visit_if(self, s: If) -> Visited:
        """Rewrites a conditional."""
        return self._if(s)

    def _if(self, s: If) -> Steps:
        cond = self.expr(s.cond)
        then = yield s.then
        other = None if s.other is None else (yield s.other)
        return If(cond, then, other)

    def visit_let(self, s: Let) -> Visited:
        """Rewrites a binding."""
        return self._let(s)

    def _let(self, s: Let) -> Steps:
        value = self.expr(s.value)
        body = yield s.body
        return Let(s.var, value, body)

    def visit_alloc(self, s: Alloc) -> Visited:
        """Rewrites an allocation."""
        return self._alloc(s)

    def _alloc(self, s: Alloc) -> Steps:
        body = yield s.body
        return Alloc(s.buffer, body)

    def visit_view(self, s: View) -> Visited:
        """Rewrites a view."""
        return self._view(s)

    def _view(self, s: View) -> Steps:
        offset = self.expr(s.offset)
        body = yield s.body
        return View(s.buffer, s.source, offset, body)

    def visit_seq(self, s: Seq) -> Visited:
        """Rewrites a sequence."""
        return self._seq(s)

    def _seq(self, s: Seq) -> Steps:
        parts = []
        for p in s.body:
            parts.append((yield p))
        return seq(*parts)

    def visit_block(self, s: Block) -> Visited:
        """Rewrites a block: its bindings, predicate and statements, but not its regions."""
        return self._block(s)

    def _block(self, s: Block) -> Steps:
        bindings, predicate = self.exprs(s.bindings), self.expr(s.predicate)
        init = None if s.init is None else (yield s.init)
        body = yield s.body
        return Block(s.name, s.axes, bindings, predicate, s.reads, s.writes, init, body, s.notes)

    def visit_store(self, s: Store) -> Visited:
        """Rewrites a store."""
        mask = None if s.mask is None else self.expr(s.mask)
        return Store(s.buffer, self.exprs(s.indices), self.expr(s.value), mask)

    def visit_call(self, s: Call) -> Visited:
        """Rewrites a call's arguments."""
        return Call(s.callee, self.exprs(s.args))

    def visit_assert(self, s: Assert) -> Visited:
        """Rewrites an assertion."""
        return Assert(self.expr(s.cond), s.message, self.exprs(s.values))

    def visit_eval(self, s: Eval) -> Visited:
        """Rewrites an evaluation."""
        return Eval(self.expr(s.value))


_KINDS: tuple[type[Stmt], ...] = (
    For,
    While,
    If,
    Let,
    Alloc,
    View,
    Seq,
    Block,
    Store,
    Call,
    Assert,
    Eval,
)


_LEAVES: Final = ("visit_store", "visit_call", "visit_assert", "visit_eval")
"""The methods for statements that consist of expressions alone: where these stay, so do the statements."""


def _kept(_: StmtRewriter, s: Stmt) -> Stmt:
    return s


class BoundedRewriter(StmtRewriter):
    """A rewriter that knows the ranges of the variables of the loops around it."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds

    def loop_body(self, loop: For) -> Steps:
        """Rewrites the body of *loop*, with its range known; use it with `yield from`."""
        outer = self.bounds
        self.bounds = extent_bounds(outer, loop)
        body = yield loop.body
        self.bounds = outer
        return body


def extent_bounds(bounds: Bounds, loop: For) -> Bounds:
    """Returns *bounds* inside *loop*: its variable runs from its begin to its last value."""
    memo, key = bounds.memo_for("extent"), (loop.var, loop.begin, loop.extent)
    found: Bounds | None = memo.get(key)
    if found is None:
        found = memo[key] = bounds.bind(loop.var, loop.begin, loop.begin + loop.extent - ONE)
    return found


def size_bounds(function: Function) -> Bounds:
    """Returns the bounds on entry to *function*: the symbols in the shapes of its buffers are at least one, and in their limits.

    All passes over a function share one object, whose caches keep the answers to earlier passes.
    """
    return _size_bounds(function.params)


@lru_cache(maxsize=4)
def _size_bounds(params: tuple[Param, ...]) -> Bounds:
    bounds = Bounds()
    for p in params:
        for v in () if isinstance(p, Var) else (v for s in p.shape for v in free_vars(s)):
            bounds = bounds.bind(v, *v.size_range)
    return bounds


def map_functions(program: Program, change: Callable[[Function], Stmt]) -> Program:
    """Returns *program* with *change* applied to the body of each function; itself where none changes."""
    functions = tuple([f.with_body(change(f)) for f in program.functions])
    return program if functions == program.functions else Program(functions)
