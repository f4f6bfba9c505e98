"""What loading a saved model takes, and the memory of a process that runs it, with ONNX Runtime beside.

    ../.venv/bin/python saved_models.py [--models resnet18,mlp] [--loads 9]

Each engine has a process of its own for each model, which loads it several times, runs it three times with one thread, and then
says how much of its memory is resident. The time is the median of the loads, in milliseconds by the clock on the wall. Fails
where the process is larger than ONNX Runtime's, or a model of less than 100 MB takes 30 ms or more to load.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import weft

HERE = Path(__file__).resolve().parent
LIMIT = 30.0

CHILD = """
import json, os, statistics, sys, time
from pathlib import Path
sys.path.insert(0, {folder!r})
from inputs import make_inputs
engine, path, loads, entry = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
if engine == "weft":
    import weft
    load = lambda: weft.load(path, threads=1)
    run = lambda model, feed: model(**feed)
else:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    load = lambda: onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    run = lambda model, feed: model.run(None, feed)
taken = []
for _ in range(loads if engine == "weft" else 1):
    model = None
    begin = time.perf_counter()
    model = load()
    taken.append((time.perf_counter() - begin) * 1e3)
feed = make_inputs(entry)
for _ in range(3):
    run(model, feed)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(statistics.median(taken), int(status["VmRSS"].split()[0]) / 1024)
"""


def measure(engine: str, path: Path, loads: int, entry: dict[str, object]) -> tuple[float, float]:
    """Return the milliseconds of a load, and the resident MiB after three calls, of a process of its own."""
    command = [sys.executable, "-c", CHILD.format(folder=str(HERE)), engine, str(path), str(loads), json.dumps(entry)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    load, resident = map(float, done.stdout.split())
    return load, resident


def main() -> int:
    entries = json.loads((HERE / "onnx" / "manifest.json").read_text())
    networks = [name for name in entries if not name.startswith("op_")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(networks))
    parser.add_argument("--loads", type=int, default=9)
    asked = parser.parse_args()
    failed = False
    for name in asked.models.split(","):
        source = HERE / "onnx" / f"{name}.onnx"
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder) / f"{name}.weft"
            weft.compile(source, threads=1).save(saved)
            load, resident = measure("weft", saved, asked.loads, entries[name])
            small = saved.stat().st_size < 100e6
        their_load, their_resident = measure("onnxruntime", source, asked.loads, entries[name])
        wrong = resident > their_resident or (small and load >= LIMIT)
        failed |= wrong
        print(
            f"{name:<16} load {load:6.1f} ms (onnxruntime {their_load:7.1f}), resident {resident:5.0f} MiB"
            f" (onnxruntime {their_resident:5.0f}){'  TOO MUCH' if wrong else ''}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
