"""Compares what a call of saved models takes from C and from Python: `python examples/c/compare.py ./run model.weft ...`.

Processor time of one thread, in rounds that take turns, each on the same inputs; the outputs must be equal bit for bit.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import process_time

import weft
from weft.cli.models import SYMBOLIC_SIZE, random_inputs

ROUNDS = 7
SECONDS = 0.4  # that a round is to take


def compare(program: str, path: str) -> str:
    """Returns a line of figures for one model."""
    model = weft.load(path, threads=1)
    named = random_inputs(model.inputs)
    inputs = [named[s.name] for s in model.inputs]
    given = b"".join(x.tobytes() for x in inputs)
    model.run(inputs)
    start = process_time()
    outputs = model.run(inputs)
    times = max(3, int(SECONDS / max(process_time() - start, 1e-5)))
    from_c, from_python = [], []
    for _ in range(ROUNDS):
        command = [program, path, str(SYMBOLIC_SIZE), str(times)]
        done = subprocess.run(command, input=given, capture_output=True, check=True)
        from_c.append(float(done.stderr.split()[0]))
        start = process_time()
        for _ in range(times):
            model.run(inputs)
        from_python.append((process_time() - start) / times * 1e3)
    if done.stdout != b"".join(y.tobytes() for y in outputs):
        raise SystemExit(f"{path}: the outputs differ")
    c, python = median(from_c), median(from_python)
    return f"{path}: {c:.3f} ms from C, {python:.3f} ms from Python: {c / python:.3f}"


if __name__ == "__main__":
    for path in sys.argv[2:]:
        print(compare(sys.argv[1], path), flush=True)
