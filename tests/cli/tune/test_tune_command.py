"""`weft tune` shows what it does while it searches, and says at the end what was found."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rich.console import Console
from tests.cli.commands import Cli
from tests.tune.test_tuning_session import Machine

from weft.cli.tune.live_table import TICKS, LiveTable, curve
from weft.tune import tune_model, tuning_session
from weft.tune.measure import Interval, measurer


@pytest.fixture
def tune(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command, on a machine where each candidate takes half of the incumbent's time."""
    monkeypatch.setattr(tuning_session, "local_executors", lambda **_: (ThreadPoolExecutor(1), ThreadPoolExecutor(1)))
    monkeypatch.setattr(measurer, "run", Machine(0.5))
    monkeypatch.setattr(tune_model, "compare_models", lambda *_: Interval(0.78, 0.8, 0.82))
    return cli


OPTIONS = ("mlp.onnx", "--shape", "batch=4", "--tuner", "random", "--trials", 8, "--records", "found.db")


def test_what_was_found_is_told(tune: Cli) -> None:
    done = tune("tune", *OPTIONS)
    assert done.code == 0
    assert "50% (" in done.out
    assert "8 candidates in" in done.out
    assert "The model takes 80.0% of its time before (78.0% - 82.0%)" in " ".join(done.out.split())
    assert "weft compile MODEL --records found.db" in " ".join(done.out.split())
    assert Path("found.db").exists()
    shown = tune("run", "mlp.onnx", "--shape", "batch=4", "--random", "--records", "found.db")
    assert shown.code == 0


def test_nothing_is_faster(tune: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer, "run", Machine(1.1))
    done = tune("tune", *OPTIONS)
    assert done.code == 0
    assert "no record was made" in " ".join(done.out.split())


def test_json(tune: Cli) -> None:
    found = json.loads(tune("tune", *OPTIONS, "--json").out)
    assert found["candidates"] == 8
    assert found["ratio"] == 0.8
    assert {k["ratio"] for k in found["kernels"]} <= {0.5, None}


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["mlp.onnx", "--tuner", "magic", "--shape", "batch=4"], 1, "there is no tuner 'magic'"),
        (["mlp.onnx", "--trials", "2"], 1, "the dimension batch is dynamic"),
        (["mlp.onnx", "--minutes", "0"], 2, "--minutes"),
        (["none.onnx"], 1, "none.onnx"),
        (["mlp.onnx", "--records", "no/folder/tune.db"], 1, "no/folder"),
    ],
)
def test_wrong_usage(tune: Cli, args: list[str], code: int, message: str) -> None:
    done = tune("tune", *args)
    assert done.code == code
    assert message in " ".join(done.err.replace("│", " ").split())


def test_a_saved_model_is_not_tuned(tune: Cli, mlp_weft: Path) -> None:
    done = tune("tune", mlp_weft)
    assert (done.code, "is compiled already" in done.err) == (1, True)


def test_curves() -> None:
    assert curve([]) == ""
    assert curve([1.0, 0.5, 2.0, 1.5], width=4) == TICKS[0] * 2 + TICKS[-1] * 2
    assert len(curve([1.0 + n / 100 for n in range(100)])) == 24


def test_the_table_names_the_task_at_work(tune: Cli) -> None:
    seen: list[str] = []
    table = LiveTable(None)

    def watch(status: tuning_session.Status) -> None:
        table(status)
        console = Console(width=100)
        with console.capture() as text:
            console.print(table.table(status))
        seen.append(text.get())

    tune_model.tune("mlp.onnx", records="found.db", trials=3, tuner="random", shapes={"batch": 4}, watch=watch)
    assert len(seen) == 3
    assert all("> " in s and "2.00" in s and "candidates" in s for s in seen)
