"""How near large matrix products come to the multiply-adds that a core can do.

    ../.venv/bin/python fma_share.py [--models op_gemm512,...] [--rounds 20] [--least 0.94] [--least-dynamic 0.90]

In each round one core runs the model, then as long a loop of nothing but multiply-adds; the share is the rate of the one
over that of the other, by processor time. On a core of one's own the median of the rounds is the share of the peak. Where
another thread runs on the same core (a virtual machine may not tell), products lose more by it than the loop does, which
needs no memory: so the best of the rounds is shown, too. --least bounds the median.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from inputs import make_inputs

import weft
from weft.driver.build import Compilation
from weft.driver.peak import Peak
from weft.driver.roofline import work_of

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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = (512, 1024, 2048)
    parser.add_argument("--models", default=",".join(f"op_gemm{kind}{n}" for kind in ("", "dyn") for n in sizes))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--least", type=float, default=0.94)
    parser.add_argument("--least-dynamic", type=float, default=0.90)
    asked = parser.parse_args()
    entries = json.loads((HERE / "onnx" / "manifest.json").read_text())
    peak, failed = Peak(), False
    for name in asked.models.split(","):
        path, feed = HERE / "onnx" / f"{name}.onnx", make_inputs(entries[name])
        each, model = operations(weft.build(path)), weft.compile(path, threads=1)
        model_rate(model, feed, each)
        rounds = []
        for _ in range(asked.rounds):
            rate, taken = model_rate(model, feed, each)
            rounds.append((rate, peak_rate(peak, taken)))
        ours, theirs = (statistics.median(r) for r in zip(*rounds, strict=True))
        shares = [a / b for a, b in rounds]
        share = statistics.median(shares)
        failed |= share < (asked.least_dynamic if "dyn" in name else asked.least)
        print(
            f"{name:<16} {ours:6.1f} GFLOP/s of {theirs:6.1f}: {share:.0%}, in the best round {max(shares):.0%}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
