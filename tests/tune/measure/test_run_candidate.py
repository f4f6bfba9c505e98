"""Candidates in this process: built from texts, checked, and timed beside the incumbent."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from tests.tune.measure.programs import (
    BESIDE,
    INPUT_CHANGED,
    NOTHING_WRITTEN,
    job,
    kernel,
    product,
    random_plans,
    rules_choice,
    run_job,
)

from weft.native import _rt
from weft.schedule.trace import Trace
from weft.targets import host
from weft.tune.measure import BuildJob, Built, Failed, Limits, Measured, RunJob, build, run
from weft.tune.measure.timing import Timer, clock_cost, reading


def test_any_plan_is_built_run_and_right() -> None:
    for plan in islice(random_plans(), 6):
        made = build(job(plan=plan))
        assert isinstance(made, Built)
        assert made.plan == plan
        assert [name for name, _ in made.stages] == ["parse", "schedule", "lower", "LLVM", "link"]
        assert Trace.from_json(made.trace).to_json() == made.trace
        found = run(run_job(made, rules_choice()))
        assert isinstance(found, Measured)
        assert found.error <= 1
        assert [name for name, _ in found.stages] == ["inputs", "check", "time"]


def test_the_rules_choice_is_a_plan_that_builds_the_same_again() -> None:
    again = build(job(plan=rules_choice().plan))
    assert isinstance(again, Built)
    assert again.code == rules_choice().code


def test_jobs_and_results_are_plain_values() -> None:
    made = rules_choice()
    measured = run(run_job(made))
    for value in (job(), made, run_job(made), measured, Failed("crash", "it died")):
        assert pickle.loads(pickle.dumps(value)) == value


def test_flags_reach_the_kernel() -> None:
    serial = build(replace(job(), parallel=False))
    assert isinstance(serial, Built)
    aliased = build(replace(job(), may_alias=True, lift=True))
    assert isinstance(aliased, Built)
    assert isinstance(run(run_job(aliased, serial)), Measured)


def test_a_plan_of_another_program_is_refused() -> None:
    other = "*: VectorLength(bits=512)\nD: Rule(name='tiled')\n"
    for plan in (other, "no plan\n"):
        found = build(job(plan=plan))
        assert isinstance(found, Failed)
        assert found.kind == "plan"


def test_text_that_is_no_program_is_refused() -> None:
    found = build(replace(job(), program="def f(:"))
    assert isinstance(found, Failed)
    assert found.kind == "plan"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NOTHING_WRITTEN, "the largest error is inf times what rounding explains"),
        (INPUT_CHANGED, "it writes to its inputs"),
        (BESIDE, "it writes outside of its buffers"),
        (product().replace("A[vi, vk] * B[vk, vj]", "A[vi, vk] * B[vj, vk]"), "times what rounding explains"),
        (product().replace("range(0, 64):\n            for k", "range(0, 63):\n            for k"), "error is inf"),
    ],
)
def test_a_kernel_that_computes_something_else_is_not_timed(text: str, message: str) -> None:
    found = run(run_job(kernel(text), rules_choice()))
    assert isinstance(found, Failed)
    assert found.kind == "wrong"
    assert message in found.message
    assert "time" not in dict(found.stages)


def test_a_wrong_incumbent_is_told_apart() -> None:
    found = run(run_job(rules_choice(), kernel(NOTHING_WRITTEN)))
    assert isinstance(found, Failed)
    assert found.message.startswith("the incumbent: ")


def test_a_status_is_a_failure() -> None:
    text = product().replace("    for i in", '    check(C[0, 0] > C[0, 0], "never")\n    for i in', 1)
    found = run(run_job(kernel(text)))
    assert isinstance(found, Failed)
    assert found.kind == "raised"


def test_a_kernel_that_is_clearly_worse_is_measured_a_few_times() -> None:
    slow = kernel(product(128))
    fast = rules_choice(128)
    found = run(run_job(slow, fast, 128))
    assert isinstance(found, Measured)
    assert found.is_early
    assert len(found.times) <= 3
    assert found.seconds > 2 * np.median(found.incumbent)


def test_a_kernel_is_as_fast_as_itself() -> None:
    found = run(replace(run_job(rules_choice(), rules_choice()), limits=Limits(seconds=0.05, width=0.001)))
    assert isinstance(found, Measured)
    assert not found.is_early
    assert found.error == 0
    assert 0.8 < found.ratio.middle < 1.25
    assert len(found.times) == len(found.incumbent) >= 6


@pytest.mark.parametrize("threads", [1, 2])
def test_caches_are_evicted_on_request(threads: int) -> None:
    limits = Limits(evict=1 << 20, seconds=0.01, worse=float("inf"))  # a disturbed turn must not end it early
    found = run(replace(run_job(rules_choice(), rules_choice()), limits=limits, threads=threads))
    assert isinstance(found, Measured)
    assert len(found.times) >= limits.fewest


def test_what_is_no_weight_is_read_again_after_that() -> None:
    buffers = [np.zeros(1000, np.uint8), np.zeros(4096, np.uint8), np.zeros(64, np.uint8)]
    call = (reading(host(), buffers[0])[0], 0, buffers)
    for weights, expected in [((), [1 << 20, 1000, 4096, 64]), ((1,), [1 << 20, 1000, 64]), ((0, 1, 2), [1 << 20])]:
        timer = Timer([], 1, Limits(evict=1 << 20, weights=weights), host())
        assert [before[2][0].nbytes for before in timer.before(call)] == expected
    assert Timer([], 1, Limits(evict=0, weights=(1,)), host()).before(call) == []
    assert Timer([], 1, Limits(), host()).before(call) == []


@pytest.mark.timed
def test_weights_are_cold_and_activations_warm() -> None:
    """Half of the second-level cache is read from there, or from memory: where eviction evicts nothing, both take the same.

    They are timed in turns, each beside the other: what disturbs one turn does not decide.

    More is evicted than most third levels hold, since that of Zen 3 is nearly as fast as its second.
    """
    l2 = host().caches.l2
    rows = l2 // 2 // 1024
    text = f"def total(x: f32[{rows}, 256], y: f32[256]):\n    for i in range(0, {rows}):\n"
    made = kernel(text + "        for j in vectorized(0, 256):\n            y[j] = y[j] + x[i, j]\n")
    call = (_rt.Image(made.code), made.offset, [np.ones(l2 // 2, np.uint8), np.zeros(1024, np.uint8)])
    cold, warm = (Timer([], 1, Limits(evict=64 << 20, weights=weights), host()) for weights in ((0,), ()))
    assert np.median([np.median(cold.times([call], 8)) / np.median(warm.times([call], 8)) for _ in range(5)]) > 1.3


def test_without_an_incumbent_times_are_compared_with_their_median() -> None:
    found = run(run_job(rules_choice()))
    assert isinstance(found, Measured)
    assert found.incumbent == ()
    assert found.ratio.middle == pytest.approx(1.0, abs=0.01)


def test_reading_a_clock_takes_time() -> None:
    assert 0 < clock_cost(processor_time=True) < 1e5


def test_symbolic_sizes_are_what_the_cost_model_takes_them_for() -> None:
    text = "def scale(A: f32[n], C: f32[n], n: i64):\n    for i in range(0, n):\n        C[i] = A[i] * 2.0\n"
    made = kernel(text)
    found = run(RunJob(made, None, text, job().target))
    assert isinstance(found, Measured), found


def test_a_job_of_an_empty_plan_is_refused() -> None:
    found = build(BuildJob(product(), "", job().target))
    assert isinstance(found, Failed)
    assert "ends before that" in found.message
