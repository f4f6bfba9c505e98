"""The benchmark on GPUs without one: it compiles kernels, and tells what they take."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.devices import needs_nvrtc

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu" / "gpu.py"


@needs_nvrtc
def test_kernels_are_compiled_without_a_gpu(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    command = [
        sys.executable,
        str(SCRIPT),
        "--dry",
        "--only",
        "gemm1024_fp16,softmax4096x1024_fp32",
        "--json",
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(out.read_text())["rows"]
    assert [r["case"] for r in rows] == ["gemm1024_fp16", "softmax4096x1024_fp32"]
    assert all(r["kernels"] > 0 and 0 < r["registers"] <= 255 and r["spills"] == 0 for r in rows)
    assert done.stdout.startswith("| case | arch | kernels | registers | shared | spills |")
