"""Simplifies every expression under the facts known at its place, and the statements whose conditions these decide.

    for i in range(8):                          for i in range(8):
        if i * 4 + 3 < 32:             ->           B[i] = A[i]
            B[(i * 2 + 1) // 2] = A[i]

Known are the ranges of the loops around, the values of `let`s, and the conditions of the `if`s.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir import (
    FALSE,
    INDEX,
    ONE,
    TRUE,
    Bounds,
    Const,
    Expr,
    Le,
    Lt,
    Node,
    Not,
    Var,
    conjuncts,
    free_vars,
    map_nodes,
    reads_memory,
    simplify,
)
from weft.loop import NOTHING, Assert, Eval, For, If, Let, LoopKind, Program, Seq, Stmt, Store, seq
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, map_functions, size_bounds


def simplify_program(program: Program) -> Program:
    """Returns *program* with simplified expressions, no constant conditions, and no loop that runs once or never."""
    return map_functions(program, lambda f: _Simplify(size_bounds(f)).rewrite(f.body))


class _Simplify(StmtRewriter):
    """Carries the ranges of variables, and the conditions that hold."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.values: dict[Node, Node] = {}  # of the variables that are gone; each is bound once, so they stay valid
        self.known: dict[Node, Node] = {}  # conditions to their values
        self.decided: dict[Node, Node] = {}  # nodes to their forms under those conditions
        self.lanes: set[Var] = set()  # the variables of vectorized loops

    def expr(self, e: Expr) -> Expr:
        if type(e) is Const:
            return e
        plain = map_nodes(e, None, memo=self.values) if self.values else e
        made = simplify(plain, self.bounds)
        if not self.known:
            return made
        replaced = map_nodes(made, None, memo=self.decided)
        return made if replaced is made else simplify(replaced, self.bounds)

    def visit_for(self, s: For) -> Steps:
        begin, extent = self.expr(s.begin), self.expr(s.extent)
        if isinstance(extent, Const) and int(extent.value) <= 0:
            return NOTHING
        if extent is ONE:
            self.values[s.var] = begin
            return (yield s.body)
        outer, self.bounds = self.bounds, self.bounds.bind(s.var, begin, simplify(begin + extent - ONE, self.bounds))
        if s.kind is LoopKind.VECTORIZED:
            self.lanes.add(s.var)
        body = yield s.body
        self.bounds = outer
        unknown = s.kind is LoopKind.UNROLLED and not isinstance(extent, Const)
        return For(s.var, begin, extent, LoopKind.SERIAL if unknown else s.kind, body, s.notes)

    def visit_let(self, s: Let) -> Steps:
        value = self.expr(s.value)
        if isinstance(value, Const | Var):
            self.values[s.var] = value
            return (yield s.body)
        outer = self.bounds
        if value.dtype is INDEX and not reads_memory(value):  # which may be written before the variable is used
            self.bounds = outer.bind(s.var, value, value)
        body = yield s.body
        self.bounds = outer
        return Let(s.var, value, body)

    def visit_if(self, s: If) -> Steps:
        cond = self.expr(s.cond)
        if cond is TRUE:
            return (yield s.then)
        if cond is FALSE:
            return NOTHING if s.other is None else (yield s.other)
        then = yield from self._where(conjuncts(cond), s.then)
        if s.other is None:
            return If(cond, then, None)
        return If(cond, then, (yield from self._where([simplify(Not(cond), self.bounds)], s.other)))

    def visit_seq(self, s: Seq) -> Steps:
        parts: list[Stmt] = []
        for p in _with_guards_merged(s.body):
            parts.append((yield p))
        return seq(*parts)

    def _where(self, conditions: Iterable[Expr], s: Stmt) -> Steps:
        """Rewrites *s*, which is run where *conditions* hold."""
        outer = self.known, self.decided, self.bounds
        self.known = dict(self.known)
        for c in conditions:
            self.known[c] = TRUE
            self.known[simplify(Not(c), self.bounds)] = FALSE
            narrowed = _narrowed(self.bounds, c)
            if not any(_is_one(narrowed, v) for v in free_vars(c) if v in self.lanes):  # else no lane would be live
                self.bounds = narrowed
        self.decided = dict(self.known)
        made = yield s
        self.known, self.decided, self.bounds = outer
        return made

    def visit_store(self, s: Store) -> Visited:
        mask = None if s.mask is None else self.expr(s.mask)
        value = self.expr(s.value)
        return Store(s.buffer, self.exprs(s.indices), value, mask)

    def visit_assert(self, s: Assert) -> Visited:
        cond = self.expr(s.cond)
        return NOTHING if cond is TRUE else Assert(cond, s.message, self.exprs(s.values))

    def visit_eval(self, s: Eval) -> Visited:
        return Eval(self.expr(s.value))


def _with_guards_merged(parts: Iterable[Stmt]) -> list[Stmt]:
    """Returns *parts* with adjacent statements under one condition merged, where the first cannot change it."""
    merged: list[Stmt] = []
    for p in parts:
        last = merged[-1] if merged else None
        if isinstance(p, If) and isinstance(last, If) and p.cond is last.cond and not reads_memory(p.cond):
            other = [x for x in (last.other, p.other) if x is not None]
            merged[-1] = If(p.cond, seq(last.then, p.then), seq(*other) if other else None)
        else:
            merged.append(p)
    return merged


def _narrowed(bounds: Bounds, cond: Expr) -> Bounds:
    """Returns *bounds* where *cond*, a comparison of a variable with a constant, holds too."""
    if not isinstance(cond, Lt | Le):
        return bounds
    step = 1 if isinstance(cond, Lt) else 0
    a, b = cond.a, cond.b
    if isinstance(a, Var) and isinstance(b, Const) and a in bounds.ranges:
        return _met(bounds, a, None, int(b.value) - step)
    if isinstance(b, Var) and isinstance(a, Const) and b in bounds.ranges:
        return _met(bounds, b, int(a.value) + step, None)
    return bounds


def _is_one(bounds: Bounds, v: Var) -> bool:
    """Answers whether *v* has one value only."""
    low, high = bounds.ranges[v]
    return low is not None and low is high


def _met(bounds: Bounds, v: Var, lo: int | None, hi: int | None) -> Bounds:
    """Returns *bounds* with *v* also between *lo* and *hi*; ends that are symbolic expressions are kept."""
    low, high = bounds.ranges[v]
    if lo is not None and (low is None or (isinstance(low, Const) and int(low.value) < lo)):
        return bounds.bind(v, lo, high)
    if hi is not None and (high is None or (isinstance(high, Const) and int(high.value) > hi)):
        return bounds.bind(v, low, hi)
    return bounds
