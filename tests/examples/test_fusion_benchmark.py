"""The four cases of the benchmark of fusion, and the benchmark of the passes."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def fusion(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("fusion")


def test_the_four_cases(fusion: Any) -> None:
    assert list(fusion.CASES) == ["conv+bn+relu", "depthwise-conv+bn+relu", "rnn cell", "lstm cell"]
    for name in fusion.CASES:
        onnx.checker.check_model(onnx.load_from_string(fusion.build(name)), full_check=True)


def test_figures_of_a_case(fusion: Any) -> None:
    row = fusion.measure("rnn cell", 1, 0.05)
    assert row["case"] == "rnn cell"
    assert 0 < row["fused_us"] < 1e6
    assert 0.1 < row["speedup"] < 10


@pytest.mark.slow
@pytest.mark.timed
def test_every_pass_can_be_timed() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "benchmarks/benchmark_passes.py", "--benchmark-disable"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
