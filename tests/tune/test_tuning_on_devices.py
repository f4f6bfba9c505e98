"""Kernels of devices are tuned as those of processors are: checked, timed on the device in turns, and kept if they are faster."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.models import mlp
from tests.runtime.devices.fake_driver import FakeDriver
from tests.support.devices import needs_opencl, needs_webgpu
from tests.tune.measure.programs import NOTHING_WRITTEN, product

import weft
from weft.cost import SharedTile
from weft.driver import hardware
from weft.driver.build import build as build_model
from weft.driver.hardware import hardware_of
from weft.driver.measure.device_profile import kernel_seconds
from weft.driver.measure.random_inputs import random_inputs
from weft.loop import parse_program
from weft.records import Store
from weft.support.errors import InputError
from weft.targets import parse_target
from weft.targets.grid_machines import OPENCL
from weft.tune import tuning_session as sessions
from weft.tune.measure import BuildJob, Built, Failed, Interval, Limits, Measured, RunJob, build, measurer, run
from weft.tune.space import PlanSpace
from weft.tune.tune_model import tune

TARGETS = [pytest.param("opencl -device=any", marks=needs_opencl), pytest.param("webgpu", marks=needs_webgpu)]
TILE = (
    "*: ThreadBlock(threads=64, lanes=1)\n"
    "C: SharedTile(y=8, x=8, rows=2, columns=2, depth=8, unroll=True, lanes=1, across=1, run=1, parts=1, groups=1, copies=1)\n"
)
SHORT = Limits(seconds=0.005, most=4)


def candidate(target: str, plan: str | None = None, text: str | None = None) -> Built:
    made = build(BuildJob(text or product(64), plan, parse_target(target)))
    assert isinstance(made, Built), made
    arrived: Built = pickle.loads(pickle.dumps(made))  # as it comes to a worker
    return arrived


def measured(target: str, tried: Built) -> Measured | Failed:
    return run(RunJob(tried, candidate(target), product(64), parse_target(target), limits=SHORT))


@pytest.mark.parametrize("target", TARGETS)
def test_a_candidate_is_right_and_timed_beside_the_incumbent(target: str) -> None:
    found = measured(target, candidate(target, TILE))
    assert isinstance(found, Measured)
    assert found.error <= 1
    assert all(t > 0 for t in (*found.times, *found.incumbent))


def test_cuda_times_by_its_events(driver: FakeDriver) -> None:
    driver.reset()
    found = measured("cuda", candidate("cuda", TILE))
    assert isinstance(found, Measured)
    assert found.error <= 1
    assert found.ratio.middle == 1.0  # a millisecond passes between any two events of the pretended driver


@needs_opencl
def test_a_kernel_that_computes_something_else_is_none() -> None:
    found = measured("opencl", candidate("opencl", text=NOTHING_WRITTEN))
    assert isinstance(found, Failed)
    assert found.kind == "wrong"


def test_the_space_has_tiles_steps_and_loops_that_are_written_out() -> None:
    space = PlanSpace(parse_program(product(64)), OPENCL)
    tiles = [d for k in space.knobs for d in k.domain if isinstance(d, SharedTile)]
    assert {t.depth for t in tiles} == {0, 8, 16, 32}
    assert {t.unroll for t in tiles} == {False, True}
    assert {(t.y, t.x) for t in tiles} > {(8, 8), (16, 8), (4, 16)}
    points = space.sample(np.random.default_rng(0), 8)
    assert len(space.features(points)) == len(points)


@needs_opencl
def test_the_kernels_of_a_model_take_their_time_on_the_device() -> None:
    made = build_model(mlp(), "opencl", shapes={"batch": 4})
    seconds = kernel_seconds(made, random_inputs(made.package.inputs), 0.0)
    assert set(seconds) == set(made.kernels)
    assert all(s > 0 for s in seconds.values())


def test_a_processor_has_no_launches_to_time() -> None:
    made = build_model(mlp(), "cpu", shapes={"batch": 4})
    with pytest.raises(InputError, match="the model runs on the processor"):
        kernel_seconds(made, random_inputs(made.package.inputs), 0.0)


def test_each_device_has_records_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "can_run", lambda _: True)
    found = []
    for names in (["one"], ["another"], ["one", "another"]):
        monkeypatch.setattr(hardware, "device_names", lambda _, n=names: n)
        found.append(hardware_of(OPENCL).digest)
    assert found[0] == found[2] != found[1]


@needs_opencl
def test_what_is_faster_is_kept_and_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_half_time: Callable[[RunJob], Measured]
) -> None:
    monkeypatch.setattr(sessions, "local_executors", lambda **_: (ThreadPoolExecutor(1), ThreadPoolExecutor(1)))
    monkeypatch.setattr("weft.tune.tune_model.compare_models", lambda *_: Interval(0.4, 0.5, 0.6))
    monkeypatch.setattr(measurer, "run", at_half_time)
    records = tmp_path / "tune.db"
    report = tune(mlp(), records=records, trials=2, tuner="random", target="opencl", shapes={"batch": 4})
    assert report.graph is None
    assert report.winners
    tuned = weft.compile(mlp(), target="opencl", shapes={"batch": 4}, records=str(records))
    assert "kernels" in tuned.package.notes["records"]
    inputs = random_inputs(tuned.inputs)
    expected = weft.compile(mlp(), shapes={"batch": 4})(**inputs)
    np.testing.assert_allclose(tuned(**inputs), expected, rtol=1e-5, atol=1e-5)
    with Store(records) as store:
        assert store.measurements(report.winners[0].task.workload.digest, hardware_of(parse_target("opencl")).digest)


@pytest.fixture
def at_half_time() -> Callable[[RunJob], Measured]:
    """A device on which all candidates but the incumbent itself take half of its time; they are run and checked all the same."""

    def measure(job: RunJob) -> Measured:
        found = run(RunJob(job.candidate, None, job.program, job.target, limits=SHORT))
        assert isinstance(found, Measured)
        assert job.incumbent is not None
        ratio = 0.5 if job.candidate.digest != job.incumbent.digest else 1.0
        return Measured((1e-4 * ratio,), (1e-4,), Interval(ratio, ratio, ratio), is_early=False, error=0.0)

    return measure
