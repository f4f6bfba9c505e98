"""What the tests of commands share: the command itself, and small models as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import Cli
from tests.models import conv_bn_relu, mlp, tiny_resnet

from weft.cli import bench_measure


@pytest.fixture
def not_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saves `weft bench` the processes in which it measures memory."""
    monkeypatch.setattr(bench_measure, "_alone", lambda *_: (0.5, 100.0))


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """The command, called in a folder with `mlp.onnx`, `conv.onnx`, `resnet.onnx`, and an input `x.npy` for the first."""
    for name, build in (("mlp", mlp), ("conv", conv_bn_relu), ("resnet", tiny_resnet)):
        (tmp_path / f"{name}.onnx").write_bytes(build().SerializeToString())
    np.save(tmp_path / "x.npy", np.ones((2, 24), np.float32))
    monkeypatch.chdir(tmp_path)
    return Cli(capsys, monkeypatch)
