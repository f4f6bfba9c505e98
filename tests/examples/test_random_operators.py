"""The random operators of the sweep: the same for a seed, valid models, and computed as ONNX Runtime computes them."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import weft

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the benchmarks, which are scripts beside each other."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def test_cases_follow_from_the_seed(load: Any) -> None:
    random_cases = load("random_operators").random_cases
    labels = [c.label for c in random_cases(5, 40)]
    assert labels[:12] == [c.label for c in random_cases(5, 12)]
    assert labels != [c.label for c in random_cases(6, 40)]
    kinds = Counter(c.kind for c in random_cases(5, 40))
    assert kinds == dict.fromkeys(("contraction", "convolution", "depthwise", "reduction", "other rank"), 8)


def test_all_are_valid_models_within_bounds(load: Any) -> None:
    random_operators = load("random_operators")
    for case in random_operators.random_cases(7, 80):
        onnx.checker.check_model(case.model("m"), full_check=True)
        if case.kind != "reduction":
            assert random_operators.SMALLEST <= case.flops <= random_operators.LARGEST


def test_weft_agrees_with_onnxruntime(load: Any) -> None:
    make_inputs = load("inputs").make_inputs
    for n, case in enumerate(load("random_operators").random_cases(11, 5)):
        model = case.model(f"m{n}").SerializeToString()
        x = make_inputs(case.entry(f"m{n}"))
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        (wanted,) = session.run(None, x)
        got = weft.compile(model, cache=False)(**x)
        assert np.abs(got - wanted).max() <= 1e-4 * np.abs(wanted).max(), case.label


def test_summary_and_bounds(load: Any) -> None:
    sweep = load("sweep")
    rows = [
        {
            "kind": "a",
            "case": "x",
            "flops": 1e6,
            "errors": {},
            "us": {"weft": 10.0 * r, "onnxruntime": 10.0},
            "ratio": r,
        }
        for r in (0.5, 0.9, 1.2)
    ]
    assert sweep.passes(rows, [0.95, 1.25, 2.0])
    assert not sweep.passes(rows, [0.95, 1.25, 1.0])
    assert sweep.summary(rows).splitlines()[1].split() == ["all", "3", "0.90", "1.20", "1.20"]
    rows[0]["errors"] = {"weft": "differs by 1.0"}
    assert not sweep.passes(rows, [0.95, 1.25, 2.0])
    assert sweep.summary(rows).endswith("weft: differs by 1.0")
