"""How near a model that is read once from memory, and little else, comes to the speed of memory.

    ../.venv/bin/python stream_share.py [--models gpt2_decode256,lstm_lm] [--rounds 15] [--least 0.88]

One step of decoding multiplies every weight by one row, so that its time is that of reading the weights and what is kept of the
tokens before. In each round one core runs the model, then reads a buffer of as many bytes with nothing but loads; the share is
the rate of the one over that of the other, by processor time, and the median of the rounds is compared with --least. Rounds
bear a machine that others use: both halves of a round wait for the same memory. Either half is the better of some runs over as
many bytes, for what the other half left in the caches is not what it would find there alone: a cache that takes what another one
drops needs several calls to hold a model.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from inputs import make_inputs

import weft
from weft.driver.build import Compilation
from weft.driver.measure.bandwidth import BYTES_A_SAMPLE, ReadBandwidth
from weft.driver.measure.roofline import work_of
from weft.graph import Constant

HERE = Path(__file__).resolve().parent
REPEATS = 8
"""Runs of either half of a round."""


def bytes_read(made: Compilation) -> int:
    """Return the bytes of constants and inputs that a call reads; of a table of rows, the rows that are looked up."""
    read: dict[object, float] = {}
    for group in made.fused.groups:
        moved = work_of(group, made.target).moved
        for n, v in enumerate(group.inputs):
            root = made.fused.root(v)
            if isinstance(root, Constant) or root in made.fused.graph.inputs:
                read[root] = max(read.get(root, 0.0), moved.get(f"p{n}", 0.0))
    return int(sum(read.values()))


def seconds(model: weft.Model, feed: dict[str, object], calls: int) -> float:
    """Return the processor time of a call: the mean of so many, in the best run."""
    taken = []
    for _ in range(REPEATS):
        begin = time.thread_time()
        for _ in range(calls):
            model(**feed)
        taken.append((time.thread_time() - begin) / calls)
    return min(taken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="gpt2_decode256,lstm_lm")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--least", type=float, default=0.88)
    asked = parser.parse_args()
    entries = json.loads((HERE / "onnx" / "manifest.json").read_text())
    reading, failed = ReadBandwidth(), False
    for name in asked.models.split(","):
        path, feed = HERE / "onnx" / f"{name}.onnx", make_inputs(entries[name])
        nbytes = bytes_read(weft.build(path))
        model = weft.compile(path, threads=1)
        calls, rounds = max(1, BYTES_A_SAMPLE // nbytes), []
        for _ in range(asked.rounds):
            rate = nbytes / seconds(model, feed, calls) / 1e9
            rounds.append((rate, reading.rate(nbytes, repeats=REPEATS)))
        ours, theirs = (statistics.median(r) for r in zip(*rounds, strict=True))
        share = statistics.median(a / b for a, b in rounds)
        failed |= share < asked.least
        print(f"{name:<16} {nbytes / 1e6:6.1f} MB a call, {ours:5.1f} GB/s of {theirs:5.1f}: {share:.0%}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
