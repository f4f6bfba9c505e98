"""Tasks: the kernels of a model that can be tuned, and what each takes of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from weft.cost import Choosing, Plan
from weft.driver.build import Compilation
from weft.driver.kernel import KernelRequest
from weft.driver.measure.profile import Profiler
from weft.driver.workloads import kernel_workload
from weft.loop import print_program
from weft.records import Workload
from weft.schedule import carry_out
from weft.targets import Target
from weft.tune.measure import BuildJob

PROFILED = 0.5
"""Seconds for which a model is run to see what its kernels take."""


@dataclass(frozen=True, eq=False)
class Task:
    """A kernel to tune.

    *seconds* is the time of its *calls* in one run of the model; *plan* is the incumbent, that of the rules.
    """

    request: KernelRequest
    target: Target
    workload: Workload
    plan: Plan
    seconds: float
    calls: int

    @property
    def name(self) -> str:
        """The kernel's name in the model."""
        return self.request.name

    @property
    def job(self) -> BuildJob:
        """The build of the incumbent."""
        r = self.request
        program = print_program(r.program)
        return BuildJob(program, str(self.plan), self.target, r.may_alias, r.parallel, r.lift, r.passes)


def task_of(request: KernelRequest, target: Target, seconds: float = 0.0, calls: int = 1) -> Task:
    """Returns the task of tuning one kernel, whose calls take *seconds* of a run."""
    plain = replace(request, plan=None, record=None)
    planner = Choosing(target)
    carry_out(plain.program, planner)
    return Task(plain, target, kernel_workload(plain), planner.plan, seconds, calls)


def tasks_of(made: Compilation, inputs: Mapping[str, np.ndarray], threads: int) -> list[Task]:
    """Returns the kernels of a compiled model, each once, those that take most of a run first.

    Raises `InputError` for a model of dynamic dimensions: a kernel is measured for one size.
    """
    timing = Profiler(made, inputs, threads).measure(PROFILED)
    seconds: dict[str, float] = {}
    calls: dict[str, int] = {}
    for group, taken in zip(made.fused.calls, timing.kernels, strict=True):
        seconds[group.key] = seconds.get(group.key, 0.0) + taken
        calls[group.key] = calls.get(group.key, 0) + 1
    keys = sorted(seconds, key=lambda key: -seconds[key])
    return [task_of(made.requests[key], made.target, seconds[key], calls[key]) for key in keys]
