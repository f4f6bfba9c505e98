"""Tunes a template: an expert's schedule function with knobs, for one loop program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from weft.cost import Following, Plan, parse_plan
from weft.driver.cache.code_cache import default_cache
from weft.driver.calibrate import target_here
from weft.driver.check_target import check_runs_here
from weft.loop import Program
from weft.schedule import Schedule
from weft.tune.measure import Interval, local_executors
from weft.tune.strategies import strategy
from weft.tune.task_tuner import VERIFIED, TaskTuner, Trial
from weft.tune.tasks import task_of_template
from weft.tune.template import Template, carry_out_template


@dataclass(frozen=True, eq=False)
class TunedTemplate:
    """The fastest plan of a template, and the program scheduled by it.

    `ratio` is its time relative to that of the defaults, measured again; None where nothing was faster than these. `trials` are
    all candidates, `count` how many points the space has.
    """

    plan: Plan
    schedule: Schedule
    ratio: Interval | None
    trials: list[Trial]
    count: int


def tune_template(
    program: Program,
    template: Template,
    *,
    trials: int = 128,
    minutes: float = 5.0,
    tuner: str = "sa-xgb",
    target: str = "cpu",
    threads: int = 1,
    seed: int = 0,
    watch: Callable[[Trial], object] | None = None,
) -> TunedTemplate:
    """Searches the knobs of *template* for the fastest schedule of *program*, for at most so many *trials* and *minutes*.

    *template* is called with a `Schedule` of the program and `Knobs`; it must be at the top of a module, since worker processes
    import it. The results of each candidate are compared with the unscheduled loops. Raises `InputError` for a template that
    can't be imported, or an unknown tuner.
    """
    machine = target_here(target, None, default_cache())
    check_runs_here(machine, target, "tune where the kernel is to run")
    task = task_of_template(template, program, machine)
    builder, runner = local_executors(threads=threads)
    with builder, runner:
        search = TaskTuner(task, strategy(tuner), builder, runner, seed=seed, threads=threads)
        end = perf_counter() + 60 * minutes
        for trial in search.run(lambda: search.begun < trials and perf_counter() < end and not search.verdict.stops):
            if watch is not None:
                watch(trial)
        again = search.verified(VERIFIED)
    plan, ratio = task.plan, None
    if again is not None and again.built is not None and again.measured is not None and again.measured.ratio.high < 1:
        plan, ratio = parse_plan(again.built.plan), again.measured.ratio
    schedule = carry_out_template(template, program, Following(plan))
    return TunedTemplate(plan, schedule, ratio, search.trials, search.space.count)
