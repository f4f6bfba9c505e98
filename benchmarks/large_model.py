"""The memory that compiling a large model takes: its weights are in a file beside it, which is mapped, and are packed once.

    python -m benchmarks.large_model [GIGABYTES]

Makes a multilayer perceptron of so many gigabytes (4 unless given) in a temporary folder, compiles it in a process of its own
with no cache, calls it, and prints the peak of that process's memory beside the weights. Exits with 1 where it is
above 1.3 of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import numpy as np
from onnx import ModelProto, TensorProto, helper, save_model

WIDTH: Final = 8192
LAYER_BYTES: Final = 4 * WIDTH * WIDTH
MOST: Final = 1.3
"""The greatest peak, relative to the weights."""

COMPILE: Final = """
import json, resource, sys, time
import numpy as np
import weft
start = time.perf_counter()
model = weft.compile(sys.argv[1], threads=1, cache=False)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
y = model(np.ones((1, int(sys.argv[2])), np.float32))
print(json.dumps([seconds, peak, bool(np.isfinite(y).all())]))
"""


def write_weights(path: Path, layers: int) -> None:
    """Writes the matrices one after another, each the first one turned a little, so that no two are equal."""
    matrix = np.random.default_rng(0).standard_normal((WIDTH, WIDTH), np.float32) / np.sqrt(np.float32(WIDTH))
    with path.open("wb") as file:
        for k in range(layers):
            file.write(memoryview(np.roll(matrix, k, axis=0)))


def model_of(layers: int, location: str) -> ModelProto:
    """Returns a model whose weights are in the file *location*."""
    weights, nodes = [], []
    for k in range(layers):
        tensor = TensorProto(name=f"w{k}", data_type=TensorProto.FLOAT, dims=(WIDTH, WIDTH))
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", k * LAYER_BYTES), ("length", LAYER_BYTES)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        nodes += [
            helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"y{k}"]),
            helper.make_node("Relu", [f"y{k}"], [f"x{k + 1}"]),
        ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, WIDTH)) for name in ("x0", f"x{layers}")]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main(gigabytes: float) -> int:
    """Measures one model; returns the exit code."""
    layers = max(1, round(gigabytes * 2**30 / LAYER_BYTES))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.onnx"
        write_weights(path.with_name("weights.bin"), layers)
        save_model(model_of(layers, "weights.bin"), path)
        command = [sys.executable, "-c", COMPILE, str(path), str(WIDTH)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak, is_finite = json.loads(done.stdout)
    ratio = peak / (layers * LAYER_BYTES)
    print(f"{layers * LAYER_BYTES / 2**30:.2f} GiB of weights: compiled in {seconds:.1f} s, peak {ratio:.2f} of them")
    return 0 if ratio <= MOST and is_finite else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 4))
