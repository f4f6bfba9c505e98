"""Where importing any layer of the compiler, llvmlite or onnx raises, saved models give what the compiling process got."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tests.export.conftest import Saved, Saver
from tests.export.without_compiler import REFUSING
from tests.models import BUILDERS

import weft
from weft.driver.measure.random_inputs import random_inputs

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NETWORKS = ("resnet18", "mobilenet_v1", "dcgan", "dqn", "mlp", "lstm_lm", "bert_base", "gpt2_decode256")

LOADER = (
    REFUSING
    + """
import numpy as np
import weft

for path in sys.argv[1:]:
    given = np.load(path + ".inputs.npz")
    model = weft.load(path)
    outputs = model.run([given[f"{n:04}"] for n in range(len(model.inputs))])
    np.savez(path + ".outputs.npz", *outputs)
try:
    weft.compile
except ImportError as error:
    print(error)
"""
)


def run_without_compiler(*models: Saved) -> None:
    for m in models:
        np.savez(f"{m.path}.inputs.npz", **{f"{n:04}": m.inputs[s.name] for n, s in enumerate(m.model.inputs)})  # type: ignore[arg-type]
    command = [sys.executable, "-c", LOADER, *[str(m.path) for m in models]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("is part of the compiler\n")
    for m in models:
        with np.load(f"{m.path}.outputs.npz") as found:
            assert len(found.files) == len(m.outputs)
            for name, y in zip(found.files, m.outputs, strict=True):
                assert found[name].dtype == y.dtype
                assert found[name].tobytes() == y.tobytes()


def test_small_models(saved: Saver) -> None:
    run_without_compiler(*map(saved, BUILDERS))


def made(folder: Path, *options: str) -> list[Saved]:
    """Makes networks of the benchmarks with PyTorch, compiles and saves them."""
    if find_spec("torch") is None:
        pytest.skip("there is no PyTorch, which makes the benchmarks' networks")
    subprocess.run(
        [sys.executable, str(BENCHMARKS / "models.py"), str(folder), *options], check=True, capture_output=True
    )
    return [compiled_and_saved(path) for path in sorted(folder.glob("*.onnx"))]


def compiled_and_saved(source: Path) -> Saved:
    model, path = weft.compile(str(source)), source.with_suffix(".weft")
    model.save(path)
    inputs = random_inputs(model.inputs)
    return Saved(path, model, inputs, model.run([inputs[s.name] for s in model.inputs]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_networks_of_the_benchmarks_made_small(name: str, tmp_path: Path) -> None:
    """With fewer layers and smaller inputs, but all of their operators."""
    models = made(tmp_path, name, "--small")
    assert [m.path.stem for m in models] == [name]
    run_without_compiler(*models)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_the_networks_of_the_benchmarks(name: str, tmp_path: Path) -> None:
    run_without_compiler(*made(tmp_path, name))
