"""The benchmarks of what surrounds the tuner: networks of our own, times in turns, guessed facts, records measured again."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from tests.driver.tuned import plan_of, tune
from tests.models import mlp, random_inputs

import weft
from weft.driver.calibrate import target_here
from weft.runtime.model import Model
from weft.targets import MEASURED, cpuinfo, host, unmeasured_core
from weft.tune.measure import Interval

Import = Callable[[str], Any]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Import:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    return importlib.import_module


def test_networks_of_our_own_are_the_same_each_time(bench: Import, tmp_path: Path) -> None:
    own = bench("own_networks")
    for name in ("ds_cnn", "unet"):
        path = own.write_own(name, tmp_path, 2)
        assert path.read_bytes() == own.OWN[name](2).SerializeToString()
        proto = onnx.load(path)
        onnx.checker.check_model(proto, full_check=True)
        assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["unet", "ds_cnn", "convnext", "mlp_mixer"])
def test_networks_of_our_own_compute_what_they_should(bench: Import, name: str) -> None:
    proto = bench("own_networks").OWN[name](1)
    inputs = random_inputs(proto)
    (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    got = weft.compile(proto)(**inputs)
    assert np.abs(got - wanted).max() <= 1e-4 * np.abs(wanted).max()


def test_models_in_turns(bench: Import) -> None:
    paired = bench("paired_runs")
    package = weft.build(mlp(4), "cpu").package
    made: list[int] = []

    def make(n: int) -> Callable[[], Model]:
        def model() -> Model:
            made.append(n)
            return Model(package, threads=1)

        return model

    found = paired.paired_times([make(0), make(1)], 1, 0.01, times=4)
    assert made == [0, 1, 1, 0, 0, 1, 1, 0]  # none is made first each time
    assert 0 < found.seconds(0) < 1e-2
    known = paired.PairedTimes([[[1.0, 2.0], [1.0, 4.0], [2.0, 4.0]]] * 5 + [[[1.0, 3.0]]], [[1.0, 2.0]])
    assert known.ratio(1) == Interval(2.0, 2.0, 3.0)
    assert (known.ratio(0, to=1).middle, known.ratio_alone(1), known.seconds(1)) == (0.5, 2.0, 4.0)


def test_networks_count_by_their_geometric_mean(bench: Import) -> None:
    rows = [{"ratio": ratio, "low": 0.9 * ratio, "same_code": False} for ratio in (2.0, 8.0)]
    assert bench("tuned_networks").summary(rows, False) == {"ratio": pytest.approx(4.0), "faster": 2}


def test_facts_that_are_guessed(bench: Import) -> None:
    before, known = host(), dict(MEASURED)
    with bench("guessed_facts").guessed_facts():
        guessed = target_here("cpu")
        assert guessed.core.tune == unmeasured_core(cpuinfo()).tune
        assert guessed.isa.features == before.isa.features
        assert guessed.core != before.core or guessed.caches != before.caches
    assert (host(), dict(MEASURED)) == (before, known)


@pytest.mark.slow
def test_records_are_measured_again(
    bench: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = mlp(4, widths=(24, 10))
    path, db = tmp_path / "mlp.onnx", tmp_path / "tune.db"
    onnx.save(model, path)
    tune(db, model, plan_of)
    command = ["remeasure_records.py", str(db), str(path), "--seconds", "0.01", "--limit", "1000"]
    monkeypatch.setattr(sys, "argv", command)
    assert bench("remeasure_records").main() == 0
    assert "1 records: median deviation " in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*command[:-1], "-1"])
    assert bench("remeasure_records").main() == 1
