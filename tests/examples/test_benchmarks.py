"""The benchmark's processes and tables, run as a user would but on a tiny model."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from tests.models import mlp

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def bench(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(BENCHMARKS / "bench.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write_models(directory: Path) -> dict[str, Any]:
    onnx.save(mlp(batch=4), directory / "mlp.onnx")
    inputs = [{"name": "x", "shape": [4, 24], "dtype": "float32"}]
    entry = {"name": "mlp", "inputs": inputs, "outputs": ["y"], "flops": 1000}
    (directory / "manifest.json").write_text(json.dumps({"mlp": entry}))
    return entry


def test_worker_loads_and_times(tmp_path: Path) -> None:
    entry = write_models(tmp_path)
    load = {"cmd": "load", "path": str(tmp_path / "mlp.onnx"), "entry": entry, "out": str(tmp_path / "out.npz")}
    limits = {"cmd": "time", "warm": 0.01, "min_time": 0.01, "min_iters": 3, "max_time": 1}
    cpu = min(os.sched_getaffinity(0))
    answers = subprocess.run(
        [sys.executable, BENCHMARKS / "worker.py", "onnxruntime", "1", str(cpu)],
        input="\n".join(map(json.dumps, [load, limits, {**load, "path": "nowhere.onnx"}])),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    started, loaded, timed, failed = map(json.loads, answers)
    assert started["version"]
    assert loaded["compile_s"] > 0
    assert len(timed["s"]) >= 3
    assert min(timed["s"]) > 0
    assert "nowhere.onnx" in failed["error"]
    with np.load(tmp_path / "out.npz") as outputs:
        assert outputs["0"].shape == (4, 10)


def test_tables_of_stored_results(tmp_path: Path) -> None:
    fast = {"ms": 1.0, "ok": True, "best_ratio": 0.5, "best_cpu_ratio": 0.25}
    wrong = {"ms": 4.0, "ok": False, "best_ratio": 2.0, "best_cpu_ratio": 4.0}
    engines = {"weft": fast, "openvino": wrong, "tvm": {"error": "process ended"}}
    stored = {"results": [{"model": "mlp", "threads": 1, "flops": 2_000_000_000, "engines": engines}]}
    (tmp_path / "bench.json").write_text(json.dumps(stored))
    printed = bench("--show", tmp_path / "bench.json").stdout
    first = printed.split("\n\n")[0].splitlines()
    assert first[0] == "== median ms"
    assert first[2].split() == ["mlp", "t1", "2.0000", "1", "4!", "fail"]
    assert "weft: 1 models, geometric means best_ratio 0.500, best_cpu_ratio 0.250, worst 0.25, disagree 0" in printed
    assert (
        "openvino: 1 models, geometric means best_ratio 2.000, best_cpu_ratio 4.000, worst 4.00, disagree 1" in printed
    )


def test_unknown_model_is_named(tmp_path: Path) -> None:
    write_models(tmp_path)
    done = bench("--dir", tmp_path, "--models", "mlp,resnet19", "--json", tmp_path / "j", "--log", tmp_path / "l")
    assert done.returncode == 1
    assert done.stderr.strip() == "no such model: resnet19; there are mlp"


def test_scripts_parse() -> None:
    for script in ("run.sh", "setup.sh"):
        subprocess.run(["sh", "-n", BENCHMARKS / script], check=True)


def test_decisions_have_kernels_to_be_judged_on() -> None:
    code = "from decisions import kernels; print(*[program.entry.name for _, program in kernels(1, 2)])"
    made = subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    assert len(made.stdout.split()) >= 2
