"""Whole networks that TensorFlow saved (`make_networks`), compiled, give what TensorFlow computes.

Two small ones are beside this file. The others are made by TensorFlow in an environment of its own, which `make test-all` makes.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import weft

HERE = Path(__file__).parent
FOLDER = HERE / "networks"
PYTHON = HERE.parents[2] / ".venv-tensorflow" / "bin" / "python"
NETWORKS = ("gru", "lstm", "mobilenet", "resnet", "segmenter", "transformer")
FORMATS = ("saved", "pb", "tflite")


def check(model: Path, results: Path) -> None:
    with np.load(results) as held:
        given, wanted = held["input"], held["output"]
    made = weft.compile(model)(given)
    assert isinstance(made, np.ndarray)
    assert made.shape == wanted.shape
    assert made.dtype == wanted.dtype
    assert len(np.unique(wanted)) > 3
    if wanted.dtype == np.int8:
        assert np.abs(made.astype(int) - wanted).max() <= 1
    else:
        assert np.abs(made - wanted).max() <= 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("model", "results"), [("lstm.pb", "lstm.npz"), ("mobilenet.int8.tflite", "mobilenet.int8.npz")]
)
def test_small_network(model: str, results: str) -> None:
    check(FOLDER / model, FOLDER / results)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not PYTHON.exists():
        pytest.skip("make test-all makes .venv-tensorflow, in which TensorFlow makes these networks")
    folder = tmp_path_factory.mktemp("networks")
    subprocess.run([PYTHON, HERE / "make_networks.py", folder], check=True, capture_output=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", NETWORKS)
def test_network(made: Path, name: str, form: str) -> None:
    check(made / f"{name}.{form}", made / (f"{name}.tflite.npz" if form == "tflite" else f"{name}.npz"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobilenet", "resnet"])
def test_network_of_integers(made: Path, name: str) -> None:
    check(made / f"{name}.int8.tflite", made / f"{name}.int8.tflite.npz")
