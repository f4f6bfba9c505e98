"""Timing engines against each other: in turn, in rounds, after their outputs were compared."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from weft.cli.bench.alone import PREFIX
from weft.cli.bench.engines import PLAIN, Arrays, Compiling, Engine, Weft, engine
from weft.cli.console import human_bytes
from weft.driver.measure.random_inputs import random_inputs
from weft.driver.progress import Progress
from weft.support.errors import RuntimeFailure

ROUNDS = 5
TOLERANCE = 1e-4
"""The largest difference, relative to the output's largest magnitude, that two engines may show."""


DIFFERS = (
    "try --precision strict or -O 0 with `weft run`; if they still differ, it is a bug in one of the engines: report it"
)
"""The hint of the error where engines disagree."""


@dataclass
class Timed:
    """An engine while it is measured: seconds of each run and, round by round, medians of wall and processor time.

    `compile_s` and `peak_rss_mb` (10^6 bytes) are those of a process that loads the model in this engine and runs it once.
    """

    engine: Engine
    compile_s: float
    peak_rss_mb: float
    max_abs_err: float = 0.0
    rel_err: float = 0.0
    runs: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def measure(
    path: Path,
    names: Sequence[str],
    threads: int,
    seconds: float,
    sizes: Mapping[str, int] | None = None,
    progress: Progress = lambda stage, done, total: None,
    how: Compiling = PLAIN,
) -> list[Timed]:
    """Runs *path* in Weft and the other engines called *names*, each for about *seconds* in all, in interleaved rounds.

    All get the same seeded inputs; their outputs are compared with Weft's first. *sizes* gives sizes to symbolic dimensions, and
    Weft compiles as *how* says.
    """
    ours = Weft(progress, how=how)
    ours.load(path, threads)
    inputs = random_inputs(ours.model.inputs, sizes=sizes)
    timed = []
    for n, name in enumerate(["weft", *names]):
        progress("load", n, len(names) + 1)
        timed.append(_load(ours if n == 0 else engine(name), path, inputs, threads))
    wanted = timed[0].engine.outputs()
    for t in timed[1:]:
        t.max_abs_err, t.rel_err = difference(wanted, t.engine.outputs())
    take_turns(timed, seconds, progress)
    return timed


def take_turns(timed: Sequence[Timed], seconds: float, progress: Progress = lambda stage, done, total: None) -> None:
    """Runs each engine for about *seconds* in all, in interleaved rounds."""
    for n in range(ROUNDS):
        progress("run", n, ROUNDS)
        for t in timed if n % 2 == 0 else reversed(timed):
            _turn(t, seconds / ROUNDS)


def _load(made: Engine, path: Path, inputs: Arrays, threads: int) -> Timed:
    """Loads the model, and once more in a process of its own, whose memory is then the engine's alone."""
    if not isinstance(made, Weft):
        made.load(path, threads)
    made.bind(inputs)
    how = made.how if isinstance(made, Weft) else PLAIN
    return Timed(made, *_alone(made.name, path, inputs, threads, how))


def _alone(name: str, path: Path, inputs: Arrays, threads: int, how: Compiling) -> tuple[float, float]:
    """Returns the seconds to load the model in a new process, and the peak of its memory in megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "inputs.npz"
        named: dict[str, Any] = {PREFIX + n: a for n, a in inputs.items()}
        np.savez(file, **named)
        asked = [name, str(path), str(threads), str(file), how.target]
        if how.records is not None:
            asked.append(str(how.records))
        command = [sys.executable, "-m", "weft.cli.bench.alone", *asked]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeFailure(
            f"{name} failed in a process of its own: {done.stderr.strip()[-500:]}", hint="run it alone"
        )
    answer = json.loads(done.stdout)
    return float(answer["compile_s"]), float(answer["peak_rss_mb"])


def _turn(t: Timed, seconds: float) -> None:
    """Runs one engine for its share of a round, after one run to warm up."""
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
    """Returns the largest absolute difference, and the largest relative to an output's largest magnitude.

    Both are infinite where shapes differ, or one has a NaN that the other has not.
    """
    absolute = relative = 0.0
    for x, y in zip([v.astype(np.float64) for v in a], [v.astype(np.float64) for v in b], strict=True):
        if x.shape != y.shape or not np.array_equal(np.isnan(x), np.isnan(y)):
            return float("inf"), float("inf")
        worst = float(np.nanmax(np.abs(x - y), initial=0.0))
        absolute = max(absolute, worst)
        relative = max(relative, worst / max(float(np.nanmax(np.abs(y), initial=0.0)), 1e-30))
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


def memory_text(megabytes: object) -> str:
    """Returns a peak of memory for people, of 10^6 bytes as `row` gives it."""
    return human_bytes(round(float(str(megabytes)) * 1e6))


def machine() -> dict[str, object]:
    """Returns the facts of the machine that the figures were measured on."""
    found = {"machine": platform.machine(), "system": platform.system(), "python": platform.python_version()}
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        found["cpu"] = names[0] if names else ""
    return dict(found)
