"""Lets stores to registers fill all lanes where the lanes that a mask leaves out are never looked at.

    alloc S[16]                                 alloc S[16]
    if l < 3: S[l] = 0.0                        S[l] = 0.0
    if l < 3: S[l] = S[l] + A[l]       ->       S[l] = S[l] + (A[l] if l < 3 else 0.0)
    if l < 3: B[l] = S[l]                       if l < 3: B[l] = S[l]

All that reads the buffer, or writes it, is under one and the same mask, so that no other lane ever leaves it. A masked sum would
be two instructions, or one that waits for the mask.
"""

from __future__ import annotations

from weft.ir.expr import ONE, Expr, Ramp, Var
from weft.ir.linear import poly_of
from weft.ir.rewrite import free_vars
from weft.loop.nodes import Alloc, Buffer, Program, Stmt, Store
from weft.loop.visit import bound_vars, buffers_of, loads, own_exprs, statements, sub_statements
from weft.lower.walk import Steps, StmtRewriter, Visited, map_functions


def unmask_registers(program: Program) -> Program:
    """Returns *program*, after `vectorize`, with plain stores to registers whose other lanes are never looked at."""
    return map_functions(program, lambda f: _Unmask().rewrite(f.body))


class _Unmask(StmtRewriter):
    def __init__(self) -> None:
        self.plain: set[Buffer] = set()

    def visit_alloc(self, s: Alloc) -> Steps:
        if s.buffer.scope == "register" and _has_one_mask(s.body, s.buffer):
            self.plain.add(s.buffer)
        body = yield s.body
        return Alloc(s.buffer, body)

    def visit_store(self, s: Store) -> Visited:
        return Store(s.buffer, s.indices, s.value, None if s.buffer in self.plain else s.mask)


def _has_one_mask(body: Stmt, buffer: Buffer) -> bool:
    """Tells whether *buffer* is used by stores under a single mask only, the same throughout *body*, lane by lane."""
    masks: set[Expr | None] = set()
    bound: set[Var] = set()
    for s in statements(body):
        bound.update(bound_vars(s))
        if not isinstance(s, Store):
            if buffer in _named_by(s):
                return False
            continue
        used = [x.indices for x in loads(s.value) if x.buffer is buffer] + [s.indices] * (s.buffer is buffer)
        if buffer in [x.buffer for i in s.indices for x in loads(i)] or not all(map(_is_whole_vector, used)):
            return False
        masks.update([s.mask] * bool(used))
    [mask] = masks if len(masks) == 1 else [None]
    return mask is not None and not loads(mask) and bound.isdisjoint(free_vars(mask))


def _named_by(s: Stmt) -> list[Buffer]:
    """Returns the buffers that *s*, which is no store, uses itself."""
    return buffers_of(s) if not sub_statements(s) else [x.buffer for e in own_exprs(s) for x in loads(e)]


def _is_whole_vector(indices: tuple[Expr, ...]) -> bool:
    """Tells whether these are the elements of one vector, the same for all that begin at a multiple of its length."""
    [i] = indices if len(indices) == 1 else [None]
    if not isinstance(i, Ramp) or i.stride is not ONE:
        return False
    return all(factor % i.lanes == 0 for factor in poly_of(i.base).values())
