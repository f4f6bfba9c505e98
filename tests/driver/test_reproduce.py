"""A pass that crashes while a model is compiled leaves a file, and one command runs the pass again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.models import mlp

from weft.driver import reproduce
from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.graph import Graph, SavedPass
from weft.graph.passes import pipeline
from weft.loop import Program
from weft.lower import pipeline as lowering
from weft.support.errors import LoweringError, VerifyError
from weft.support.passes import Pass, alone
from weft.targets import Kind


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def crash(ir: object) -> Graph:
    raise ZeroDivisionError("nothing to divide")


def lose_a_node(graph: Graph) -> Graph:
    made = graph.empty_copy()
    made.outputs, made.output_names = graph.outputs, graph.output_names
    return made


def put(name: str, pass_: Pass[Graph, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets *pass_* stand for the graph pass called *name*."""
    passes = tuple([pass_ if p.name == name else p for p in pipeline.GRAPH_PASSES])
    monkeypatch.setattr(pipeline, "GRAPH_PASSES", passes)
    monkeypatch.setattr(reproduce, "GRAPH_PASSES", passes)


def saved_file(error: LoweringError) -> Path:
    found = re.search(r"is in (\S+); `python -m weft.driver.reproduce \1` runs the pass again", str(error.hint))
    assert found
    return Path(found[1])


def test_a_graph_pass_that_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        put("merge_axes", Pass("merge_axes", alone(crash)), broken)
        options = CompileOptions(without=("winograd",))
        with pytest.raises(
            LoweringError, match=r"pass merge_axes: the pass failed .ZeroDivisionError.: noth"
        ) as caught:
            build(mlp(), "cpu -mattr=avx2", options)
        path = saved_file(caught.value)
        with pytest.raises(ZeroDivisionError, match="nothing to divide"):
            reproduce.main([str(path)])
    saved = SavedPass.read(path)
    assert (saved.name, saved.target, saved.switches.without) == ("merge_axes", "cpu -mattr=avx2", ("winograd",))
    done = subprocess.run(
        [sys.executable, "-m", "weft.driver.reproduce", str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("graph ")
    assert "  return y=y\n" in done.stdout


def test_a_graph_pass_that_breaks_the_rules_is_named_where_graphs_are_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    put("merge_axes", Pass("merge_axes", alone(lose_a_node)), monkeypatch)
    with pytest.raises(LoweringError, match="pass merge_axes: the pass left a graph that breaks its rules") as caught:
        build(mlp(), options=CompileOptions(verify=True))
    with pytest.raises(VerifyError, match="which no node of the graph makes"):
        reproduce.main([str(saved_file(caught.value))])


def test_a_lowering_pass_that_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(program: Program) -> Program:
        raise ZeroDivisionError("nothing to divide")

    broken = tuple([Pass(p.name, alone(fail)) if p.name == "remove_noops" else p for p in lowering.PASSES])
    tables: dict[Kind, object] = {"cpu": broken}
    with monkeypatch.context() as patch:
        patch.setattr(lowering, "PIPELINES", tables)
        with pytest.raises(LoweringError, match="the pass failed") as caught:
            build(mlp(), "cpu -mattr=sse4", CompileOptions(opt_level=0))
    text = reproduce.run_again(saved_file(caught.value))
    assert text.startswith("def ")


@pytest.mark.parametrize(
    ("arguments", "message"), [([], "no file is given"), (["/no/such"], "there is no file '/no/such'")]
)
def test_without_a_file(arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as caught:
        reproduce.main(arguments)
    assert str(caught.value) == (
        f"{message}\n  hint: python -m weft.driver.reproduce FILE, with the file that the error of a pass named"
    )
