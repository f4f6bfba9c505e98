"""`weft tune` shows what it does while it searches, and says at the end what was found."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path

import pytest
from rich.console import Console
from tests.cli.commands import Cli
from tests.tune.graph.made_up_times import MadeUpMachine, by_panel
from tests.tune.test_tuning_session import Machine

from weft.cli.tune import command
from weft.cli.tune.live_table import TICKS, LiveTable, curve
from weft.driver.measure.roofline import Level, Roofs
from weft.targets import host
from weft.tune import tune_model, tuning_session
from weft.tune.measure import Interval, measurer
from weft.tune.tasks import Task
from weft.tune.tuning_session import HOPE


@pytest.fixture
def tune(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command, on a machine where each candidate takes half of the incumbent's time."""
    monkeypatch.setattr(tuning_session, "local_executors", lambda **_: (ThreadPoolExecutor(1), ThreadPoolExecutor(1)))
    monkeypatch.setattr(measurer, "run", Machine(0.5))
    monkeypatch.setattr(tune_model, "compare_models", lambda *_: Interval(0.78, 0.8, 0.82))
    return cli


SEARCH = ("mlp.onnx", "--shape", "batch=4", "--tuner", "random", "--records", "found.db", "--no-roofline")
OPTIONS = (*SEARCH, "--trials", 8, "--no-graph")


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


@pytest.fixture
def narrow(tune: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command, on a machine where matrix products take half the time by panels of one vector."""
    panel = host().isa.vector_bits // 32
    MadeUpMachine(by_panel(panel)).install(monkeypatch, is_built=True)
    monkeypatch.setattr(measurer, "run", Machine(1.1))
    return tune


def test_layouts_and_algorithms_are_told_in_words(narrow: Cli) -> None:
    done = narrow("tune", *SEARCH, "--trials", 12)
    said = " ".join(done.out.split())
    assert "Layouts and algorithms: tried " in said
    assert "Kept a plan with " in said
    assert "80.0% of the time before (78.0% - 82.0%)" in said
    assert "no record was made" not in said


def test_layouts_and_algorithms_in_json_and_on_the_page(narrow: Cli) -> None:
    found = json.loads(narrow("tune", *SEARCH, "--trials", 12, "--json", "--report", "tuning.html").out)
    assert found["graph"]["kept"] is True
    assert found["graph"]["plans"] <= 4
    assert (found["ratio"], found["graph"]["ratio"]) == (0.8, 0.8)
    assert {c["question"] for c in found["graph"]["changes"]} == {"the width of a matrix's panels"}
    assert all(len(q["seconds"]) > 1 for q in found["graph"]["questions"])
    page = Path("tuning.html").read_text(encoding="utf-8")
    assert "<h2>Layouts and algorithms</h2>" in page
    assert "What the new plan does otherwise" in page
    none = json.loads(narrow("tune", *OPTIONS, "--json").out)
    assert none["graph"] is None


def test_a_page_about_the_search(tune: Cli) -> None:
    done = tune("tune", *OPTIONS, "--report", "tuning.html")
    assert done.code == 0
    assert "wrote tuning.html: " in done.out
    page = Path("tuning.html").read_text(encoding="utf-8")
    assert "<h1>mlp</h1>" in page
    assert "80.0%" in page
    assert "50% (" in page
    assert page.count('class="tried"') == 8


def test_how_near_kernels_are_to_their_limits(tune: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_model, "measure_roofs", lambda _: Roofs(1e5, [Level("DRAM", inf, 1e5)]))
    options = [o for o in OPTIONS if o != "--no-roofline"]
    told = " ".join(tune("tune", *options).out.split())
    assert "The kernels reached 0% of what the machine can do for them" in told
    found = json.loads(tune("tune", *options, "--report", "tuning.html", "--json").out)
    assert all(0 < k["part_of_limit"] < 0.1 for k in found["kernels"])
    page = Path("tuning.html").read_text(encoding="utf-8")
    assert "The kernels reach" in page
    assert "What bounded it before" in page


def test_the_page_is_named_in_json(tune: Cli) -> None:
    found = json.loads(tune("tune", *OPTIONS, "--report", "tuning.html", "--json").out)
    assert found["page"] == "tuning.html"
    assert Path("tuning.html").exists()
    assert "page" not in json.loads(tune("tune", *OPTIONS, "--json").out)


def test_the_page_is_written_where_the_search_is_interrupted(tune: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object, status: tuning_session.Status) -> None:
        if status.trials == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(LiveTable, "__call__", interrupted)
    done = tune("tune", *OPTIONS, "--report", "tuning.html")
    assert done.code == 0
    assert "it was interrupted" in Path("tuning.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("no/folder/tuning.html", "no/folder/tuning.html can't be written: there is no folder no/folder"),
        (".", ". can't be written: it is not a plain file"),
        ("mlp.onnx", "mlp.onnx can't be written: it is the model itself"),
        ("found.db", "found.db is the database of records"),
        ("./x/../found.db", "found.db is the database of records"),
    ],
)
def test_a_page_that_can_t_be_written_is_refused_before_the_search(
    tune: Cli, monkeypatch: pytest.MonkeyPatch, page: str, message: str
) -> None:
    Path("x").mkdir()
    monkeypatch.setattr(command, "tune_model", None)
    done = tune("tune", *OPTIONS, "--report", page)
    assert done.code == 1
    assert message in done.err
    assert not Path("found.db").exists()


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

    tune_model.tune(
        "mlp.onnx",
        records="found.db",
        trials=3,
        tuner="random",
        shapes={"batch": 4},
        watch=watch,
        graph=False,
        roofline=False,
    )
    assert len(seen) == 3
    assert all("> " in s and "2.00" in s and "candidates" in s for s in seen)
    assert all("GFLOP/s" in s and "next: " in s and "of a run" in s for s in seen)


def test_the_rate_is_that_of_the_best_and_the_next_kernel_is_the_most_hopeful(tune: Cli) -> None:
    seen: list[tuning_session.Status] = []
    options = {"tuner": "random", "shapes": {"batch": 4}, "graph": False, "roofline": False}
    report = tune_model.tune("mlp.onnx", records="found.db", trials=3, watch=seen.append, **options)  # type: ignore[arg-type]
    for s in seen:
        assert isinstance(s.task, Task)
        assert s.rate == pytest.approx(2 * s.task.operations / s.task.seconds / 1e9)
        assert s.upcoming in {t.name for t in report.tasks}
        assert 0 < s.hope <= HOPE
