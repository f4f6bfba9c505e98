"""Places each kernel of a model under the roofline of one core, and names its bound.

After Williams, Waterman and Patterson, "Roofline" (2009), with a roof for each level of memory: weights come from the level that
holds the whole model, since a call reads each of them once; values between kernels from the level that holds the kernel's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from weft.driver.build import Compilation
from weft.driver.measure.limits import Quantity, arithmetic, memory
from weft.driver.measure.profile import Profiler
from weft.driver.measure.work import Work, count_work
from weft.driver.progress import Progress
from weft.graph import Constant, Group
from weft.ir import Const
from weft.loop import Program
from weft.lower import expand_math
from weft.support.dtypes import DType, f32
from weft.targets import Target
from weft.te import to_program

NEAR: Final = 0.75
"""The part of its limit from which on a kernel counts as being there."""

SHORT: Final = 3e-6
"""Seconds below which starting and ending the loops is much of a kernel."""


@dataclass(frozen=True)
class Level:
    """A level of memory: its capacity in bytes, and how fast one core reads it in GB/s."""

    name: str
    capacity: float
    bandwidth: float


@dataclass(frozen=True)
class Roofs:
    """The limits of one core: multiply-adds in GFLOP/s, and the levels of memory, the nearest first.

    Products of *narrow* factors may have limits of their own, by the type of the first factor.
    """

    peak: float
    levels: Sequence[Level]
    narrow: Mapping[DType, float] = field(default_factory=dict)

    def level(self, nbytes: float) -> Level:
        """Returns the nearest level that holds *nbytes*."""
        return next(x for x in self.levels if nbytes <= x.capacity)

    def seconds(self, work: Work) -> float:
        """Returns the seconds that the arithmetic of *work* takes at least."""
        narrow = {t: n for t, n in work.narrow.items() if t in self.narrow}
        own = sum([n / self.narrow[t] for t, n in narrow.items()])
        return (own + (work.operations - sum(narrow.values())) / self.peak) / 1e9


@dataclass(frozen=True)
class Standing:
    """A kernel on the roofline: seconds of a call, its work, and the lower bounds of its time, by cause."""

    name: str
    source: str
    calls: int
    seconds: float
    operations: float
    nbytes: float
    limits: Mapping[str, float]

    @property
    def rate(self) -> float:
        """The operations in 10**9 per second."""
        return self.operations / self.seconds / 1e9 if self.seconds > 0 else 0.0

    @property
    def intensity(self) -> float:
        """The operations for each byte moved."""
        return self.operations / self.nbytes if self.nbytes else 0.0

    @property
    def limit(self) -> float:
        """The seconds that a call takes at least: arithmetic goes on while memory is read, one read after another."""
        times = list(self.limits.values())
        return max(times[0], sum(times[1:]))

    @property
    def share(self) -> float:
        """The part of its time that the kernel could not do without; 1 is on the roof."""
        return self.limit / self.seconds if self.seconds > 0 else 1.0

    @property
    def cause(self) -> str:
        """The bound of the kernel's speed: its arithmetic, or the memory that it reads for the longest."""
        compute, *moves = self.limits
        largest = max(moves, key=lambda m: self.limits[m])
        return compute if self.limits[compute] >= sum(self.limits[m] for m in moves) else largest

    @property
    def bound(self) -> str:
        """The bound of the kernel, in words."""
        if self.share >= NEAR:
            return f"{self.cause}: {self.share:.0%} of what the machine can do"
        if self.seconds < SHORT:
            return "too short for anything but its own start and end"
        compute, *_ = self.limits
        if self.cause == compute:
            return f"{compute}, at {self.share:.0%} of its peak; no level of memory is near its limit"
        return f"{self.cause}, with memory at {self.share:.0%} of its bandwidth; arithmetic is not near its peak"


def measure_roofs(target: Target, rounds: int = 3, progress: Progress | None = None) -> Roofs:
    """Returns the roofs of one core of this machine, held to the vectors of *target*."""
    known = list(arithmetic(target))
    peaks = [q for q in known if q.factors is f32 and f"{target.isa.vector_bits}-bit" in q.name]
    narrow = [q for q in known if q.factors not in (f32, None)]
    reads = list(memory(target))
    total = 1 + len(reads) + len(narrow)
    rates = [_best(q, rounds, n, total, progress) for n, q in enumerate([*peaks, *reads, *narrow])]
    best: dict[DType, float] = {}
    for q, rate in zip(narrow, rates[1 + len(reads) :], strict=True):
        if q.factors is not None:
            best[q.factors] = max(best.get(q.factors, 0.0), rate)
    capacities = [target.caches.l1, target.caches.l2, target.caches.l3, float("inf")]
    names = [q.name.removesuffix(" read") for q in reads]
    return Roofs(rates[0], [Level(*x) for x in zip(names, capacities, rates[1 : 1 + len(reads)], strict=True)], best)


def _best(q: Quantity, rounds: int, done: int, total: int, progress: Progress | None) -> float:
    if progress is not None:
        progress("measure", done, total)
    return max(q.rate() for _ in range(rounds))


def place_kernels(
    made: Compilation, inputs: Mapping[str, np.ndarray], roofs: Roofs, seconds: float = 2.0
) -> list[Standing]:
    """Returns where the distinct kernels of a model stand, the most expensive first; they are timed for *seconds* in all.

    Raises `InputError` for a model with symbolic shapes.
    """
    taken: dict[str, list[float]] = {}
    first: dict[str, Group] = {}
    profiler = Profiler(made, inputs)
    for group, time in zip(profiler.groups, profiler.measure(seconds).kernels, strict=True):
        taken.setdefault(group.key, []).append(time)
        first.setdefault(group.key, group)
    held = sum(c.nbytes for c in made.fused.constants) + _arena(made)
    found = [_standing(made, first[key], times, held, roofs) for key, times in taken.items()]
    return sorted(found, key=lambda s: -s.calls * s.seconds)


def _arena(made: Compilation) -> int:
    return int(made.plan.size.value) if isinstance(made.plan.size, Const) else 0


def work_of(group: Group, target: Target) -> Work:
    """Returns the work of a group of nodes, straight from its formulas."""
    inputs, outputs = group.tensors()
    return work_of_program(to_program(inputs, outputs, group.name, group.sizes), target)


def work_of_program(program: Program, target: Target) -> Work:
    """Returns the work of a kernel's unscheduled loops; raises `InputError` where an extent is symbolic."""
    return count_work(expand_math(program, target).entry)


def _standing(made: Compilation, group: Group, times: Sequence[float], held: float, roofs: Roofs) -> Standing:
    work = work_of(group, made.target)
    constants = [n for n, v in enumerate(group.inputs) if isinstance(made.fused.root(v), Constant)]
    weights = sum(work.moved.get(f"p{n}", 0.0) for n in constants)
    far, near = roofs.level(held), roofs.level(work.nbytes)
    limits = {
        "arithmetic": roofs.seconds(work),
        f"weights from {far.name}": weights / far.bandwidth / 1e9,
        f"activations from {near.name}": (work.nbytes - weights) / near.bandwidth / 1e9,
    }
    mean = sum(times) / len(times)
    name = made.kernels[group.key].name
    return Standing(name, group.source, len(times), mean, work.operations, work.nbytes, limits)
