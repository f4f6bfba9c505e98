"""One engine on one model in a process of its own: how long it takes to be ready, and how much memory it needs.

    python -m weft.cli.bench.alone ENGINE MODEL THREADS INPUTS.npz [TARGET [RECORDS]]

The answer is a line of JSON on the standard output.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from weft.cli.bench.engines import Compiling, engine

PREFIX = "input "
"""Comes before an input's name in the file of inputs, where some plain names would mean something else."""


def measure_alone(
    name: str, model: str, threads: str, inputs: str, target: str = "cpu", records: str = ""
) -> dict[str, float]:
    """Loads a model and runs it once; returns the seconds to load, and the process's peak of memory in megabytes (10^6 bytes)."""
    made = engine(name, Compiling(target, Path(records) if records else None))
    start = perf_counter()
    made.load(Path(model), int(threads))
    seconds = perf_counter() - start
    with np.load(inputs) as arrays:
        made.bind({name.removeprefix(PREFIX): arrays[name] for name in arrays})
    made.run()
    return {"compile_s": seconds, "peak_rss_mb": peak_bytes() / 1e6}


def peak_bytes() -> int:
    """Returns the most bytes of memory that this process has had; `getrusage` would count its parent's at the fork too."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    print(json.dumps(measure_alone(*sys.argv[1:])))
