"""Tasks: the tunable kernels of a model, with the share of a run that each takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from weft.cost import Choosing, Parallel, Plan, Step
from weft.driver.build import Compilation
from weft.driver.kernel_request import KernelRequest
from weft.driver.measure.device_profile import kernel_seconds
from weft.driver.measure.profile import Profiler
from weft.driver.measure.roofline import Standing, work_of_program
from weft.driver.recorded.workloads import kernel_workload
from weft.loop import Program, canonical_text, print_program, structure_text
from weft.records import KERNEL, Workload
from weft.schedule import carry_out
from weft.support.digest import digest
from weft.support.errors import InputError
from weft.targets import Target
from weft.tune.cache_state import WARM, CacheState, cache_states
from weft.tune.measure import BuildJob
from weft.tune.space import CarryOut
from weft.tune.template import Template, carry_out_template, name_of

PROFILED = 0.5
"""Seconds for which a model is run to measure its kernels."""


@dataclass(frozen=True, eq=False)
class Task:
    """A kernel to tune: its loops, by a name, and the flags of its `KernelRequest`.

    *seconds* is the time of its *calls* in one run of the model; *plan* is the incumbent, that of the rules or of the *template*
    that schedules in their place. *caches* is where its data is when the model calls it. *standing* is where the incumbent
    stands on the roofline; None where that was not measured.
    """

    name: str
    program: Program
    target: Target
    workload: Workload
    plan: Plan
    seconds: float = 0.0
    calls: int = 1
    may_alias: bool = False
    parallel: bool = True
    lift: bool = False
    passes: tuple[str, ...] = ()
    template: Template | None = None
    caches: CacheState = WARM
    standing: Standing | None = None

    @property
    def part_of_limit(self) -> float | None:
        """The part of its time that the incumbent could not do without, at most 1; None where that was not measured."""
        return None if self.standing is None else min(1.0, self.standing.share)

    @property
    def room(self) -> float:
        """The part of the incumbent's time that a faster schedule can save at most: the part beyond its limit."""
        return 1.0 - (self.part_of_limit or 0.0)

    @cached_property
    def operations(self) -> float:
        """The arithmetic operations of its calls in one run, whatever the schedule; 0 where sizes are symbolic."""
        with suppress(InputError):
            return self.calls * work_of_program(self.program, self.target).operations
        return 0.0

    @property
    def job(self) -> BuildJob:
        """The build of the incumbent."""
        return BuildJob(
            print_program(self.program),
            str(self.plan),
            self.target,
            self.may_alias,
            self.parallel,
            self.lift,
            self.passes,
            template="" if self.template is None else name_of(self.template),
        )

    def settled(self, threads: int) -> list[Step]:
        """Returns the decisions that no candidate is to change: with one thread, which loops threads share.

        One thread takes the same time whatever is shared, so that a search would serialize kernels by chance.
        """
        return [s for s in self.plan.steps if threads == 1 and isinstance(s.decision, Parallel)]

    @property
    def carry_out(self) -> CarryOut:
        """The function that schedules the program with the answers of a planner."""
        return carry_out if self.template is None else partial(carry_out_template, self.template)


def task_of(
    request: KernelRequest,
    target: Target,
    seconds: float = 0.0,
    calls: int = 1,
    caches: CacheState = WARM,
    standing: Standing | None = None,
) -> Task:
    """Returns the task of tuning one kernel, whose calls take *seconds* of a run and find their data as *caches* says."""
    plain = replace(request, plan=None, record=None)
    planner = Choosing(target)
    carry_out(plain.program, planner)
    return Task(
        plain.name,
        plain.program,
        target,
        kernel_workload(plain),
        planner.plan,
        seconds,
        calls,
        plain.may_alias,
        plain.parallel,
        plain.lift,
        plain.passes,
        caches=caches,
        standing=standing,
    )


def task_of_template(template: Template, program: Program, target: Target) -> Task:
    """Returns the task of tuning the knobs of *template*, which schedules *program*; the incumbent is that of its defaults."""
    planner = Choosing(target)
    carry_out_template(template, program, planner)
    entry, *callees = program.functions
    nameless = Program((replace(entry, name=""), *callees))
    structure, sizes = structure_text(nameless)
    workload = Workload(KERNEL, canonical_text(nameless), name_of(template), digest(structure), sizes, entry.name)
    return Task(entry.name, program, target, workload, planner.plan, template=template)


def tasks_of(
    made: Compilation, inputs: Mapping[str, np.ndarray], threads: int, standings: Iterable[Standing] = ()
) -> list[Task]:
    """Returns the kernels of a compiled model, each once, those that take most of a run first.

    They have the names that they have in the model, by which *standings* are found.

    Raises `InputError` for a model of dynamic dimensions: a kernel is measured for one size.
    """
    seconds, calls = _seconds(made, inputs, threads)
    own = [key for key in seconds if made.requests[key].target is None]  # records are of the model's target
    keys = sorted(own, key=lambda key: -seconds[key])
    states = {} if made.target.kind == "grid" else cache_states(made)
    names = {key: k.name for key, k in made.kernels.items()}
    standing = {s.name: s for s in standings}
    return [
        task_of(
            replace(made.requests[key], name=names[key]),
            made.target.alone,
            seconds[key],
            calls[key],
            states.get(key, WARM),
            standing.get(names[key]),
        )
        for key in keys
    ]


def _seconds(
    made: Compilation, inputs: Mapping[str, np.ndarray], threads: int
) -> tuple[Mapping[str, float], Mapping[str, int]]:
    """Returns the seconds that each kernel takes of a run, and how often it is called, by the key of its group."""
    if made.target.kind == "grid":
        return kernel_seconds(made, inputs, PROFILED), Counter([group.key for group in made.fused.calls])
    profiler = Profiler(made, inputs, threads)
    seconds: dict[str, float] = {}
    for group, taken in zip(profiler.groups, profiler.measure(PROFILED).kernels, strict=True):
        seconds[group.key] = seconds.get(group.key, 0.0) + taken
    return seconds, Counter([group.key for group in profiler.groups])
