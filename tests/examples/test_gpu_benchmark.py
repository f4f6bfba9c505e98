"""The benchmark on GPUs without one: it compiles kernels, and tells what they take."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from tests.driver.device.test_models_on_device import inputs_of
from tests.models import mlp
from tests.runtime.devices.fake_driver import FakeDriver
from tests.support.devices import needs_nvrtc

import weft
from weft.driver.build import build

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


def device_time() -> Any:
    """The benchmark's module that times kernels."""
    spec = spec_from_file_location("device_time", SCRIPT.with_name("device_time.py"))
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_kernels_of_a_call_are_timed_together(driver: FakeDriver) -> None:
    model = weft.Model(build(mlp(batch=2), "cuda", cache=None).package)
    given = inputs_of(model)
    driver.calls()
    model.run(given)
    launches = len([c for c in driver.calls() if c.startswith("cuLaunchKernelEx")])
    seconds, found = device_time().kernel_seconds(model, given, 0.01)
    assert found == launches > 0
    graphs = [c for c in driver.calls() if c.startswith("cuGraphLaunch")]
    assert set(graphs) == {f"cuGraphLaunch {launches}"}
    assert 0 < seconds <= 0.001 / 3
