"""What the tests of commands share: the command itself, and small models as files."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import Cli
from tests.models import conv_bn_relu, mlp, tiny_resnet

import weft
from weft.cli.bench import measure as bench_measure


@pytest.fixture
def not_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saves `weft bench` the processes in which it measures memory."""
    monkeypatch.setattr(bench_measure, "_alone", lambda *_: (0.5, 100.0))


@cache
def models() -> dict[str, bytes]:
    """Returns the files that each folder begins with: models, and an input for `mlp` and `dense`."""
    x = io.BytesIO()
    np.save(x, np.ones((2, 24), np.float32))
    made = {"mlp": mlp(), "dense": mlp(widths=(24, 10)), "conv": conv_bn_relu(), "resnet": tiny_resnet()}
    return {f"{name}.onnx": model.SerializeToString() for name, model in made.items()} | {"x.npy": x.getvalue()}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """The command, called in a folder with an input `x.npy` for the first two of the models that are there.

    `mlp.onnx` has three layers, `dense.onnx` one, for which there is a single kernel; then `conv.onnx` and `resnet.onnx`.
    """
    for name, content in models().items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return Cli(capsys, monkeypatch)


@pytest.fixture(scope="session")
def mlp_weft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model `mlp.onnx`, compiled and saved."""
    path = tmp_path_factory.mktemp("saved") / "mlp.weft"
    weft.compile(models()["mlp.onnx"]).save(path)
    return path
