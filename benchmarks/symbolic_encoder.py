"""One artifact of an encoder's layer for any batch and sequence, against models of the very shapes, and ONNX Runtime.

    python -m benchmarks.symbolic_encoder

Each line has, for a shape: the processor time of a call of the open model, its ratio to that of the model compiled for the shape,
and the ratio of ONNX Runtime's with dynamic axes to it (above 1, Weft is faster); and what the first call of that shape takes in
a process that loads the artifact and imports no compiler, beside the second. One thread; the engines are called in turns, and the
fastest round of each counts. Exits with 1 where a shape costs more than 1.10 of its own model, ONNX Runtime is faster, or the
process imported a compiler.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from benchmarks.symbolic_sizes import CASES, WIDTH, encoder, floats, times

import weft

SHAPES: Final = CASES["encoder"][1]
MOST: Final = 1.10
"""The greatest ratio of the open model's time to that of the shape's own."""

FIRST_CALLS: Final = """
import json, sys, time
import numpy as np
import weft
model, found = weft.load(sys.argv[1], threads=1), []
for batch, sequence in json.loads(sys.argv[2]):
    x = np.ones((batch, sequence, int(sys.argv[3])), np.float32)
    for _ in range(2):
        start = time.perf_counter()
        model(x)
        found.append(time.perf_counter() - start)
print(json.dumps([found, sorted({"llvmlite", "weft.driver"} & set(sys.modules))]))
"""


def first_calls(opened: weft.Model) -> tuple[list[float], list[str]]:
    """Returns the seconds of the first and the second call at each shape, and the parts of a compiler that were imported."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "encoder.weft"
        opened.save(saved)
        shapes = json.dumps([[s["b"], s["s"]] for s in SHAPES])
        command = [sys.executable, "-c", FIRST_CALLS, str(saved), shapes, str(WIDTH)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, imported = json.loads(done.stdout)
    return seconds, imported


def main() -> int:
    """Prints a line for each shape; returns the exit code."""
    made = encoder()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    opened = weft.compile(made, threads=1)
    seconds, imported = first_calls(opened)
    print(f"{'shape':>8} {'a call':>12} {'to static':>10} {'ONNX Runtime':>13} {'first call':>13} {'second':>12}")
    held = not imported
    for k, shape in enumerate(SHAPES):
        x = floats(shape["b"], shape["s"], WIDTH)
        static = weft.compile(made, threads=1, shapes=shape)
        np.testing.assert_allclose(opened(x), session.run(None, {"x": x})[0], rtol=1e-3, atol=1e-3)
        calls = [partial(opened.run, [x]), partial(static.run, [x]), partial(session.run, None, {"x": x})]
        ours, own, theirs = times(calls)
        held &= ours <= MOST * own and ours < theirs
        name = "x".join(map(str, shape.values()))
        first, second = (s * 1e6 for s in seconds[2 * k : 2 * k + 2])
        print(
            f"{name:>8} {ours * 1e6:9.1f} us {ours / own:10.2f} {theirs / ours:13.2f} {first:10.0f} us {second:9.0f} us"
        )
    print(f"imported by the process that loads the artifact: {', '.join(imported) or 'no compiler'}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
