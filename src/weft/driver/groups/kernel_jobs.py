"""A kernel to make in another process: its request as plain values, and the kernel as they come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.cost import cheapest, parse_plan
from weft.driver.cache.lock import Claim
from weft.driver.kernel import lower_kernel, naming
from weft.driver.kernel_request import KernelRequest
from weft.driver.progress import Span
from weft.loop import parse_program
from weft.targets import Target


@dataclass(frozen=True)
class KernelJob:
    """A request for a kernel of *target*, whose loops are a text; the fields are those of `KernelRequest`."""

    program: str
    target: Target
    name: str
    source: str
    may_alias: bool
    parallel: bool
    lift: bool
    plan: str | None
    passes: tuple[str, ...]


@dataclass(frozen=True)
class MadeKernel:
    """A kernel as bytes, and when each step to it was done, by the clock that all processes of the machine have."""

    data: bytes
    spans: Sequence[Span]


def job_of(request: KernelRequest, target: Target) -> KernelJob | None:
    """Returns a request as a job; None for one with parts that no text tells: limits of sizes, its own schedule or choice."""
    has_own = request.cheapest_schedule is not None or (request.plan is None and request.choose is not cheapest)
    if has_own or any(v.limits is not None for v in request.sizes):
        return None
    return KernelJob(
        str(request.program),
        target,
        request.name,
        request.source,
        request.may_alias,
        request.parallel,
        request.lift,
        None if request.plan is None else str(request.plan),
        request.passes,
    )


def carry_out_job(job: KernelJob) -> MadeKernel:
    """Schedules, lowers and compiles the kernel; raises what `make_kernel` would."""
    request = KernelRequest(
        job.name,
        lambda: ((), ()),
        source=job.source,
        may_alias=job.may_alias,
        parallel=job.parallel,
        lift=job.lift,
        plan=None if job.plan is None else parse_plan(job.plan),
        passes=job.passes,
        loops=parse_program(job.program),
    )
    with naming(request):
        kernel = lower_kernel(request, job.target).emit(job.target, None, "", Claim())
    return MadeKernel(kernel.to_bytes(), kernel.spans)
