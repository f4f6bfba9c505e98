"""Splits a reduction that streams a large buffer into a few streams, whose parts are read side by side.

    for k in range(0, 768):                        for k_0 in range(0, 192):
        C[0:64] = C[0:64] + x[k] * B[k, 0:64]          for k_1 in unrolled(0, 4):
                                             ->            C[0:64] = C[0:64] + x[k_1 * 192 + k_0] * B[k_1 * 192 + k_0, 0:64]

Hardware prefetchers follow a stream up to the end of a page and begin again in the next, so that one stream does not fill the
memory's queue: GEMV, whose every element is used once, is bound by that. Sums are reassociated. Hints to prefetch the buffer are
dropped: prefetchers follow each stream, and hints cost as many instructions as the loads.
"""

from __future__ import annotations

from math import prod

from weft.cost import streams_of
from weft.ir import Add, Const, Expr, Ramp, Var, free_vars, index, linear_terms, substitute
from weft.loop import Buffer, For, Load, LoopKind, Prefetch, Program, Stmt, Store, loads
from weft.lower.stmt_rewriter import Steps, StmtRewriter, map_functions
from weft.targets import Target


def split_streams(program: Program, target: Target) -> Program:
    """Returns *program*, whose loops are vectorized, with such reductions split."""
    return map_functions(program, lambda f: _Split(target).rewrite(f.body))


class _Split(StmtRewriter):
    def __init__(self, target: Target) -> None:
        self.target = target

    def visit_for(self, s: For) -> Steps:
        body = yield s.body
        stream = _stream(s, body)
        count = 1 if stream is None else _count(s, stream, self.target)
        if stream is None or count == 1:
            return For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        assert isinstance(s.extent, Const)
        steps = int(s.extent.value) // count
        outer, inner = (Var(f"{s.var.name}_{n}", s.var.dtype) for n in range(2))
        body = substitute(body, {s.var: s.begin + inner * steps + outer})
        parts = For(inner, index(0), index(count), LoopKind.UNROLLED, body, ())
        notes = tuple([n for n in s.notes if not (isinstance(n, Prefetch) and n.buffer is stream.buffer)])
        return For(outer, index(0), index(steps), s.kind, parts, notes)


def _count(s: For, x: Load, target: Target) -> int:
    """Returns how many streams a loop that reads a buffer by *x* is to have."""
    size = _bytes(x.buffer)
    if not isinstance(s.extent, Const) or size is None:
        return 1
    return streams_of(int(s.extent.value), x.dtype.lanes * x.buffer.dtype.bytes, size, target)


def _bytes(buffer: Buffer) -> int | None:
    """Returns the size of a buffer; None if it is symbolic."""
    sizes = [int(n.value) for n in buffer.shape if isinstance(n, Const)]
    return prod(sizes) * buffer.dtype.bytes if len(sizes) == buffer.rank else None


def _stream(s: For, body: Stmt) -> Load | None:
    """Returns the load by which each step of a sum in registers reads the next vector of a buffer; None without exactly one."""
    if (
        s.kind is not LoopKind.SERIAL
        or not isinstance(body, Store)
        or not body.buffer.in_registers
        or body.mask is not None
    ):
        return None
    added = _added(body)
    if added is None or s.var in free_vars(body.indices[0]) or any(x.buffer is body.buffer for x in loads(added)):
        return None
    found = [x for x in loads(added) if x.dtype.lanes > 1 and s.var in free_vars(x.indices[0])]
    return found[0] if len(found) == 1 and _is_next(found[0], s.var) else None


def _added(s: Store) -> Expr | None:
    """Returns the value that a store adds to the elements in its place; None if it does not."""
    if not isinstance(s.value, Add):
        return None
    for one, other in ((s.value.a, s.value.b), (s.value.b, s.value.a)):
        if isinstance(one, Load) and one.buffer is s.buffer and one.indices == s.indices:
            return other
    return None


def _is_next(x: Load, var: Var) -> bool:
    """Tells whether the vector that *x* reads is followed by that of the next value of *var*."""
    at = x.indices[0]
    if not isinstance(at, Ramp) or at.stride != index(1):
        return False
    found = linear_terms(at.base, [var])
    return found is not None and found[0].get(var) == index(at.lanes)
