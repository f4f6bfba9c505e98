"""Lets a thread load all vectors of a fetch before it stores the first, where it rounds them on their way to shared memory.

    for i in unrolled(0, 8):                        v = alloc("register", bf16[64])
        S[ramp(8 * i, 1, 8)] = bf16x8(...)    ->    for i in unrolled(0, 8): v[ramp(8 * i, 1, 8)] = bf16x8(...)
                                                    for i in unrolled(0, 8): S[ramp(8 * i, 1, 8)] = v[ramp(8 * i, 1, 8)]

A compiler that schedules for few registers, as ptxas does beside the sums of a warpgroup, would wait for each vector before it
loads the next. As many are loaded at once as registers may be in use for (`BATCHED_FETCHES`).
"""

from __future__ import annotations

from math import prod

from weft.cost import BATCHED_FETCHES
from weft.ir import ONE, ZERO, Const, Expr, Ramp, Var, index, substitute
from weft.loop import Alloc, Buffer, For, Load, LoopKind, Program, Stmt, Store, for_, loads, rename_fresh, seq
from weft.lower.stmt_rewriter import Steps, StmtRewriter, map_functions
from weft.targets import Sight, sight_of


def batch_fetches(program: Program) -> Program:
    """Returns *program*, with vectors, with loads before stores in unrolled loops that fetch and round vectors."""
    return map_functions(program, lambda f: _Batch().rewrite(f.body))


class _Batch(StmtRewriter):
    def visit_for(self, s: For) -> Stmt | Steps:
        loops, body = _unrolled(s)
        if not loops or not isinstance(body, Store) or not _is_fetch(body):
            return self._for(s)
        return _batched(loops, body)


def _is_fetch(s: Store) -> bool:
    """Tells whether a store rounds a vector of the device's memory, and puts it where all threads of a block see it."""
    if s.value.dtype.lanes == 1 or s.mask is not None or sight_of(s.buffer.scope) is not Sight.BLOCK:
        return False
    sources = [x.buffer for x in loads(s.value)]
    return any(sight_of(b.scope) is Sight.GRID and b.dtype is not s.buffer.dtype for b in sources)


def _unrolled(s: Stmt) -> tuple[list[For], Stmt]:
    """Returns the unrolled loops, one in another, that *s* consists of, and what is in them."""
    loops: list[For] = []
    while isinstance(s, For) and s.kind is LoopKind.UNROLLED and isinstance(s.extent, Const) and s.begin is ZERO:
        loops.append(s)
        s = s.body
    return loops, s


def _batched(loops: list[For], s: Store) -> Stmt:
    """Returns the loops with batches of iterations of the outermost, each of loads and then of stores."""
    extents, lanes = [int(f.extent.value) for f in loops if isinstance(f.extent, Const)], s.value.dtype.lanes
    within = prod(extents[1:]) * lanes
    most = max(1, BATCHED_FETCHES // within)
    count = max([n for n in range(1, extents[0] + 1) if extents[0] % n == 0 and n <= most])
    batch, one = Var(f"{loops[0].var.name}_batch"), Var(loops[0].var.name)
    fetched = Buffer("fetched", (count * within,), s.buffer.dtype, "register")
    places, sizes = [one, *[f.var for f in loops[1:]]], [count, *extents[1:]]
    place: Expr = ZERO
    for v, n in zip(places, sizes, strict=True):
        place = place * index(n) + v
    at = (Ramp(place * index(lanes), ONE, lanes),)

    def around(body: Store) -> Stmt:
        made: Stmt = substitute(body, {loops[0].var: batch * index(count) + one})
        for v, n in reversed(list(zip(places, sizes, strict=True))):
            made = for_(v, n, made, LoopKind.UNROLLED)
        return rename_fresh(made)

    load = Store(fetched, at, s.value, None)
    parts = seq(around(load), around(Store(s.buffer, s.indices, Load(fetched, at), None)))
    return for_(batch, extents[0] // count, Alloc(fetched, parts), LoopKind.UNROLLED)
