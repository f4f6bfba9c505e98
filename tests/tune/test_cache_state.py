"""Kernels are measured with the caches as their model leaves them: a small one warm, the weights of a larger one cold."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.models import mlp

import weft
from weft.loop import Buffer
from weft.records import Measurement
from weft.targets import host
from weft.tune.cache_state import WARM, CacheState, cache_states, evicted_bytes, working_set
from weft.tune.measure import BuildJob, Failed, Limits, RunJob, build
from weft.tune.strategies import strategy
from weft.tune.task_tuner import VERIFIED, TaskTuner
from weft.tune.tasks import task_of

KB, MB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("touched", "evicted"),
    [
        (100 * KB, 0),
        (2 * MB, 0),
        (2 * MB + 1, 2 * MB + 1),  # its own other bytes are all that comes between
        (3 * MB, 3 * MB),
        (30 * MB, 4 * MB),
        (32 * MB, 4 * MB),
        (33 * MB, 33 * MB),
        (400 * MB, 48 * MB),
    ],
)
def test_bytes_that_push_weights_out(touched: int, evicted: int) -> None:
    assert evicted_bytes(touched, replace(host().caches, l2=2 * MB, l3=32 * MB)) == evicted


def test_a_model_that_fits_is_measured_warm() -> None:
    made = weft.build(mlp(4), "cpu")
    assert 3 * KB < working_set(made) < 64 * KB
    assert set(cache_states(made).values()) == {WARM}


def test_of_a_larger_one_the_weights_are_cold() -> None:
    made = weft.build(mlp(4, widths=(512, 1024, 4096, 10)), "cpu")
    weights = 4 * (512 * 1024 + 1024 * 4096 + 4096 * 10)
    assert weights <= working_set(made) < 1.1 * weights
    states = cache_states(made)
    assert states.keys() == made.requests.keys()
    for key, state in states.items():
        assert state.evict == evicted_bytes(working_set(made), made.target.caches) > 0
        buffers = [p for p in made.requests[key].program.entry.params if isinstance(p, Buffer)]
        assert {n for n, b in enumerate(buffers) if b.name in ("p1", "p2")} >= set(state.weights) >= {1}


class Asked(Executor):
    """Notes the limits of what it is to run, and runs nothing."""

    def __init__(self) -> None:
        self.limits: list[Limits] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        job = args[0]
        if isinstance(job, RunJob):
            self.limits.append(job.limits)
            future.set_result(Failed("raised", "it is not run"))
        elif isinstance(job, BuildJob):
            future.set_result(build(job))
        return future


def test_a_search_measures_so_unless_it_is_told_otherwise() -> None:
    made = weft.build(mlp(4), "cpu")
    cold, executor = CacheState(MB, (1,)), Asked()
    task = task_of(next(iter(made.requests.values())), made.target, caches=cold)
    for limits, expected in ((None, (MB, (1,))), (Limits(evict=0), (0, ())), (Limits(evict=7), (7, ()))):
        tuner = TaskTuner(task, strategy("random"), executor, executor, limits=limits)
        executor.limits.clear()
        next(iter(tuner.run(lambda: True)))
        assert {(x.evict, x.weights) for x in executor.limits} == {expected}
    (point,) = tuner.space.sample(np.random.default_rng(0), 1)
    slow, fast = str(task.plan), str(tuner.space.open_plan(point))
    known = [Measurement("", "", "", plan, seconds) for plan, seconds in ((slow, 2.0), (fast, 1.0))]
    tuner = TaskTuner(task, strategy("random"), executor, executor, known=known)
    executor.limits.clear()
    tuner.verified(VERIFIED)
    assert [(x.evict, x.weights, x.seconds) for x in executor.limits] == [(MB, (1,), VERIFIED.seconds)]
