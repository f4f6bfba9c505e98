"""How near large matrix products come to the multiply-adds that a core can do.

    ../.venv/bin/python fma_share.py [--models op_gemm512,...] [--rounds 20] [--least 0.94] [--least-dynamic 0.90]

The peak is that of peak.c, a program of its own, run before the models and after them; its best counts. (It needs AVX-512: on
other machines Weft's own loop, which agrees with it where both run, takes its place, and the first line says so.) A model's rate
is the median of rounds, by processor time; --least bounds its share of the peak.

In each round as long a loop of nothing but multiply-adds follows the model. The rate of the one over that of the other in the
same moments is shown, too: where it is much higher than the share, something else slowed the core down for both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from check_peak import build_theirs, run_theirs
from inputs import make_inputs

import weft
from weft.driver.build import Compilation
from weft.driver.measure.peak import Peak
from weft.driver.measure.roofline import work_of
from weft.targets import host

HERE = Path(__file__).resolve().parent
SLICE = 0.03
"""Seconds of processor time that either half of a round takes at least."""

STEPS = 20_000
"""Steps of the loop between two looks at the clock: some 100 microseconds."""


def operations(made: Compilation) -> float:
    """Return the operations of a call, two for each multiply-add."""
    return sum(work_of(group, made.target).operations for group in made.fused.groups)


def model_rate(model: weft.Model, feed: Mapping[str, object], each: float) -> tuple[float, float]:
    """Return the model's rate in 10**9 operations per second, and the seconds that it was measured for."""
    begin, calls, taken = time.thread_time(), 0, 0.0
    while taken < SLICE:
        model(**feed)
        calls += 1
        taken = time.thread_time() - begin
    return calls * each / taken / 1e9, taken


def peak_rate(peak: Peak, seconds: float) -> float:
    """Return the mean rate of multiply-adds over so many *seconds*."""
    rates, begin = [], time.thread_time()
    while time.thread_time() - begin < seconds:
        rates.append(peak.rate(repeats=1, steps=STEPS))
    return statistics.harmonic_mean(rates)


def independent_peak() -> float:
    """Return peak.c's best rate of float32 multiply-adds of one core, or that of Weft's loop where peak.c can't run."""
    if host().isa.vector_bits < 512:
        return Peak().rate(repeats=150)
    with tempfile.TemporaryDirectory() as directory:
        found = run_theirs(build_theirs(Path(directory)))
    return max(one for name, (one, _) in found.items() if name.startswith("fp32 "))


def measure(name: str, rounds: int, loop: Peak) -> tuple[float, float]:
    """Return the median rate of the model *name*, and its share of what *loop* reaches in the same moments, in the best round."""
    entries = json.loads((HERE / "onnx" / "manifest.json").read_text())
    path, feed = HERE / "onnx" / f"{name}.onnx", make_inputs(entries[name])
    each, model = operations(weft.build(path)), weft.compile(path, threads=1)
    model_rate(model, feed, each)
    found = []
    for _ in range(rounds):
        rate, taken = model_rate(model, feed, each)
        found.append((rate, peak_rate(loop, taken)))
    return statistics.median(rate for rate, _ in found), max(rate / beside for rate, beside in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = (512, 1024, 2048)
    parser.add_argument("--models", default=",".join(f"op_gemm{kind}{n}" for kind in ("", "dyn") for n in sizes))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--least", type=float, default=0.94)
    parser.add_argument("--least-dynamic", type=float, default=0.90)
    asked = parser.parse_args()
    before, loop = independent_peak(), Peak()
    found = {name: measure(name, asked.rounds, loop) for name in asked.models.split(",")}
    peak = max(before, independent_peak())
    print(f"{'peak.c' if host().isa.vector_bits >= 512 else 'the loop of Weft'} reaches {peak:.1f} GFLOP/s")
    failed = False
    for name, (rate, beside) in found.items():
        failed |= rate / peak < (asked.least_dynamic if "dyn" in name else asked.least)
        print(
            f"{name:<16} {rate:6.1f} GFLOP/s: {rate / peak:.0%}, of the loop beside it in the best round {beside:.0%}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
