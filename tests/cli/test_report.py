"""`weft report` writes one page, or says why not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Cli
from tests.report.pages import ROOFS, embedded

from weft.cli.report import command


@pytest.fixture(autouse=True)
def roofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saves measuring the machine."""
    monkeypatch.setattr(command, "measure_roofs", lambda *_, **__: ROOFS)


def facts(path: str) -> dict[str, Any]:
    found = re.search(r'id="facts">(.*?)</script>', Path(path).read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return embedded(found[1])


def test_the_page(cli: Cli) -> None:
    done = cli("report", "mlp.onnx", "-o", "mlp.html", "--seconds", "0.05")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"wrote mlp.html: [\d.]+ KiB; open it in a browser\n", done.out)
    found = facts("mlp.html")
    assert found["title"] == "mlp"
    assert found["inputs"] == ["x: f32[1, 24]"]  # a dynamic dimension that is not given is 1
    assert all(k["timing"]["seconds"] >= 0 for k in found["kernels"])


def test_options(cli: Cli) -> None:
    args = ("--shape", "batch=5", "-O", "1", "--seconds", "0", "--json")
    done = cli("report", "mlp.onnx", "-o", "mlp.html", *args)
    assert done.code == 0
    told = json.loads(done.out)
    assert told["page"] == "mlp.html"
    assert told["bytes"] == Path("mlp.html").stat().st_size
    assert (told["kernels"], told["calls"], told["seconds"]) == (3, 3, None)
    found = facts("mlp.html")
    assert found["inputs"] == ["x: f32[5, 24]"]
    assert found["roofs"] is None
    assert not any("packed" in k["name"] for k in found["kernels"])


def test_code_for_another_machine_is_not_timed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "can_run", lambda _: False)
    assert cli("report", "conv.onnx", "-o", "conv.html").code == 0
    assert facts("conv.html")["roofs"] is None


def test_a_compiled_model_has_nothing_to_show(cli: Cli) -> None:
    cli("compile", "mlp.onnx", "-o", "mlp.weft")
    done = cli("report", "mlp.weft", "-o", "mlp.html")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: mlp.weft is compiled: it holds code, no graph and no loops\n  hint: report on the model itself\n"
    )


def test_a_place_where_nothing_can_be_written(cli: Cli) -> None:
    done = cli("report", "mlp.onnx", "-o", "nowhere/mlp.html")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: nowhere/mlp.html can't be written: there is no folder nowhere\n  hint: make it, or choose another\n"
    )
