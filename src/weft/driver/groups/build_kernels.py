"""The kernels of a model: each from its request, by way of the cache and the tuning records."""

from __future__ import annotations

from collections.abc import Callable
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
    pending: dict[str, Future[Kernel]] = {}
    finished: list[Future[Kernel]] = []
    clock.begin("kernels", len(requests))
    for key, request in requests.items():
        clock.step(len(finished))
        own = target if request.target is None else request.target
        start = partial(make_kernel, target=own, cache=cache, pool=pool, verify=options.verify, elsewhere=workers)
        requests[key], pending[key] = _started(request, records, start)
        pending[key].add_done_callback(finished.append)
    if workers is not None:
        workers.finish(pool)
    for f in pending.values():
        f.result()
        clock.step(len(finished))
    names = UniqueNames(first=2)
    return {key: f.result().named(names.of(requests[key].name)) for key, f in pending.items()}


def _started(
    request: KernelRequest, records: BestRecords, start: Callable[[KernelRequest], Future[Kernel]]
) -> tuple[KernelRequest, Future[Kernel]]:
    """Returns the kernel of a *request*, and the request that it was made of: with the plan in *records*, if it applies."""
    if request.target is not None:  # records are of the model's
        return request, start(request)
    followed = with_recorded_plan(request, records)
    try:
        return followed, start(followed)
    except LoweringError as error:
        if followed.record is None:
            raise
        leave_out(f"kernel {request.name}", error)
        return request, start(request)
