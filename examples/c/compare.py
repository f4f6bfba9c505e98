"""Compares what a call of saved models takes from C and from Python: `python examples/c/compare.py ./run model.weft ...`.

Processor time of one thread, in rounds that take turns, each on the same inputs; the outputs must be equal bit for bit, and a
call from C may take `MORE` longer than one from Python, by the medians of the rounds. Ends with 1 where one of these is not so.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import process_time

import weft
from weft.driver.measure.random_inputs import SYMBOLIC_SIZE, random_inputs

ROUNDS = 7
SECONDS = 0.4  # that a round is to take
MORE = 0.03


def compare(program: str, path: str) -> tuple[str, bool]:
    """Returns a line of figures for one model, and whether a call from C takes as long as one from Python."""
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
    return f"{path}: {c:.3f} ms from C, {python:.3f} ms from Python: {c / python:.3f}", c <= (1 + MORE) * python


def main(program: str, *paths: str) -> int:
    """Compares one model after another; returns how the program is to end."""
    slow = []
    for path in paths:
        line, as_fast = compare(program, path)
        print(line, flush=True)
        slow += [] if as_fast else [path]
    if slow:
        print(f"slower from C by more than {MORE:.0%}: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
