"""The kernels of a model: each from its request, by way of the cache and the tuning records."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from functools import partial

from weft.driver.cache.code_cache import Cache
from weft.driver.groups.kernel_workers import KernelWorkers
from weft.driver.kernel import Kernel, make_kernel
from weft.driver.kernel_request import KernelRequest
from weft.driver.options import CompileOptions
from weft.driver.progress import Clock
from weft.driver.recorded.best_records import BestRecords
from weft.driver.recorded.recorded_plans import leave_out, with_recorded_plan
from weft.support.errors import LoweringError
from weft.support.unique_names import UniqueNames
from weft.targets import Target


def build_kernels(
    requests: dict[str, KernelRequest],
    target: Target,
    options: CompileOptions,
    cache: Cache | None,
    pool: Executor,
    clock: Clock,
    records: BestRecords,
    workers: KernelWorkers | None = None,
) -> dict[str, Kernel]:
    """Returns the kernels by the keys of their groups; the backend compiles in *pool* while Python goes on, and *workers* make
    some of them.

    A request for which *records* have a plan is replaced, in *requests*, by one with that plan.
    """
    making = partial(_making, target=target, cache=cache, pool=pool, verify=options.verify)
    asked, pending = dict(requests), dict[str, Future[Kernel]]()
    finished: list[Future[Kernel]] = []
    clock.begin("kernels", len(requests))
    for key, request in asked.items():
        clock.step(len(finished))
        if request.target is None:  # records are of the model's
            requests[key] = with_recorded_plan(request, records)
        pending[key] = making(requests[key], workers)
        pending[key].add_done_callback(finished.append)
    if workers is not None:
        workers.finish(pool)
    for key, request in asked.items():
        error = pending[key].exception()
        if isinstance(error, LoweringError) and requests[key].record is not None:
            leave_out(f"kernel {request.name}", error)
            requests[key], pending[key] = request, making(request, None)
        pending[key].result()
        clock.step(len(finished))
    names = UniqueNames(first=2)
    return {key: f.result().named(names.of(requests[key].name)) for key, f in pending.items()}


def _making(
    request: KernelRequest,
    workers: KernelWorkers | None,
    *,
    target: Target,
    cache: Cache | None,
    pool: Executor,
    verify: bool,
) -> Future[Kernel]:
    """Returns the kernel to come; where the plan of a record breaks the compiler, the error comes in its place."""
    own = target if request.target is None else request.target
    try:
        return make_kernel(request, own, cache, pool, verify=verify, elsewhere=workers)
    except LoweringError as error:
        if request.record is None:
            raise
        failed: Future[Kernel] = Future()
        failed.set_exception(error)
        return failed
