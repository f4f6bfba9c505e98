"""Chooses which cases of open sizes get kernels of their own: a single row, a single column, few terms.

A kernel for any size has tiles and accumulators for many elements. In a case in which its scheduled loops are predicted to take
clearly longer than those of a kernel for that case alone, there is one: the host program looks at the sizes, and calls that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from weft.cost import (
    Candidate,
    Case,
    OpenSize,
    Planner,
    Probe,
    Versions,
    cycles_at,
    guess_of,
    possible_cases,
    subject_of,
    version_plans,
)
from weft.driver.kernel import naming
from weft.driver.kernel_request import KernelRequest
from weft.graph import RELATIONS, FusedGraph, Group, SizeCase, open_axes
from weft.ir import Var
from weft.loop import Program
from weft.schedule import Schedule
from weft.targets import Target

Schedules = dict[str, Schedule]
"""Schedules by the keys of groups, as the cheapest candidates give them."""


def choose_versions(fused: FusedGraph, planner: Planner, schedules: Schedules | None = None) -> FusedGraph:
    """Returns *fused* with the cases of sizes that have kernels of their own, as *planner* decides.

    Kernels scheduled to compare them are put into *schedules*, so that kernels are not scheduled again.
    """
    made_before: Schedules = {} if schedules is None else schedules
    chosen: dict[Group, tuple[SizeCase, ...]] = {}
    alike: dict[str, _Question] = {}
    for g in fused.groups:
        question = alike.setdefault(g.key, _Question(g, made_before)) if g.sizes and not g.regions else None
        if question is not None and question.is_open:
            made = planner.decide(subject_of(g.outputs[0].name), Versions, question.candidates)
            chosen[g] = tuple([_case(g, c) for c in made.cases])
    return replace(fused, cases=chosen)


def _case(group: Group, case: Case) -> SizeCase:
    number, relation, value = case
    return RELATIONS[relation](group.sizes[number], value)


class _Question:
    """The choice of the versions of a group; groups that are alike share it."""

    def __init__(self, group: Group, schedules: Schedules) -> None:
        axes = open_axes(group)
        self.group = group
        self.schedules = schedules
        self.sizes = [OpenSize(*v.size_range, v in axes.rows, v in axes.reduced) for v in group.sizes]
        self._probes: list[Probe] | None = None

    @property
    def is_open(self) -> bool:
        """Whether there may be versions."""
        return any(s.rows or s.reduced for s in self.sizes)

    def candidates(self, machine: Target) -> Iterator[Candidate[Versions]]:
        """Yields the alternatives, each with its cost on *machine*."""
        if self._probes is None:
            cases = possible_cases(self.sizes, self.group.outputs[0].dtype.bits, machine)
            self._probes = list(_probes(self.group, cases, machine, self.schedules))
        return version_plans(self._probes)


def _probes(group: Group, cases: Iterable[Case], machine: Target, schedules: Schedules) -> Iterator[Probe]:
    """Yields the cycles of a call of a group in each of *cases* that it can be computed for."""
    general = _Scheduled(group, machine, schedules)
    for number, relation, value in cases:
        case = RELATIONS[relation](group.sizes[number], value)
        if (own := group.where(case)) is not None:
            sizes = {v: guess_of(v) for v in group.sizes} | dict.fromkeys(case.values, value)
            cycles = _Scheduled(own, machine, schedules).cycles({v: sizes.get(v, value) for v in own.sizes})
            yield Probe((number, relation, value), general.cycles(sizes), cycles)


class _Scheduled:
    """A group's loops, as they are scheduled by the costs of *machine*."""

    def __init__(self, group: Group, machine: Target, schedules: Schedules) -> None:
        self.group = group
        self.machine = machine
        self.schedules = schedules

    @cached_property
    def program(self) -> Program:
        """The scheduled loops."""
        made = self.schedules.get(self.group.key)
        if made is None:
            request = KernelRequest(self.group.name, self.group.tensors, self.group.sizes, self.group.source)
            with naming(request):
                made = self.schedules[self.group.key] = request.schedule(self.machine)
        return made.program

    def cycles(self, sizes: Mapping[Var, int]) -> float:
        """Returns the cycles of a call where sizes are *sizes*."""
        return cycles_at(self.program, sizes, self.machine)
