"""What a call of a network on a GPU with CUDA takes beside its kernels: copies, launches, Python.

    .venv/bin/python benchmarks/gpu/call_time.py                        all networks, within 40 s
    .venv/bin/python benchmarks/gpu/call_time.py --only dqn,lstm        those whose names contain one of these

The wall time of a call, from arrays to arrays, is the median of calls one after another; that of its kernels is by the clock
of the device, in a CUDA graph (`device_time`). Beside them: that of a call whose inputs and outputs are in the device's memory
(resident), what it takes beside its kernels (rest), the bytes copied to the device and back, and how often
launches were handed over one by one and as a graph, and how many graphs were captured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from statistics import median
from time import monotonic, perf_counter

from cases import Arrays, Case, all_cases
from device_time import kernel_seconds
from rivals import resident_seconds

import weft

WARM = 4
"""Calls before the first that is timed: in the second, the graph of a call is captured."""

COLUMNS = (
    "network",
    "wall us",
    "resident us",
    "kernels us",
    "rest us",
    "launches",
    "KiB in",
    "KiB out",
    "one by one/graphs/captured",
)


def timed(case: Case, seconds: float) -> list[str]:
    """Returns the cells of a network."""
    model, named = weft.compile(case.model(), target="cuda", precision=case.compiled_for), case.inputs()
    inputs = [named[spec.name] for spec in model.inputs]
    outputs = [model.run(inputs) for _ in range(WARM)][-1]
    wall, counts = _wall(model, inputs, seconds)
    kernels, launches = kernel_seconds(model, inputs, seconds)
    sizes = [sum(a.nbytes for a in arrays) / 1024 for arrays in (inputs, outputs)]
    resident = resident_seconds(model, inputs, seconds)
    cells = [f"{t * 1e6:.1f}" for t in (wall, resident, kernels, resident - kernels)]
    return [case.name, *cells, str(launches), *[f"{s:.0f}" for s in sizes], counts]


def _wall(model: weft.Model, inputs: list[Arrays], seconds: float) -> tuple[float, str]:
    """Returns the median seconds of a call, and how launches were handed over in all of them."""
    assert model.device is not None
    before = model.device.calls.counts()
    times: list[float] = []
    stop = monotonic() + seconds
    while len(times) < 5 or monotonic() < stop:
        begin = perf_counter()
        model.run(inputs)
        times.append(perf_counter() - begin)
    made = [n - before[name] for name, n in model.device.calls.counts().items()]
    return median(times), f"{'/'.join(map(str, made))} in {len(times)} calls"


def rows(wanted: list[str], seconds: float, stop: float) -> Iterator[list[str]]:
    """Yields the cells of each network."""
    for case in all_cases():
        if not case.rounds or not any(w in case.name for w in wanted):
            continue
        if monotonic() > stop:
            yield [case.name, "no time was left"]
            continue
        try:
            yield timed(case, seconds)
        except Exception as error:  # the others are timed all the same
            yield [case.name, f"{type(error).__name__}: {error}".splitlines()[0]]


def main() -> int:
    """Runs the benchmark; returns 1 where a network failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, with commas between them")
    parser.add_argument("--seconds", type=float, default=0.4, help="for which calls, and kernels, are timed")
    parser.add_argument("--most", type=float, default=40.0, help="seconds after which no other network begins")
    options = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS), sep="\n", flush=True)
    failed = False
    for row in rows(options.only.split(","), options.seconds, monotonic() + options.most):
        print("| " + " | ".join(row) + " |", flush=True)
        failed |= len(row) < len(COLUMNS)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
