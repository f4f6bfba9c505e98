"""Lets a thread load all vectors of a fetch before it stores the first, where it rounds them on their way to shared memory.

    for i in unrolled(0, 8):                        v = alloc("register", bf16[64])
        S[ramp(8 * i, 1, 8)] = bf16x8(...)    ->    for i in unrolled(0, 8): v[ramp(8 * i, 1, 8)] = bf16x8(...)
                                                    for i in unrolled(0, 8): S[ramp(8 * i, 1, 8)] = v[ramp(8 * i, 1, 8)]

A compiler that schedules for few registers, as ptxas does beside the sums of a warpgroup, would wait for each vector before it
loads the next. As many are loaded at once as registers may be in use for (`BATCHED_FETCHES`).
"""

from __future__ import annotations

from weft.ir import Var
from weft.loop import Alloc, For, LoopKind, Program, for_, seq
from weft.lower.grid.fetch_nests import FetchNest, fetch_nest
from weft.lower.stmt_rewriter import StmtRewriter, Visited, map_functions


def batch_fetches(program: Program) -> Program:
    """Returns *program*, with vectors, with loads before stores in unrolled loops that fetch and round vectors."""
    return map_functions(program, lambda f: _Batch().rewrite(f.body))


class _Batch(StmtRewriter):
    def visit_for(self, s: For) -> Visited:
        nest = fetch_nest(s)
        return self._for(s) if nest is None else _batched(nest)


def _batched(nest: FetchNest) -> For:
    """Returns the loops with batches of iterations of the outermost, each of loads and then of stores."""
    batch, fetched = Var(f"{nest.loops[0].var.name}_batch"), nest.registers(nest.store.buffer.dtype)
    parts = seq(nest.load(fetched, batch, nest.store.value), nest.put(fetched, batch, lambda e: e))
    return for_(batch, nest.batches, Alloc(fetched, parts), LoopKind.UNROLLED)
