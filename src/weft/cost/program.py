"""The cost of a scheduled program on a CPU, in cycles, from its loops alone: nothing is compiled, nothing is run.

For each block, the loops around it are cut in two: those that become straight code (unrolled, vectorised) are a *tile*, whose
instructions are counted against the ports; the others repeat it. For each level of cache, the outermost loops whose data fit
there tell how often an access brings its data anew, after Low, Igual, Smith and Quintana-Orti, "Analytical modeling is enough
for high-performance BLIS" (2016), and Renganarayana and Rajopadhye, "Positivity, posynomials and tile size selection" (2008).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import log2, prod

from weft.cost.demand import Demand, fma_cycles, l2_cycles, l3_cycles, load_cycles, memory_cycles
from weft.cost.footprint import Level, LoopAccess, LoopNest, filled_levels, nests, ranges_of
from weft.ir import Add, Apply, Div, Expr, Max, Min, Mul, Neg, Node, Sub, Var
from weft.loop import Load, LoopKind, Program, Stmt
from weft.targets import Target

LOOP_CYCLES = 1.0
"""Cycles of an iteration of a loop for itself: count, compare, jump."""

ENTRY_CYCLES = 12.0
"""Cycles to enter and leave a loop: its addresses, and the mispredicted branch at its end."""

SPILL_CYCLES = 1.2
"""The cycles of a sum that finds no register, for each time that it is added to, beside those of its load and its store.

Measured on an Intel Emerald Rapids, 2026-11: register tiles of 33 to 64 vectors of sums of a 3 x 3 convolution of 128 channels
(`benchmarks/tuner_curves.py --layers C6`); 1.0 to 1.3 from 40 sums on.
"""

FUNCTION_OPERATIONS = 14
"""Arithmetic instructions of an exponential or the like, once expanded."""

DIVISION_OPERATIONS = 8
"""Cycles of a division, in multiply-adds."""

SHUFFLES = 2
"""The cost of a step of a transposition in registers for each vector, in loads; n rows take log2(n) steps."""


@dataclass(frozen=True)
class Cost:
    """The cost of a block: its demand of the core over all the loops around it, and the innermost loop's overhead in cycles."""

    demand: Demand
    overhead: float

    @property
    def cycles(self) -> float:
        """All of it."""
        return self.demand.cycles + self.overhead


def predict_cycles(program: Program, target: Target) -> float:
    """Returns the cycles that the entry function of a scheduled *program* takes on one core of *target*."""
    return nest_cycles(program.entry.body, target)


def nest_cycles(body: Stmt, target: Target) -> float:
    """Returns the cycles that the loops of *body*, scheduled, take on one core of *target* each time that they are run."""
    return nests_cycles(nests(body), target)


def nests_cycles(found: Iterable[LoopNest], target: Target) -> float:
    """Returns the cycles of the nests of a program, one after another, on one core of *target*."""
    total, counted = 0.0, set[Var | None]()
    for n in found:
        innermost = next((x.var for x in reversed(n.levels) if _repeats(x)), None)
        total += cost_of(n, target, shares_loop=innermost in counted).cycles
        counted.add(innermost)
    return total


def cost_of(nest: LoopNest, target: Target, *, shares_loop: bool = False) -> Cost:
    """Returns the cost of one block with the loops around it; if it *shares_loop*, without the innermost's own cycles."""
    tile, core = _Tile(nest, target), target.core
    inner = tile.serial[-1].extent if tile.serial else 1
    entries = prod([x.extent for x in tile.serial[:-1]]) * tile.filled
    step = Demand(
        arithmetic=fma_cycles(tile.arithmetic, target),
        loads=load_cycles(tile.loads, target),
        stores=tile.stores,
        issue=tile.count / (core.issue_width if tile.count < core.decoded_instructions else core.decode_rate),
        chain=tile.latency,
    )
    l2, far = _data(nest, target)
    overhead = 0.0 if shares_loop else entries * (inner * LOOP_CYCLES + ENTRY_CYCLES)
    overhead += entries * inner * tile.spilled * SPILL_CYCLES
    return Cost(replace(step.times(entries * inner), l2=l2, far=far), overhead)


def _repeats(level: Level) -> bool:
    """Tells whether *level* is a loop at run time: neither unrolled nor of a single iteration."""
    return level.extent > 1 and level.kind in (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.BOUND)


class _Tile:
    """The straight code inside the loops of a block, in vector instructions."""

    def __init__(self, nest: LoopNest, target: Target) -> None:
        self.nest, self.target = nest, target
        self.serial = [x for x in nest.levels if _repeats(x)]
        self.unrolled = [x for x in nest.levels if x.kind is LoopKind.UNROLLED]
        self.vector = [x for x in nest.levels if x.kind is LoopKind.VECTORIZED]
        self.lanes = target.lanes(nest.written.buffer.dtype.bits)
        self.length = prod([x.extent for x in self.vector])
        self.vectors = -(-self.length // self.lanes) if self.vector else 1
        self.copies = prod([x.extent for x in self.unrolled])
        self.arithmetic = self.copies * self.vectors * operations_of(nest.store.value, fma=target.isa.fma)
        self.spilled = self._spilled()
        self.loads = (
            sum(self._moves(a) / self._iterations_kept(a) for a in nest.read if self._is_memory(a)) + self.spilled
        )
        self.stores = (self._moves(nest.written) if self._is_memory(nest.written) else 0.0) + self.spilled
        self.count = self.arithmetic + self.loads + self.stores
        self.latency = self._latency()
        self.filled = self._filled()

    def _is_memory(self, a: LoopAccess) -> bool:
        return not a.buffer.in_registers

    def _moves(self, a: LoopAccess) -> float:
        """Returns the loads or stores of one tile: each element once, a vector of neighbours at once, others one by one."""
        times = float(prod([x.extent for x in self.unrolled if a.uses(x)]))
        moving = [x for x in self.vector if a.uses(x)]
        if not moving:
            return times
        if all(a.stride(x) == 1 for x in moving[-1:]) and len(moving) == 1:
            return times * self.vectors
        side = max([min(x.extent, self.lanes) for x in self.unrolled if a.stride(x) == 1], default=1)
        if side > 1 and not a.is_store:  # transposed in registers
            return times * self.length / side * (1 + SHUFFLES * log2(side))
        return times * self.length * (1.0 if a.is_store else 2.0)  # one by one, and put together

    def _iterations_kept(self, a: LoopAccess) -> float:
        """Returns for how many iterations of the innermost loops a loaded value stays in a register."""
        kept = 1.0
        for level in reversed(self.serial):
            if a.uses(level) or a.buffer is self.nest.written.buffer:
                return kept
            kept *= level.extent
        return kept

    def _spilled(self) -> float:
        """Returns how often a sum of a tile is spilled: those that find no register, each time that they are added to."""
        if self._is_memory(self.nest.written):
            return 0.0
        times = prod([x.extent for x in self.unrolled if not self.nest.written.uses(x)])
        sums = prod([x.extent for x in self.unrolled if self.nest.written.uses(x)]) * self.vectors
        operands = max([self._moves(a) for a in self.nest.read if self._is_memory(a) and self._follows(a)], default=0.0)
        return times * max(0.0, sums + min(operands, self.vectors) + 1 - self.target.isa.vector_registers)

    def _follows(self, a: LoopAccess) -> bool:
        return any(a.uses(x) for x in self.vector)

    def _latency(self) -> float:
        """Returns the cycles until a tile's sums can be added to again; 0 where the next tile has others."""
        update = [a for a in self.nest.read if a.buffer is self.nest.written.buffer]
        if not update or (self.serial and update[0].uses(self.serial[-1])):
            return 0.0
        chain = prod([x.extent for x in [*self.unrolled, *self.vector] if not update[0].uses(x)])
        through = self.target.core.forwarding_latency if self._is_memory(update[0]) else 0
        return float(chain * (self.target.core.fma_latency + through))

    def _filled(self) -> float:
        """Returns the part of all iterations that is inside the block's domain: the last tiles of a row are smaller."""
        part = 1.0
        for levels, extent in filled_levels(self.nest):
            covered = prod([x.extent for x in levels])
            vector = min(self.lanes, next((x.extent for x in levels if x.kind is LoopKind.VECTORIZED), 1))
            if covered > extent:
                part *= min(1.0, -(-extent // vector) * vector / covered)
        return part


def operations_of(value: Expr, *, fma: bool) -> float:
    """Returns the arithmetic instructions of a formula: a multiplication that is added at once is none of its own."""
    count, seen = 0.0, set[Node]()
    stack: list[Node] = [value]
    while stack:
        n = stack.pop()
        if n in seen or isinstance(n, Load | Var):
            continue
        seen.add(n)
        stack += n.children()
        if isinstance(n, Apply):
            count += 1 if n.fn in ("fma", "abs", "floor", "ceil", "round_even") else FUNCTION_OPERATIONS
        elif isinstance(n, Div):
            count += DIVISION_OPERATIONS
        elif isinstance(n, Add | Sub) and fma and (isinstance(n.a, Mul) or isinstance(n.b, Mul)):
            continue  # counted as the product
        elif isinstance(n, Add | Sub | Mul | Min | Max | Neg):
            count += 1
    return max(count, 0.5)


def _data(nest: LoopNest, target: Target) -> tuple[float, float]:
    """Returns the cycles for data from the second level, and from beyond: the third or memory, whichever is slower."""
    accesses = [a for a in (nest.written, *nest.read) if not a.buffer.in_registers]
    distinct = list({(a.buffer, a.indices): a for a in accesses}.values())
    line = target.caches.line
    # accesses share indices, whose ranges are remembered with those of the loops
    moving = cache(lambda outside: ranges_of(nest.levels[outside:]))
    inside = cache(lambda a, outside: a.nbytes(moving(outside), line))
    fits = [
        _innermost_misfit(distinct, len(nest.levels), c, inside)
        for c in (target.caches.l1, target.caches.l2, target.caches.l3)
    ]
    traffic = [sum(_traffic(a, nest.levels, n, inside(a, n)) for a in distinct) for n in fits]
    held = sum(inside(a, 0) for a in distinct)
    warm = [
        held <= c for c in (target.caches.l1, target.caches.l2, target.caches.l3)
    ]  # then nothing comes from further away
    reading = (l2_cycles, l3_cycles, memory_cycles)
    l2, l3, memory = [0.0 if w else f(t, target) for w, t, f in zip(warm, traffic, reading, strict=True)]
    return l2, max(l3, memory)


def _innermost_misfit(
    accesses: Sequence[LoopAccess], levels: int, capacity: int, inside: Callable[[LoopAccess, int], int]
) -> int:
    """Returns the number of outer loops around the largest part of a nest of *levels* whose data fit *capacity*.

    *inside* gives the bytes that an access touches inside a number of outer loops.
    """
    for n in range(levels + 1):
        if sum(inside(a, n) for a in accesses) <= capacity:
            return n
    return levels


def _traffic(a: LoopAccess, levels: Sequence[Level], outside: int, held: int) -> float:
    """Returns the bytes that an access brings into a cache that holds the data, *held*, of the loops inside *outside* others.

    The loop around that part brings in nothing for an access that does not depend on it; loops further out bring in all again.
    """
    times = 1.0
    stays = True
    for level in reversed(levels[:outside]):
        moves = a.uses(level)
        if moves or not stays:
            times *= level.extent
        stays = stays and not moves
    return times * held * (2.0 if a.is_store else 1.0)
