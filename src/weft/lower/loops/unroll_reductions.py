"""Unrolls the innermost loop of a register tile's reduction by a few steps, where a step is short.

    for k in range(0, 64):                          for k_0 in range(0, 16):
        for i in unrolled(0, 6):                        for k_1 in unrolled(0, 4):
            C[i] = C[i] + A[i * 64 + k] * B[k]              for i in unrolled(0, 6):
                                               ->               C[i] = C[i] + A[i * 64 + k_0 * 4 + k_1] * B[k_0 * 4 + k_1]

The counter, the pointers and the branch of a loop are then issued once for several steps, and parts of lines that these read one
after another are prefetched as one (`inject_prefetches`). Prefetches for a later step are then for a later iteration, rounded up.

A loop of so few steps is unrolled as a whole, and the one around it may be the innermost then.

Steps of which one reads elements again that another has read, such as those over the taps of neighbouring windows, stay apart
where no registers are left to keep these in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import lcm, prod

from weft.cost import NO_REUSE, Reuse, unrolled_steps
from weft.ir import ONE, Const, Expr, Ramp, Var, index, linear_terms, substitute
from weft.loop import (
    PREFETCH,
    Call,
    For,
    Let,
    Load,
    LoopKind,
    Note,
    Prefetch,
    Program,
    Seq,
    Stmt,
    Store,
    loads,
    own_exprs,
    seq,
    sub_statements,
)
from weft.lower.stmt_rewriter import Steps, StmtRewriter, map_functions
from weft.targets import Target


def unroll_reductions(program: Program, target: Target) -> Program:
    """Returns *program*, whose loops are vectorised, with such loops in two, the inner one unrolled."""
    return map_functions(program, lambda f: _Unroll(target).rewrite(f.body))


class _Unroll(StmtRewriter):
    """Unrolls inner loops first; none is innermost around one of which a loop is left."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def visit_for(self, s: For) -> Steps:
        body = yield s.body
        steps = self._steps(s, body)
        if steps == 1:
            return For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        assert isinstance(s.extent, Const)
        if steps == int(s.extent.value) and not s.notes:  # prefetches belong to a loop, even to one of one iteration
            return For(s.var, s.begin, s.extent, LoopKind.UNROLLED, body, ())
        outer, inner = (Var(f"{s.var.name}_{n}", s.var.dtype) for n in range(2))
        copies = _copies(s, body, inner, outer * steps, steps)
        notes = tuple([_of_iterations(n, steps) for n in s.notes])
        times, left = divmod(int(s.extent.value), steps)
        loop = For(outer, index(0), index(times), s.kind, copies, notes)
        last = Var(f"{s.var.name}_last", s.var.dtype)
        return seq(loop, _copies(s, body, last, index(times * steps), left)) if left else loop

    def _steps(self, s: For, body: Stmt) -> int:
        """Returns how many steps an iteration is to have: several in a loop of known length over sums in registers alone."""
        if s.kind is not LoopKind.SERIAL or not isinstance(s.extent, Const):
            return 1
        found = list(_repeated(body))
        if not all(_is_of_a_tile(x) for x, _ in found):
            return 1
        sums = sum(times for x, times in found if isinstance(x, Store))
        read = [n for x, _ in found for e in own_exprs(x) for n in loads(e)]
        length, strided = int(s.extent.value), any(map(_is_strided, read))
        reuse = max([r for n in read if (r := _reuse(n, s.var, found)).after < length], default=NO_REUSE)
        return unrolled_steps(length, sums, reuse, self.target, strided=strided)


def _copies(s: For, body: Stmt, step: Var, begin: Expr, count: int) -> For:
    """Returns *count* steps of *s*, from number *begin* on, unrolled."""
    return For(step, index(0), index(count), LoopKind.UNROLLED, substitute(body, {s.var: s.begin + begin + step}), ())


def _reuse(n: Load, step: Var, found: Sequence[tuple[Stmt, int]]) -> Reuse:
    """Returns how many of the elements that *n* reads are read again, and after how many steps: neighbouring windows overlap.

    LLVM keeps them in registers in between.
    """
    tile = {x.var: int(x.extent.value) for x, _ in found if isinstance(x, For) and isinstance(x.extent, Const)}
    terms = None if n.dtype.lanes > 1 else linear_terms(n.indices[0], [step, *tile])
    onward = None if terms is None else terms[0].get(step)
    if terms is None or not isinstance(onward, Const) or not onward.value:
        return NO_REUSE
    read = {v: abs(int(c.value)) for v, c in terms[0].items() if v in tile and isinstance(c, Const) and c.value}
    by = abs(int(onward.value))
    after = [lcm(c, by) // by for v, c in read.items() if lcm(c, by) // c < tile[v]]
    return Reuse(prod([tile[v] for v in read]) * min(after), min(after)) if after else NO_REUSE


def _of_iterations(note: Note, steps: int) -> Note:
    return Prefetch(note.buffer, -(-note.distance // steps)) if isinstance(note, Prefetch) else note


def _is_strided(n: Load) -> bool:
    """Tells whether *n* is a vector of elements that are not neighbours."""
    at = n.indices[0]
    return n.dtype.lanes > 1 and not (isinstance(at, Ramp) and at.stride is ONE)


def _is_of_a_tile(s: Stmt) -> bool:
    """Tells whether a statement may be in a step of a tile: unrolled loops, sums of vectors in registers, and prefetches."""
    if isinstance(s, Store):
        return s.buffer.in_registers and s.value.dtype.lanes > 1
    if isinstance(s, For):
        return s.kind is LoopKind.UNROLLED and isinstance(s.extent, Const)
    return isinstance(s, Seq | Let) or (isinstance(s, Call) and s.callee == PREFETCH)


def _repeated(body: Stmt) -> Iterator[tuple[Stmt, int]]:
    """Yields each statement of *body*, and how often unrolled loops of known length repeat it."""
    stack = [(body, 1)]
    while stack:
        s, times = stack.pop()
        yield s, times
        if isinstance(s, For) and isinstance(s.extent, Const):
            times *= int(s.extent.value)
        stack += [(x, times) for x in sub_statements(s)]
