"""Makes loops of the copies of a host program, for a compiler of code that runs on the host.

call("weft.copy", C.at(0), A.at(k), n)     ->     for i in range(0, n // 16):
                                                      C[ramp(i * 16, 1, 16)] = A[ramp(k + i * 16, 1, 16)]
                                                  for i in range(n // 16 * 16, n):
                                                      C[i] = A[k + i]
"""

from __future__ import annotations

from weft.ir import ONE, Ramp, Var
from weft.loop import (
    COPY,
    HOST,
    Address,
    Alloc,
    Buffer,
    Call,
    Load,
    Program,
    Seq,
    Stmt,
    Store,
    external_module,
    for_,
    map_stmts,
    seq,
    space_of,
    statements,
)
from weft.support.alignment import ALIGNMENT
from weft.support.errors import LoweringError


def expand_copies(program: Program) -> Program:
    """Returns a host program without copies; raises `LoweringError` for one that uses the memory of a device."""
    for f in program.functions:
        used = [p for p in f.params if isinstance(p, Buffer)]
        used += [s.buffer for s in statements(f.body) if isinstance(s, Alloc)]
        for b in used:
            if space_of(b) != HOST:
                raise LoweringError(
                    f"{b.name} is in {b.scope} memory, which code of the host can't use",
                    where=f"in {f.name}",
                    hint="write the host program as bytes, and replay it with that device",
                )
    made = tuple([f if external_module(f) is not None else f.with_body(_expanded(f.body)) for f in program.functions])
    return program if made == program.functions else Program(made)


def _expanded(body: Stmt) -> Stmt:
    def change(s: Stmt) -> Stmt | None:
        if isinstance(s, Seq):
            return seq(*s.body)
        return _loops(s) if isinstance(s, Call) and s.callee == COPY else None

    return map_stmts(body, change)


def _loops(s: Call) -> Stmt:
    """Returns the loops of one copy: one of vectors of a cache line, and one for the rest."""
    to, source, count = s.args
    if not isinstance(to, Address) or not isinstance(source, Address):
        raise LoweringError(f"{COPY} takes the addresses of two elements, and a number of elements")
    lanes = max(1, ALIGNMENT // to.buffer.dtype.bytes)
    whole = count // lanes
    i, k = Var("i"), Var("i")
    at, begin = [Ramp(a.indices[0] + i * lanes, ONE, lanes) for a in (to, source)]
    vectors = Store(to.buffer, (at,), Load(source.buffer, (begin,)), None)
    rest = Store(to.buffer, (to.indices[0] + k,), Load(source.buffer, (source.indices[0] + k,)), None)
    first = whole * lanes
    return (
        seq(for_(i, whole, vectors), for_(k, count - first, rest, begin=first)) if lanes > 1 else for_(k, count, rest)
    )
