"""Footprints: a block's accesses as functions of the loops around it, and the memory that some of the loops access.

A loop that stands for several (fused, and taken apart again by `//` and `%` of constants) is seen as these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

from weft.cost.sizes import size_of
from weft.ir import DIVIDES, Const, Expr, FloorDiv, FloorMod, RangesOrZero, Var, free_vars, nodes_with, substitute
from weft.loop import Block, Buffer, For, LoopKind, Stmt, Store, loads, stores, sub_statements


@dataclass(frozen=True, eq=False)
class Level:
    """A loop, or a digit of one: its variable advances by *scale* in each of *extent* iterations."""

    var: Var
    extent: int
    scale: int
    kind: LoopKind


@dataclass(frozen=True, eq=False)
class LoopAccess:
    """The elements of *buffer* that a block reads or writes, by indices over the variables of its loops."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    is_store: bool

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """The elements from one index to the next, for each dimension."""
        made = [1]
        for s in reversed(self.buffer.shape[1:]):
            made.append(made[-1] * size_of(s))
        return tuple(reversed(made))

    def stride(self, level: Level) -> int:
        """Returns how many elements further one iteration of *level* goes, from the first to the second."""
        here, there = RangesOrZero({}), RangesOrZero({level.var: (level.scale, level.scale)})
        moving = [(i, s) for i, s in zip(self.indices, self.strides, strict=True) if level.var in free_vars(i)]
        return sum([(there.ends_of(i)[0] - here.ends_of(i)[0]) * s for i, s in moving])

    def uses(self, level: Level) -> bool:
        """Tells whether the accessed elements depend on *level*."""
        return any(changes(i, level) for i in self.indices)

    def nbytes(self, moving: RangesOrZero, line: int) -> int:
        """Returns the bytes of the cache lines, of *line* bytes, that are accessed where variables are in the ranges *moving*."""
        shape, widths = [size_of(s) for s in self.buffer.shape], []
        for i, size in zip(self.indices, shape, strict=True):
            lo, hi = moving.ends_of(i)
            widths.append(max(1, min(hi - lo + 1, size)))
        return _lines(widths, shape, self.buffer.dtype.bytes, line)


def ranges_of(inside: Sequence[Level]) -> RangesOrZero:
    """Returns the ranges of the variables of the loops *inside* while all others are fixed."""
    ranges: dict[Var, tuple[int, int]] = {}
    for level in inside:
        ranges[level.var] = (0, ranges.get(level.var, (0, 0))[1] + (level.extent - 1) * level.scale)
    return RangesOrZero(ranges)


def bytes_of(buffer: Buffer) -> int:
    """Returns the bytes of a whole buffer."""
    return prod(map(size_of, buffer.shape)) * buffer.dtype.bytes


def step_along(buffer: Buffer, indices: Sequence[Expr], var: Var) -> int:
    """Returns how many elements further *indices* are for the next value of *var*."""
    return LoopAccess(buffer, tuple(indices), is_store=False).stride(Level(var, 2, 1, LoopKind.SERIAL))


def bytes_touched(buffer: Buffer, indices: Sequence[Expr], counts: Mapping[Var, int], line: int) -> int:
    """Returns the bytes of the lines, of *line* bytes, of *buffer* at *indices*, where each variable has *counts* values."""
    levels = [Level(v, n, 1, LoopKind.SERIAL) for v, n in counts.items()]
    return LoopAccess(buffer, tuple(indices), is_store=False).nbytes(ranges_of(levels), line)


@dataclass(frozen=True, eq=False)
class LoopNest:
    """A block, the loops around it from the outermost in, and its accesses."""

    block: Block
    levels: tuple[Level, ...]
    store: Store
    written: LoopAccess
    read: tuple[LoopAccess, ...]


def nests(body: Stmt) -> Iterator[LoopNest]:
    """Gives every block of *body* for each store that it has: one for most, several for a reduction of tuples."""
    stack: list[tuple[Stmt, tuple[For, ...]]] = [(body, ())]
    while stack:
        s, loops = stack.pop()
        if isinstance(s, Block):
            for store in stores(s.body):
                yield _nest(s, loops, store)
            continue
        inner = (*loops, s) if isinstance(s, For) else loops
        stack += [(x, inner) for x in reversed(sub_statements(s))]


def _nest(block: Block, loops: Sequence[For], store: Store) -> LoopNest:
    values = {a.var: b for a, b in zip(block.axes, block.bindings, strict=True)}
    written = LoopAccess(store.buffer, _bound(store.indices, values), is_store=True)
    loaded = dict.fromkeys(loads(store.value))
    read = [LoopAccess(x.buffer, _bound(x.indices, values), is_store=False) for x in loaded]
    divisors = _divisors([*block.bindings, *[i for a in (written, *read) for i in a.indices]])
    levels = [level for f in loops for level in _digits(f, divisors.get(f.var, set()))]
    return LoopNest(block, tuple(levels), store, written, tuple(read))


def filled_levels(nest: LoopNest) -> list[tuple[set[Level], int]]:
    """Returns the loops that go along each axis of a block, and the extent that they fill, or exceed.

    Axes that are taken apart from one loop, by `//` and `%`, are filled by it together.
    """
    groups: list[tuple[set[Level], int]] = []
    for axis, binding in zip(nest.block.axes, nest.block.bindings, strict=True):
        levels, extent = {x for x in nest.levels if changes(binding, x)}, size_of(axis.extent)
        for joined in [g for g in groups if g[0] & levels]:
            groups.remove(joined)
            levels, extent = levels | joined[0], extent * joined[1]
        groups.append((levels, extent))
    return groups


def _bound(indices: Sequence[Expr], values: Mapping[Var, Expr]) -> tuple[Expr, ...]:
    return tuple([substitute(i, values) for i in indices])


def _divisors(exprs: Sequence[Expr]) -> dict[Var, set[int]]:
    """Returns the constants that *exprs* divide each variable by."""
    found: dict[Var, set[int]] = {}
    for e in dict.fromkeys(exprs):
        for n in nodes_with(DIVIDES, e):
            if isinstance(n, FloorDiv | FloorMod) and isinstance(n.a, Var) and isinstance(n.b, Const):
                found.setdefault(n.a, set()).add(int(n.b.value))
    return found


def _digits(loop: For, divisors: set[int]) -> list[Level]:
    """Returns the loops that *loop* stands for, going by the *divisors* of its variable in the indices of accesses."""
    extent = size_of(loop.extent)
    chain = [1]
    for d in sorted(divisors):
        if d < extent and d % chain[-1] == 0 and d > chain[-1]:
            chain.append(d)
    ends = [*chain[1:], extent]
    made = [Level(loop.var, -(-end // begin), begin, loop.kind) for begin, end in zip(chain, ends, strict=True)]
    return made[::-1]


@lru_cache(maxsize=1024)
def changes(e: Expr, level: Level) -> bool:
    """Tells whether the iterations of *level* give *e* different values."""
    if level.extent < 2 or level.var not in free_vars(e):
        return False
    values = [k * level.scale for k in sorted({0, 1, 2, level.extent - 1}) if k < level.extent]
    points = (RangesOrZero({level.var: (v, v)}).of(e) for v in values)  # at points: `v % 8` stands still from 0 to 8
    first = next(points)
    return any(p != first for p in points)


def _lines(widths: Sequence[int], shape: Sequence[int], element: int, line: int) -> int:
    """Returns the bytes of the lines that hold a box of *widths* in an array: dimensions that are whole are one run."""
    run, n = 1, len(widths)
    while n > 0:
        n -= 1
        run *= widths[n]
        if widths[n] < shape[n]:
            break
    rows = 1
    for w in widths[:n]:
        rows *= w
    lines = -(-run * element // line)
    return rows * lines * line
