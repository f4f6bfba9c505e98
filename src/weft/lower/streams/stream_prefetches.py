"""Spreads the prefetches for a later iteration of a loop evenly over the current iteration.

    for p in range(0, 8, prefetch=(B, 1)):          for p in range(0, 8):
        for t in range(0, 2):                           for t in range(0, 2):
            for k in range(0, 256):         ->              for k in range(0, 256):
                for j in vectorized(0, 32):                     prefetch(B.at(p * 8192 + 8192 + t * 4096 + k * 16))
                    ... B[p * 8192 + k * 32 + j]                for j in vectorized(0, 32):
                                                                    ... B[p * 8192 + k * 32 + j]

The reader walks over a run of memory, here 8192 elements, once for each value of `t`: each of these walks prefetches a piece of
the next run, from one end to the other, so that memory is read in order and at an even rate. Of readers in consecutive loops,
each prefetches the run of the next one. Hints on loops whose readers do not walk like that, by several elements a step, are left
to `inject_prefetches`, which puts prefetches beside the reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from weft.cost import MOST_STREAMS
from weft.ir import INDEX, ONE, ZERO, Bounds, Const, Expr, Var, free_vars, linear_terms, simplify, substitute
from weft.loop import (
    Buffer,
    For,
    Function,
    Let,
    Load,
    LoopKind,
    Prefetch,
    Program,
    Stmt,
    loads,
    map_stmts,
    own_exprs,
    prefetch,
    seq,
    statements,
    sub_statements,
)
from weft.lower.stmt_rewriter import Steps, StmtRewriter, extent_bounds, map_functions, size_bounds
from weft.targets import Target


def stream_prefetches(program: Program, target: Target) -> Program:
    """Returns *program*, whose buffers are flat, with calls of the prefetch intrinsic instead of `Prefetch` notes."""

    def change(fn: Function) -> Stmt:
        hints = any(isinstance(n, Prefetch) for s in statements(fn.body) if isinstance(s, For) for n in s.notes)
        return _Spread(size_bounds(fn), target).rewrite(fn.body) if hints else fn.body

    return map_functions(program, change)


class _Spread(StmtRewriter):
    """Replaces the hints of one loop after another, the outermost first."""

    def __init__(self, bounds: Bounds, target: Target) -> None:
        self.bounds = bounds
        self.target = target

    def visit_for(self, s: For) -> Steps:
        outer = self.bounds
        self.bounds = extent_bounds(outer, s)
        for n in s.notes:
            if isinstance(n, Prefetch):
                s = self._spread(s, n)
        body = yield s.body
        self.bounds = outer
        return For(s.var, s.begin, s.extent, s.kind, body, s.notes)

    def _spread(self, s: For, hint: Prefetch) -> For:
        calls: dict[Var, dict[Stmt, None]] = {}
        walks = list(_walks(s, hint.buffer, self.bounds))
        for walk, first, turns in _asked(walks, s.var, hint.distance):
            where, made = walk.calls(first, turns, self.target, self.bounds)
            calls.setdefault(where, {}).update(dict.fromkeys(made))
        if not calls:
            return s

        def asking(n: Stmt) -> Stmt | None:
            if not isinstance(n, For) or n.var not in calls:
                return None
            return For(n.var, n.begin, n.extent, n.kind, seq(*calls[n.var], n.body), n.notes)

        kept = tuple([n for n in s.notes if n is not hint])
        return For(s.var, s.begin, s.extent, s.kind, map_stmts(s.body, asking), kept)


@dataclass(frozen=True, eq=False)
class _Walk:
    """A reader's walk over memory: *loops*, the outermost first, each step of which advances by *width* elements in memory order;
    *again* are the loops that repeat the walk. It begins at *first*, and at *streams* offsets from there."""

    load: Load
    first: Expr
    streams: tuple[int, ...]
    width: int
    loops: tuple[For, ...]
    again: tuple[For, ...]

    @property
    def shape(self) -> tuple[object, ...]:
        """The key that readers share whose runs have the same length and steps."""
        return self.streams, self.width, tuple([f.extent for f in self.loops])

    def calls(self, first: Expr, turns: tuple[int, int], target: Target, bounds: Bounds) -> tuple[Var, list[Stmt]]:
        """Returns the prefetch calls for the run that begins at *first*, and the variable of the loop whose body they start.

        *turns* are the number of pieces of that run that other readers prefetch before this one, and the number of all pieces.
        """
        line = max(1, target.caches.line // self.load.buffer.dtype.bytes)
        piece = -(-self.width // turns[1])
        inner = len(self.loops)
        length = piece  # elements of one prefetch step: whole lines, if an outer loop has as many
        while length < line and inner > 1:
            inner -= 1
            length *= _count(self.loops[inner : inner + 1])
        turn, step = turns[0] + _number(self.again), _number(self.loops[:inner])
        start = first + (turn * _count(self.loops[:inner]) + step) * length
        made = [simplify(start + s + k, bounds) for s in self.streams for k in range(0, length, line)]
        return self.loops[inner - 1].var, [prefetch(self.load.buffer, at, level=2) for at in made]


def _asked(walks: Sequence[_Walk], var: Var, distance: int) -> list[tuple[_Walk, Expr, tuple[int, int]]]:
    """Returns, for each of *walks*, the beginning of the run to prefetch, and its share of the pieces.

    That is the next run where an iteration of the loop *var* walks over several runs of the same shape in turn; else the same
    run *distance* iterations later.
    """
    runs: dict[tuple[Expr, tuple[object, ...]], int] = {}
    before: list[int] = []
    for w in walks:
        before.append(runs.get((w.first, w.shape), 0))
        runs[w.first, w.shape] = before[-1] + _count(w.again)
    in_turn = len({w.loops[-1].var for w in walks}) == len(walks) and len({shape for _, shape in runs}) == 1
    order = list(runs) if in_turn else []
    made: list[tuple[_Walk, Expr, tuple[int, int]]] = []
    for w, n in zip(walks, before, strict=True):
        following = order[order.index((w.first, w.shape)) + 1 :] if order else []
        begins = order[0][0] if order else w.first
        first = following[0][0] if following else substitute(begins, {var: var + distance})
        made.append((w, first, (n, runs[w.first, w.shape])))
    return made


def _walks(root: For, buffer: Buffer, bounds: Bounds) -> Iterator[_Walk]:
    """Returns the walks of all readers of *buffer* in *root*; none if one of them is not known."""
    made: list[_Walk] = []
    stack: list[tuple[Stmt, tuple[For, ...], frozenset[Var]]] = [(root.body, (), frozenset())]
    while stack:
        s, loops, unknown = stack.pop()
        for e in own_exprs(s):
            for n in [n for n in loads(e) if n.buffer is buffer]:
                walk = _walk(n, root, loops, bounds)
                if walk is None or not unknown.isdisjoint(free_vars(n.indices[0])):
                    return
                made.append(walk)
        inside = (*loops, s) if isinstance(s, For) else loops
        hidden = unknown | {s.var} if isinstance(s, Let) else unknown
        stack += [(x, inside, hidden) for x in reversed(sub_statements(s))]
    yield from made


def _walk(n: Load, root: For, loops: Sequence[For], bounds: Bounds) -> _Walk | None:
    """Returns how the reader *n* goes through memory in one iteration of *root*; *loops* are those around it inside."""
    if any(f.kind in (LoopKind.PARALLEL, LoopKind.BOUND) or f.begin is not ZERO for f in loops):
        return None
    found = _steps(n.indices[0], loops, bounds)
    if found is None:
        return None
    steps, first = found
    inner = max([n for n, f in enumerate(loops) if f.kind is LoopKind.SERIAL], default=-1)
    serial = [f for f in loops[: inner + 1] if f.extent is not ONE]  # unrolled loops around a loop take turns, too
    moving = [f for f in serial if steps.get(f.var, 0)]
    again = serial[: len(serial) - len(moving)]
    if not moving or moving != serial[len(again) :] or not _is_one_run(moving, steps):
        return None
    width = steps[moving[-1].var]
    streams = _streams(loops[inner + 1 :], steps, width) if width > 1 else ()  # not where single elements are read
    if not 0 < len(streams) <= MOST_STREAMS:
        return None
    return _Walk(n, first, streams, width, tuple(moving), tuple(again))


def _steps(i: Expr, loops: Sequence[For], bounds: Bounds) -> tuple[dict[Var, int], Expr] | None:
    """Returns how far one step of each of *loops* moves the index *i*, and *i* before the first; None if that is not constant."""
    if not all(isinstance(f.extent, Const) for f in loops) or i.dtype is not INDEX:
        return None
    found = linear_terms(simplify(i, bounds), [f.var for f in loops])
    if found is None:
        return None
    scales, first = found
    steps = {v: int(c.value) for v, c in scales.items() if isinstance(c, Const)}
    return (steps, first) if len(steps) == len(scales) else None


def _is_one_run(moving: Sequence[For], steps: Mapping[Var, int]) -> bool:
    """Tells whether each step of one of *moving*, nested loops, continues where the loops inside it have ended."""
    width = steps[moving[-1].var]
    return all(steps[f.var] == width * _count(moving[k + 1 :]) for k, f in enumerate(moving))


def _streams(written_out: Sequence[For], steps: Mapping[Var, int], width: int) -> tuple[int, ...]:
    """Returns where the runs begin that the loops *written_out*, unrolled or vectors, read side by side, in units of *width*."""
    copies = [f for f in written_out if steps.get(f.var, 0)]
    offsets = [sum(steps[f.var] * k for f, k in zip(copies, at, strict=True)) for at in product(*map(_values, copies))]
    return tuple(sorted({o // width * width for o in offsets}))


def _values(loop: For) -> range:
    return range(_count([loop]))


def _count(loops: Sequence[For]) -> int:
    """Returns how many iterations *loops*, of constant extents, have together."""
    return prod([int(f.extent.value) for f in loops if isinstance(f.extent, Const)])


def _number(loops: Sequence[For]) -> Expr:
    """Returns the number of the iteration of *loops*, counted from 0."""
    made: Expr = ZERO
    for f in loops:
        made = made * f.extent + f.var
    return made
