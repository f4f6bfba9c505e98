"""Multi-versioning: a case of a kernel's symbolic sizes gets a specialised kernel if that is clearly faster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

SHORT: Final = 2
"""Vectors up to which an axis is short: its rest is a large part of it, and accumulators for longer ones are left idle."""

WORTH: Final = 0.1
"""The part of a call's time that a version has to save, as it takes as long to compile as any kernel, and room in a file."""

Case: TypeAlias = tuple[int, str, int]
"""The number of a size among those of a kernel, a relation (`==`, `<=`, or `%` for its multiples), and a number."""


@dataclass(frozen=True)
class Versions(Decision):
    """The cases of sizes that have kernels of their own; the first that holds in a call is taken."""

    question = "the versions of a kernel of open sizes"
    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Probe:
    """A case of a kernel's sizes, and the cycles of a call in it: of the kernel for any size, and of its own."""

    case: Case
    general: float
    own: float


@dataclass(frozen=True)
class OpenSize:
    """A size of a kernel: its range, and whether rows or columns of a reduction, or what is *reduced*, are of that size."""

    low: int
    high: int | None
    rows: bool
    reduced: bool


def possible_cases(sizes: Sequence[OpenSize], bits: int, target: Target) -> Iterator[Case]:
    """Yields the cases that *sizes* may have versions for: a single row or column, and few terms, each of *bits* bits."""
    short = SHORT * target.lanes(bits)
    for n, size in enumerate(sizes):
        if size.rows and size.low == 1 != size.high:
            yield n, "==", 1
        if size.reduced and size.low <= short and (size.high is None or size.high > short):
            yield n, "<=", short


def version_plans(probes: Sequence[Probe]) -> Iterator[Candidate[Versions]]:
    """Yields all versions that are worth it, none, and each alone; the cycles are those of a call in each of the cases."""
    worth = [p for p in probes if p.own < p.general * (1 - WORTH)]
    sets = [worth, [], *[[p] for p in probes]]
    for chosen in {tuple([p.case for p in s]): s for s in sets}.values():
        cycles = sum(p.own + WORTH * p.general if p in chosen else p.general for p in probes)
        yield Candidate(Versions(tuple([p.case for p in chosen])), cycles)
