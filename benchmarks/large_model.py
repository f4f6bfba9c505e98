"""The memory that compiling a large model takes: its weights are in a file beside it, which is mapped, and are packed once.

    python -m benchmarks.large_model [GIGABYTES]

Makes a multilayer perceptron of so many gigabytes (4 unless given) in a temporary folder. It is compiled with no cache: once in
memory, and once to a file by a process that may have no more memory of its own than a tenth of the weights (`RLIMIT_DATA`;
pages of files, which the system can let go of, are not counted), which then loads that file. Either calls it. Prints the peak of
each process beside the weights, and exits with 1 where one is above 1.3 of them.
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

LEAST: Final = 192 << 20
"""Bytes of its own that any process needs to compile."""

IN_MEMORY: Final = """
def compiled(path):
    return weft.compile(path, threads=1, cache=False)
"""

TO_FILE: Final = """
import resource
from weft.driver.compile import compile_package
from weft.driver.options import CompileOptions
from weft.runtime.artifact import write_artifact
from weft.targets import host

def compiled(path):
    resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[3]), int(sys.argv[3])))
    write_artifact(compile_package(path, host(), CompileOptions(), to_file=True), path + ".weft")
    return weft.load(path + ".weft", threads=1)
"""

MEASURE: Final = """
start = time.perf_counter()
model = compiled(sys.argv[1])
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


def measure(script: str, path: Path, weights: int) -> bool:
    """Measures one way to compile the model; tells whether its peak is as it should be."""
    code = f"import json, resource, sys, time\nimport numpy as np\nimport weft\n{script}{MEASURE}"
    command = [sys.executable, "-c", code, str(path), str(WIDTH), str(max(weights // 10, LEAST))]
    seconds, peak, is_finite = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print(f"compiled in {seconds:.1f} s, peak {peak / weights:.2f} of the weights")
    return bool(peak <= MOST * weights and is_finite)


def main(gigabytes: float) -> int:
    """Measures one model, compiled in memory and to a file; returns the exit code."""
    layers = max(1, round(gigabytes * 2**30 / LAYER_BYTES))
    weights = layers * LAYER_BYTES
    print(f"{weights / 2**30:.2f} GiB of weights, in {layers} layers")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.onnx"
        write_weights(path.with_name("weights.bin"), layers)
        save_model(model_of(layers, "weights.bin"), path)
        fit = [measure(script, path, weights) for script in (IN_MEMORY, TO_FILE)]
    return 0 if all(fit) else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 4))
