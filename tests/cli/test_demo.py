"""`weft demo` shows what Weft does, and fails where it is wrong. A smaller network stands in for ResNet-18 here."""

from __future__ import annotations

import json
import re

import numpy as np
import onnx
import pytest
from tests.cli.commands import Cli
from tests.models import mlp

from weft.cli import demo_models
from weft.cli.bench.engines import Weft
from weft.cli.bench.measure import DIFFERS


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, not_alone: None) -> None:
    def model() -> onnx.ModelProto:
        return mlp(batch=1, widths=(24, 10))

    monkeypatch.setattr(demo_models, "resnet18", model)


def test_what_it_shows(cli: Cli) -> None:
    done = cli("demo", "--seconds", "0.1")
    assert (done.code, done.err) == (0, "")
    patterns = [
        r"Digits: a trained network reads handwriting that it has never seen",
        r"  compiled in    [\d.]+ m?s",
        r"  weft           99\.7% of 360 images right",
        r"  onnxruntime    99\.7% of 360 images right",
        r"  difference     (0e\+00|\de-\d\d) of the largest output: the same",
        r"",
        r"ResNet-18: 1 x 3 x 224 x 224, float32, [\d.]+ KiB, threads: 1",
        r"  weft           [\d.]+ ms an image, ready in [\d.]+ m?s, [\d.]+ MiB",
        r"  onnxruntime    [\d.]+ ms an image, ready in [\d.]+ m?s, [\d.]+ MiB",
        r"  ratio          ONNX Runtime takes [\d.]+ times as long as Weft",
        r"  difference     (0e\+00|\de-\d\d) of the largest output: the same",
        r"",
        r"Now try a model of yours: weft run MODEL\.onnx --random",
    ]
    lines = done.out.splitlines()
    assert len(lines) == len(patterns)
    for line, pattern in zip(lines, patterns, strict=True):
        assert re.fullmatch(pattern, line), line


def test_json(cli: Cli) -> None:
    figures = json.loads(cli("demo", "--seconds", "0.1", "--json").out)
    assert figures["digits"]["weft_right"] == figures["digits"]["onnxruntime_right"] >= 0.99
    assert figures["resnet18"]["onnxruntime_to_weft"] > 0
    assert figures["resnet18"]["rel_err"] < 1e-4


def test_disagreement_fails(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Weft, "outputs", lambda self: [np.zeros((1, 10), np.float32)])
    done = cli("demo", "--seconds", "0.1")
    assert done.code == 1
    assert done.err == (
        "error: Weft and ONNX Runtime differ by more than 0.0001 of the largest output on resnet18\n"
        f"  hint: {DIFFERS}\n"
    )
    assert "NOT the same" in done.out
    assert "Now try" not in done.out
