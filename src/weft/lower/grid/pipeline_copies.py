"""Makes the copies that a loop fetches ahead some iterations before they are used, in a buffer with several places.

    for k in range(0, 8, fetch_ahead=(S, 3, 2)):           S = alloc("shared", f32[3, 64])
        S = alloc("shared", f32[64])                       S[0, ...] = A[0, ...]; commit
        for t in bound(0, 64, thread="threadIdx.x"):       S[1, ...] = A[1, ...]; commit
            S[t] = A[k, t]                            ->   for k in range(0, 8):
        ...                                                    wait for the copies of iteration k
                                                               if k + 2 < 8:
                                                                   S[(k + 2) % 3, ...] = A[k + 2, ...]
                                                               commit
                                                               ...

The copies that fill a buffer are a part of the loop's body of their own. In each iteration a group of copies is committed, which
may be empty, so that the groups to wait for are counted alike. All threads wait, so that a barrier is put between the wait and
the consumers of the places. Copies begin right after it; but where a place is retained for longer, behind the consumers of other
buffers, so that in any case a barrier is between its last use in an iteration that is over, and the copies. See NVIDIA's "CUDA
C++ Programming Guide", section "Asynchronous Data Copies using LDGSTS".
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import ZERO, Bounds, Expr, Var, index, prove, substitute
from weft.loop import (
    ASYNC_COMMIT,
    ASYNC_WAIT,
    NOTHING,
    Address,
    Alloc,
    Buffer,
    Call,
    FetchAhead,
    For,
    If,
    LoopKind,
    Program,
    Retained,
    Seq,
    Stmt,
    Thread,
    rename_fresh,
    replace_in_notes,
    seq,
    statements,
    stores,
    without_notes,
)
from weft.lower.analysis.barrier_intervals import thread_extents
from weft.lower.buffers.expand_double_buffers import copies_of, in_turn
from weft.lower.stmt_rewriter import BoundedRewriter, Steps, map_functions, size_bounds
from weft.support.errors import LoweringError


def pipeline_copies(program: Program) -> Program:
    """Returns *program* with the copies made that loops fetch ahead.

    Raises `LoweringError` where something else fills a buffer.
    """
    return map_functions(program, lambda f: _Pipeline(size_bounds(f)).rewrite(f.body) if _is_noted(f.body) else f.body)


def _is_noted(body: Stmt) -> bool:
    return any(isinstance(n, FetchAhead) for s in statements(body) if isinstance(s, For) for n in s.notes)


class _Pipeline(BoundedRewriter):
    """Finds noted loops, innermost first."""

    def visit_for(self, s: For) -> Steps:
        body = yield from self.loop_body(s)
        loop = For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        notes = [n for n in s.notes if isinstance(n, FetchAhead)]
        return _pipelined(loop, notes, self.bounds) if notes else loop


def _pipelined(loop: For, notes: Sequence[FetchAhead], bounds: Bounds) -> Stmt:
    ahead, count = notes[0].ahead, notes[0].copies
    if any((n.ahead, n.copies) != (ahead, count) for n in notes) or loop.kind is not LoopKind.SERIAL:
        raise LoweringError(
            f"the loop {loop.var.name} fetches buffers unlike each other", hint="give all as many copies, as far ahead"
        )
    others, fills, rest = _parts(loop, {n.buffer for n in notes})
    new = {n.buffer: copies_of(n.buffer, count) for n in notes}

    def place(at: Expr) -> Expr:
        return (at - loop.begin) % index(count)

    def filled(at: Expr, *, fresh: bool) -> Stmt:
        """Returns the copies for the iteration numbered *at*, if there is one, as a group."""
        made: Stmt = in_turn(seq(*[substitute(p, {loop.var: at}) for p in fills]), new, place(at))
        made, last = rename_fresh(made) if fresh else made, loop.begin + loop.extent
        return seq(made if prove(at < last, bounds) else If(at < last, made, None), Call(ASYNC_COMMIT, ()))

    used = in_turn(seq(*rest), new, place(loop.var))
    waiting = Call(ASYNC_WAIT, (index(ahead - 1), *[_first(new[n.buffer], place(loop.var)) for n in notes]))
    wait = _by_all(waiting, thread_extents(seq(*fills, *rest)))
    fill = filled(loop.var + index(ahead), fresh=False)
    retained = count - 1 - ahead
    kept = replace_in_notes(without_notes(loop.notes, FetchAhead), new)
    body = _wrapped(others, seq(wait, used, fill) if retained else seq(wait, fill, used))
    steady = For(loop.var, loop.begin, loop.extent, loop.kind, body, (*kept, Retained(retained)) if retained else kept)
    before = [filled(loop.begin + index(n), fresh=True) for n in range(ahead)]
    return _wrapped([new[n.buffer] for n in notes], seq(*before, steady))


def _parts(loop: For, named: set[Buffer]) -> tuple[list[Buffer], list[Stmt], list[Stmt]]:
    """Returns the buffers allocated in a loop but for those *named*, the parts of its body that fill these, and the others."""
    others, parts = _flat(loop.body, named)
    fills = [p for p in parts if _written(p) and _written(p) <= named]
    rest = [p for p in parts if p not in fills]
    if any(_written(p) & named for p in rest):
        raise LoweringError(
            f"what fills a buffer in the loop {loop.var.name} does more", hint="fetch ahead what is copied only"
        )
    return others, fills, rest


def _flat(body: Stmt, named: set[Buffer]) -> tuple[list[Buffer], Sequence[Stmt]]:
    """Returns the buffers allocated around the parts of a loop's body, but for those *named*, and the parts."""
    others: list[Buffer] = []
    flat: list[Stmt] = []
    stack = [body]
    while stack:
        s = stack.pop()
        if isinstance(s, Alloc) and (s.buffer in named or not flat):
            others += [] if s.buffer in named else [s.buffer]
            stack.append(s.body)
        elif isinstance(s, Seq):
            stack += reversed(s.body)
        elif s is not NOTHING:
            flat.append(s)
    return others, flat


def _written(part: Stmt) -> set[Buffer]:
    own = {s.buffer for s in statements(part) if isinstance(s, Alloc)}
    calls = any(isinstance(s, Call) for s in statements(part))
    return set() if calls else {s.buffer for s in stores(part)} - own


def _first(b: Buffer, place: Expr) -> Address:
    return Address(b, (place, *[ZERO] * (b.rank - 1)))


def _by_all(call: Stmt, threads: dict[str, int]) -> Stmt:
    """Returns *call* made by each thread of a block."""
    for axis, extent in reversed(threads.items()):
        call = For(Var(f"w{axis[-1]}"), ZERO, index(extent), LoopKind.BOUND, call, (Thread(axis),))
    return call


def _wrapped(buffers: Sequence[Buffer], body: Stmt) -> Stmt:
    for b in reversed(buffers):
        body = Alloc(b, body)
    return body
