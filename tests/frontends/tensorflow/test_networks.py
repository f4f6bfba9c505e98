"""Whole networks that TensorFlow saved (`make_networks`, `make_small_networks`), compiled, give what TensorFlow computes.

Small ones are beside this file. The others are made by TensorFlow in an environment of its own, which `make test-all` makes.
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft

HERE = Path(__file__).parent
FOLDER = HERE / "networks"
PYTHON = HERE.parents[2] / ".venv-tensorflow" / "bin" / "python"
NETWORKS = ("gru", "lstm", "mobilenet", "resnet", "segmenter", "transformer")
SMALL = sorted(p.stem for p in (FOLDER / "small").glob("*.npz"))
FORMATS = ("saved", "pb", "tflite")


def is_spread(x: np.ndarray[Any, Any]) -> bool:
    """Tells whether results are many numbers, and others for other examples, without which they tell nothing."""
    most = np.abs(x.astype(np.float64)).max()
    differs = len(x) == 1 or np.abs(x[0].astype(np.float64) - x[1]).max() > 1e-2 * most
    return bool(len(np.unique(x)) > 3 and x.std() > 1e-2 * most and differs)


def check(model: Path, results: Path) -> None:
    with np.load(results) as held:
        given, wanted = held["input"], held["output"]
    made = weft.compile(model)(given)
    assert isinstance(made, np.ndarray)
    assert made.shape == wanted.shape
    assert made.dtype == wanted.dtype
    assert is_spread(wanted)
    if wanted.dtype == np.int8:
        assert np.abs(made.astype(int) - wanted).max() <= 1
    else:
        assert np.abs(made - wanted).max() <= 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("model", "results"), [("lstm.pb", "lstm.npz"), ("mobilenet.int8.tflite", "mobilenet.int8.npz")]
)
def test_small_network(model: str, results: str) -> None:
    check(FOLDER / model, FOLDER / results)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["saved", "pb"])
@pytest.mark.parametrize("name", SMALL)
def test_stored_network(name: str, form: str, tmp_path: Path) -> None:
    with tarfile.open(FOLDER / "small" / f"{name}.tar.xz") as tar:
        tar.extractall(tmp_path, filter="data")
    check(tmp_path / f"{name}.{form}", FOLDER / "small" / f"{name}.npz")


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
