"""Interleaves virtual threads into one stream of instructions.

    for v in bound(0, 2, thread="vthread"):          T = alloc("local", f32[4])
        T = alloc("local", f32[4])                   T_1 = alloc("local", f32[4])
        for k in range(0, 8):                        for k in range(0, 8):
            for j in range(0, 4):             ->         for j in range(0, 4):
                T[j] = A[v, k, j]                            T[j] = A[0, k, j]
            ...                                              T_1[j] = A[1, k, j]
                                                         ...

Threads share loops and conditions that do not depend on the thread; any other statement is copied for each. Buffers are private
to each thread, but for values that are the same for all of them: these are computed once. On a machine of several units, even
those are private, so that one may be loaded while another is used, and consecutive statements of one unit stay together: all
loads of a thread come before those of the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from weft.ir import Const, Expr, Node, Var, index, post_order, substitute
from weft.loop import (
    Address,
    Alloc,
    Assert,
    Block,
    Buffer,
    Call,
    Eval,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Program,
    Seq,
    Stmt,
    Store,
    Thread,
    View,
    While,
    effects_of,
    find_note,
    own_exprs,
    rename_fresh,
    replace_buffer,
    seq,
    statements,
    sub_statements,
    with_buffers,
)
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, map_functions
from weft.lower.units.unit_effects import only_unit, written_by
from weft.support.errors import LoweringError
from weft.targets import Target


def inject_virtual_threads(program: Program, target: Target) -> Program:
    """Returns *program* without loops over virtual threads; there are no blocks any more."""
    return map_functions(program, lambda f: _Inject(target).rewrite(f.body) if _has_any(f.body) else f.body)


VIRTUAL: Final = Thread("vthread")


def is_vthread(s: Stmt) -> bool:
    """Answers whether *s* is a loop over virtual threads."""
    return isinstance(s, For) and s.kind is LoopKind.BOUND and find_note(s.notes, Thread) is VIRTUAL


def _has_any(body: Stmt) -> bool:
    return any(is_vthread(s) for s in statements(body))


class _Inject(StmtRewriter):
    """Finds the loops over virtual threads, innermost first."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def visit_for(self, s: For) -> Steps:
        body = yield s.body
        if not is_vthread(s):
            return For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        if not isinstance(s.extent, Const):
            raise LoweringError(
                f"the number of virtual threads of the loop {s.var.name} is not a constant", hint="split the loop first"
            )
        body = _Lift().rewrite(body)
        varying = _Varying(For(s.var, s.begin, s.extent, s.kind, body, ()), share=not self.target.units)
        return _Interleave(s, int(s.extent.value), varying, self.target).rewrite(body)


class _Lift(StmtRewriter):
    """Moves allocations inside a sequence, around its last statements, before it, so that it stays one flat sequence."""

    def visit_seq(self, s: Seq) -> Steps:
        parts: list[Stmt] = []
        taken: list[Buffer] = []
        for p in s.body:
            made = yield p
            while isinstance(made, Alloc):
                taken.append(made.buffer)
                made = made.body
            parts.append(made)
        whole = seq(*parts)
        for b in reversed(taken):
            whole = Alloc(b, whole)
        return whole


class _Varying:
    """The variables and the buffers of a loop's body that are not the same in every iteration; found by a fixed point."""

    def __init__(self, loop: For, *, share: bool) -> None:
        inside = list(statements(loop.body))
        self.private = {s.buffer for s in inside if isinstance(s, Alloc | View)}
        self.sources = {s.buffer: s.source for s in inside if isinstance(s, View)}
        self.vars: set[Var] = {loop.var}
        self.buffers: set[Buffer] = set()
        if not share:
            self.buffers |= {b for b in self.private if self._root(b) in self.private}
        size = 0
        while size != len(self.vars) + len(self.buffers):
            size = len(self.vars) + len(self.buffers)
            self._spread(loop.body)

    def includes(self, e: Node) -> bool:
        """Answers whether the value of *e* varies."""
        return any(
            n in self.vars or (isinstance(n, Load | Address) and n.buffer in self.buffers) for n in post_order(e)
        )

    def any(self, exprs: Iterable[Expr]) -> bool:
        """Answers whether one of several values varies."""
        return any(self.includes(e) for e in exprs)

    def is_common(self, s: Store | Call) -> bool:
        """Answers whether *s* only computes a private value that is the same in every iteration; undeclared calls do not."""
        if isinstance(s, Call) and effects_of(s) is None:
            return False
        written = [s.buffer] if isinstance(s, Store) else written_by(s)
        private = all(self._root(b) in self.private and b not in self.buffers for b in written)
        return bool(written) and private and not self.any(own_exprs(s))

    def _root(self, b: Buffer) -> Buffer:
        while b in self.sources:
            b = self.sources[b]
        return b

    def _spread(self, body: Stmt) -> None:
        stack = [(body, False)]
        while stack:
            s, varies = stack.pop()
            own = varies or self.any(own_exprs(s)) or (isinstance(s, Call) and effects_of(s) is None)
            self._mark(s, varies=own)
            inner = own if isinstance(s, For | If | While) else varies
            stack += [(k, inner) for k in sub_statements(s)]

    def _mark(self, s: Stmt, *, varies: bool) -> None:
        """Adds the variable or private buffers that *s* sets, if its values vary, or with *varies*, whether it runs at all."""
        if isinstance(s, For | Let) and varies:
            self.vars.add(s.var)
        elif isinstance(s, Alloc | View):
            if varies or self.any(s.buffer.shape) or self._root(s.buffer) in self.buffers:
                self.buffers.add(s.buffer)
        elif isinstance(s, Store | Call) and varies:
            written = [s.buffer] if isinstance(s, Store) else written_by(s)
            self.buffers |= {x for b in written for x in (b, self._root(b)) if x in self.private}


class _Interleave(StmtRewriter):
    """Copies each statement that varies for each thread."""

    def __init__(self, loop: For, threads: int, varying: _Varying, target: Target) -> None:
        self.varying, self.target = varying, target
        self.values: list[dict[Var, Expr]] = [{loop.var: loop.begin + index(k)} for k in range(threads)]
        self.memory: list[dict[Buffer, Buffer]] = [{} for _ in range(threads)]

    def each(self, s: Stmt) -> Stmt:
        """Returns *s* for one thread after the other."""
        return seq(*[self._copy(s, k) for k in range(len(self.values))])

    def _copy(self, s: Stmt, k: int) -> Stmt:
        own = rename_fresh(s) if k else s
        return substitute(replace_buffer(own, self.memory[k]), self.values[k])

    def _whole(self, s: For | While | If) -> bool:
        """Answers whether a compound statement must be copied as a whole instead of shared."""
        return self.varying.any(own_exprs(s)) or only_unit(s, self.target) is not None

    def visit_seq(self, s: Seq) -> Visited:
        return self._pieces(s) if self.target.units else self._seq(s)

    def _pieces(self, s: Seq) -> Steps:
        """Groups consecutive statements that one unit runs."""
        made: list[Stmt] = []
        for unit, parts in groupby(s.body, lambda p: only_unit(p, self.target)):
            if unit is not None:
                made.append(self.each(seq(*parts)))
                continue
            for p in parts:
                made.append((yield p))
        return seq(*made)

    def visit_for(self, s: For) -> Visited:
        return self.each(s) if self._whole(s) else self._common(s)

    def _common(self, s: For) -> Steps:
        """Rewrites a loop that the threads share: a note about a buffer becomes one about each thread's private copy."""
        body = yield s.body
        notes = tuple(dict.fromkeys([with_buffers(n, own) for n in s.notes for own in self.memory]))
        return For(s.var, s.begin, s.extent, s.kind, body, notes)

    def visit_while(self, s: While) -> Visited:
        return self.each(s) if self._whole(s) else self._while(s)

    def visit_if(self, s: If) -> Visited:
        return self.each(s) if self._whole(s) else self._if(s)

    def visit_let(self, s: Let) -> Visited:
        return self._lets(s) if s.var in self.varying.vars else self._let(s)

    def _lets(self, s: Let) -> Steps:
        made = [Var(s.var.name, s.var.dtype) for _ in self.values]
        given = [self._value(s.value, k) for k in range(len(made))]
        for k, v in enumerate(made):
            self.values[k][s.var] = v
        body = yield s.body
        for v, e in zip(reversed(made), reversed(given), strict=True):
            body = Let(v, e, body)
        return body

    def _value(self, e: Expr, k: int) -> Expr:
        return substitute(replace_buffer(e, self.memory[k]), self.values[k])

    def visit_alloc(self, s: Alloc) -> Visited:
        return self._allocs(s) if s.buffer in self.varying.buffers else self._alloc(s)

    def _allocs(self, s: Alloc) -> Steps:
        made = self._own(s.buffer)
        body = yield s.body
        for b in made:  # `hoist_allocations` will turn them around
            body = Alloc(b, body)
        return body

    def visit_view(self, s: View) -> Visited:
        return self._views(s) if s.buffer in self.varying.buffers else self._view(s)

    def _views(self, s: View) -> Steps:
        sources = [m.get(s.source, s.source) for m in self.memory]
        offsets = [self._value(s.offset, k) for k in range(len(self.values))]
        made = self._own(s.buffer)
        body = yield s.body
        for b, source, offset in reversed(list(zip(made, sources, offsets, strict=True))):
            body = View(b, source, offset, body)
        return body

    def _own(self, b: Buffer) -> list[Buffer]:
        """Returns a private copy of *b* for each thread, which replaces *b*."""
        made: list[Buffer] = []
        for k, memory in enumerate(self.memory):
            strides = None if b.strides is None else [self._value(s, k) for s in b.strides]
            made.append(Buffer(b.name, [self._value(s, k) for s in b.shape], b.dtype, b.scope, strides))
            memory[b] = made[-1]
        return made

    def visit_store(self, s: Store) -> Visited:
        return s if self.varying.is_common(s) else self.each(s)

    def visit_call(self, s: Call) -> Visited:
        return s if self.varying.is_common(s) else self.each(s)

    def visit_assert(self, s: Assert) -> Visited:
        return self.each(s) if self.varying.any(own_exprs(s)) else s

    def visit_eval(self, s: Eval) -> Visited:
        return self.each(s) if self.varying.any(own_exprs(s)) else s

    def visit_block(self, s: Block) -> Visited:
        raise LoweringError(f"the block {s.name} is in a virtual thread", hint="dissolve blocks first")
