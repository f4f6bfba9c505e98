"""A processor that is in no table is measured once, by whoever compiles for it first; the figures are stable."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.models import BUILDERS
from tests.support.processors import FIXED, unlisted_processor

import weft
from weft.driver.cache.code_cache import Cache
from weft.driver.calibrate import KIND, STAGE, calibrate, know_host, target_here
from weft.driver.measure.measure_core import FACTS, coarse, confirmed, half, measure_core, whole
from weft.targets import KnownCore, can_run, cores, cpuinfo, host, machine_name, parse_target

pytestmark = pytest.mark.skipif(machine_name() != "x86_64", reason="only x86-64 processors are measured")


@pytest.fixture
def unlisted() -> Iterator[None]:
    with unlisted_processor(measured=False):
        yield


class Measured:
    """Stands for measuring: counts how often it is done."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, before: KnownCore | None, step: Any) -> KnownCore:
        self.times += 1
        if step is not None:
            step(0, 1)
        return replace(FIXED, tune="znver4", l3_speed=12.0)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    found = Measured()
    monkeypatch.setattr("weft.driver.measure.measure_core.measure_core", found)
    return found


def test_what_is_measured_is_in_range(unlisted: None) -> None:
    start = time.process_time()
    found = measure_core()
    assert time.process_time() - start < 5
    core = found.core(host().isa.vector_bits, fma=host().isa.fma)
    assert core.fma_per_cycle in (1, 2, 4)
    assert 2 <= core.fma_latency <= 12
    assert 0.5 <= core.loads_per_cycle <= 4
    assert 1 <= core.forwarding_latency <= 20
    assert 128 <= core.fork_cycles <= 8192
    assert core.wake_cycles == 4 * core.fork_cycles
    assert 1 <= found.memory_speed <= 2 * found.l2_speed
    assert found.tune == cores.unmeasured_core(cpuinfo()).tune


@pytest.mark.timed
def test_measuring_again_finds_the_same(unlisted: None) -> None:
    """Each time with what was found before; a disturbance may change one fact, which the next measurement may change back.

    What a core shares with its neighbours is as fast as they leave it, which may change for minutes.
    """
    runs = [measure_core()]
    for _ in range(3):
        runs.append(measure_core(runs[-1]))
    own = set(FACTS) - {"l3_speed", "l3_share", "memory_speed"}
    changed = {name for a, b in pairwise(runs[1:]) for name in own if getattr(a, name) != getattr(b, name)}
    assert len(changed) <= 1, changed


@pytest.mark.parametrize("second", [12.0, 24.0])
def test_a_fact_changes_if_a_second_measurement_says_so(second: float) -> None:
    before = replace(FIXED, l2_speed=48.0, l3_speed=12.0)
    facts = {"l2_speed": 48.0, "l3_speed": 24.0}
    found = confirmed(before, facts, lambda: SimpleNamespace(l3_speed=second))
    assert found == {"l2_speed": 48.0, "l3_speed": second}


def test_facts_that_are_as_before_are_measured_once() -> None:
    facts = {"l2_speed": FIXED.l2_speed, "l3_speed": FIXED.l3_speed}
    assert confirmed(FIXED, facts, lambda: pytest.fail("measured again")) == facts


def test_a_processor_is_measured_once(unlisted: None, measured: Measured, tmp_path: Path) -> None:
    before, cache = host(), Cache(tmp_path / "weft-cache")
    stages: list[str] = []
    know_host(lambda stage, done, total: stages.append(stage), cache)
    know_host(None, cache)
    assert (measured.times, stages) == (1, [STAGE])
    assert host().caches.l3_speed == 12.0 != before.caches.l3_speed
    cores.MEASURED.clear()
    know_host(None, cache)
    assert measured.times == 1, "the cache has it"
    assert host().caches.l3_speed == 12.0


def test_without_a_cache_it_is_measured_in_each_process(unlisted: None, measured: Measured) -> None:
    know_host()
    know_host()
    assert measured.times == 1


def test_a_processor_that_a_table_has_is_not_measured(measured: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.driver.calibrate.listed_core", lambda _: FIXED)
    know_host()
    assert measured.times == 0


def test_nothing_is_measured_for_another_machine(unlisted: None, measured: Measured) -> None:
    assert target_here("aarch64") == parse_target("aarch64")
    foreign = [t for t in ("cpu -mattr=avx512", "cpu -mattr=avx2") if not can_run(parse_target(t))]
    for text in foreign:
        target_here(text)
    assert measured.times == 0


def test_compiling_measures_first(unlisted: None, measured: Measured) -> None:
    stages: list[str] = []
    proto = next(iter(BUILDERS.values()))()
    weft.compile(proto, cache=False, progress=lambda stage, done, total: stages.append(stage))
    assert stages[0] == STAGE
    assert host().caches.l3_speed == 12.0


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"[]",
        b"{}",
        b'{"tune": "znver4"}',
        json.dumps({**asdict(FIXED), "l2_speed": -1.0}).encode(),
        json.dumps({**asdict(FIXED), "fma_latency": 4.5}).encode(),
        json.dumps({**asdict(FIXED), "tune": 3}).encode(),
    ],
)
def test_what_is_no_row_is_measured_again(unlisted: None, measured: Measured, tmp_path: Path, kept: bytes) -> None:
    cache = Cache(tmp_path / "weft-cache")
    know_host(None, cache)
    (entry,) = [e for e in cache.entries() if e.kind == KIND]
    cache.put(KIND, entry.key, kept)
    cores.MEASURED.clear()
    know_host(None, cache)
    assert measured.times == 2


def test_processes_measure_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    process = """
import time, weft
from weft.driver.cache.code_cache import default_cache
from weft.driver import calibrate
from weft.targets import cores
calibrate.listed_core = lambda _: None
def measure(before, step):
    time.sleep(0.5)
    print("measured", flush=True)
    return cores.KnownCore("znver4", "a test, 2026")
calibrate.resolve = lambda _: measure
calibrate.know_host(None, default_cache())
"""
    started = [subprocess.Popen([sys.executable, "-c", process], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    told = [p.communicate(timeout=60)[0] for p in started]
    assert [p.returncode for p in started] == [0, 0, 0]
    assert "".join(told).count("measured") == 1


def test_calibrating_again_measures_again(unlisted: None, measured: Measured, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "weft-cache")
    assert calibrate(None, cache) == calibrate(None, cache)
    assert measured.times == 2
    assert host().caches.l3_speed == 12.0


def test_figures_are_rounded_to_coarse_steps() -> None:
    assert [coarse(x) for x in (5.1, 6.9, 7.1, 10.0, 24.9, 45.0, 60.2)] == [6.0, 6.0, 8.0, 12.0, 24.0, 48.0, 64.0]
    assert [coarse(x, 24.0) for x in (17.0, 24.0, 34.0)] == [24.0, 24.0, 24.0]
    assert [coarse(x, 24.0) for x in (16.0, 36.0)] == [16.0, 32.0]
    assert [whole(x) for x in (0.2, 1.4, 1.6, 4.1)] == [1, 1, 2, 4]
    assert [whole(x, 2) for x in (1.3, 2.7, 3.1)] == [2, 2, 3]
    assert [half(x) for x in (0.1, 0.95, 1.08, 1.24, 1.34, 1.8, 2.08)] == [0.5, 1.0, 1.0, 1.5, 1.5, 2.0, 2.0]
    assert [half(x, 1.5) for x in (0.7, 0.8, 1.7, 1.8)] == [1.0, 1.5, 1.5, 2.0]
