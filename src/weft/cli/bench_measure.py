"""Timing engines against each other: in turn, in rounds, after their outputs were compared."""

from __future__ import annotations

import platform
import resource
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

from weft.cli.bench_engines import Arrays, Engine

ROUNDS = 5
TOLERANCE = 1e-4
"""The largest difference, relative to the output's largest magnitude, that two engines may show."""


@dataclass
class Timed:
    """An engine while it is measured: seconds of each run and, round by round, medians of wall and processor time."""

    engine: Engine
    compile_s: float
    max_abs_err: float = 0.0
    rel_err: float = 0.0
    peak_rss_mb: float = 0.0
    runs: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def measure(path: Path, engines: Sequence[Engine], inputs: Arrays, threads: int, seconds: float) -> list[Timed]:
    """Loads *path* in every engine, compares their outputs with the first one's, and times them in interleaved rounds.

    Each engine gets about *seconds* in all.
    """
    timed = [_load(path, e, inputs, threads) for e in engines]
    wanted = timed[0].engine.outputs()
    for t in timed[1:]:
        t.max_abs_err, t.rel_err = difference(wanted, t.engine.outputs())
    for _ in range(ROUNDS):
        for t in timed:
            _turn(t, seconds / ROUNDS)
    return timed


def _load(path: Path, engine: Engine, inputs: Arrays, threads: int) -> Timed:
    start = perf_counter()
    engine.load(path, inputs, threads)
    took = perf_counter() - start
    engine.run()
    return Timed(engine, took, peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _turn(t: Timed, seconds: float) -> None:
    """Runs one engine for its share of a round, a short warm-up first."""
    t.engine.run()
    walls: list[float] = []
    start, cpu = perf_counter(), process_time()
    while not walls or perf_counter() - start < seconds:
        before = perf_counter()
        t.engine.run()
        walls.append(perf_counter() - before)
    t.cpu.append((process_time() - cpu) / len(walls))
    t.wall.append(median(walls))
    t.runs += walls


def difference(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> tuple[float, float]:
    """Returns the largest absolute difference, and the largest relative to an output's largest magnitude."""
    absolute = relative = 0.0
    for x, y in zip(a, b, strict=True):
        if x.size == 0:
            continue
        d = float(np.abs(x.astype(np.float64) - y.astype(np.float64)).max())
        absolute = max(absolute, d)
        relative = max(relative, d / max(float(np.abs(y).max()), 1e-30))
    return absolute, relative


def ratio(t: Timed, base: Timed, *, cpu: bool = False) -> float:
    """Returns the median over the rounds of an engine's time relative to *base*'s."""
    pairs = zip(t.cpu, base.cpu, strict=True) if cpu else zip(t.wall, base.wall, strict=True)
    return median([x / y for x, y in pairs])


def row(model: str, t: Timed, base: Timed, threads: int) -> dict[str, object]:
    """Returns the figures of one engine on one model."""
    ms = np.asarray(t.runs) * 1e3
    return {
        "model": model,
        "engine": t.engine.name,
        "threads": threads,
        "median_ms": float(np.median(ms)),
        "p10_ms": float(np.percentile(ms, 10)),
        "p90_ms": float(np.percentile(ms, 90)),
        "ratio_to_weft": ratio(t, base),
        "cpu_ratio_to_weft": ratio(t, base, cpu=True),
        "max_abs_err": t.max_abs_err,
        "rel_err": t.rel_err,
        "compile_s": t.compile_s,
        "peak_rss_mb": t.peak_rss_mb,
    }


def machine() -> dict[str, object]:
    """Returns what the figures were measured on."""
    found = {"machine": platform.machine(), "system": platform.system(), "python": platform.python_version()}
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        found["cpu"] = names[0] if names else ""
    return dict(found)
