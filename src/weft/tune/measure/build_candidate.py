"""Builds a candidate: program and plan, as texts, to machine code that can be mapped anywhere."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache

from weft.codegen import link_here
from weft.cost import Answering, Choosing, Following, Plan, Planner, addressed, parse_plan
from weft.driver.cache.lock import Claim
from weft.driver.kernel import lower_scheduled
from weft.driver.kernel_request import KernelRequest
from weft.loop import Program, parse_program
from weft.schedule import Schedule, carry_out, trusting
from weft.support.errors import ParseError, ScheduleError, WeftError
from weft.tune.measure.jobs import BuildJob, Built, Failed
from weft.tune.measure.package_kernel import package_kernel
from weft.tune.measure.stage_clock import StageClock
from weft.tune.template import carry_out_template, template_named


def build(job: BuildJob) -> Built | Failed:
    """Builds the kernel of *job*; any thread or process can do so."""
    clock = StageClock()
    try:
        return replace(_built(job, clock), stages=clock.seconds)
    except (ParseError, ScheduleError) as error:
        return Failed("plan", str(error), clock.seconds)
    except WeftError as error:
        return Failed("error", str(error), clock.seconds)
    except MemoryError:
        return Failed("memory", "there is no memory left to build it in", clock.seconds)


@lru_cache(maxsize=16)
def read_program(text: str) -> Program:
    """Returns the program that *text* stands for; the last ones are kept, since many plans are of one program."""
    return parse_program(text)


def _built(job: BuildJob, clock: StageClock) -> Built:
    with clock.stage("parse"):
        program = read_program(job.program)
        plan = None if job.plan is None else parse_plan(job.plan)
    with clock.stage("schedule"), trusting() if job.trusted else nullcontext():
        schedule, plan = _scheduled(program, plan, job)
    request = KernelRequest(
        program.entry.name,
        lambda: ((), ()),  # they are loops already
        may_alias=job.may_alias,
        parallel=job.parallel,
        lift=job.lift and job.target.kind != "grid",  # the host part takes its workspace from the device
        passes=job.passes,
    )
    with clock.stage("lower"):
        lowered = lower_scheduled(request, schedule, job.target)
    with clock.stage("LLVM"):
        kernel = lowered.emit(job.target, None, "", Claim())
    with clock.stage("link"):
        if job.target.kind == "grid":
            return Built(package_kernel(kernel, program.entry, job.target), 0, (), str(plan), schedule.trace.to_json())
        image = link_here([kernel.module], job.target)
    offset = image.symbols[program.entry.name]
    return Built(image.code, offset, kernel.workspaces, str(plan), schedule.trace.to_json())


def _scheduled(program: Program, plan: Plan | None, job: BuildJob) -> tuple[Schedule, Plan]:
    """Returns the scheduled loops, and the plan that was followed, with the rules' choices where it is open."""
    planner = _planner(plan, job)
    if job.template:
        schedule = carry_out_template(template_named(job.template), program, planner)
    else:
        schedule = carry_out(program, planner)
    planner.finish()
    return schedule, planner.plan


def _planner(plan: Plan | None, job: BuildJob) -> Planner:
    if plan is None:
        return Choosing(job.target)
    return Answering(job.target, addressed(plan.steps)) if job.has_gaps else Following(plan)
