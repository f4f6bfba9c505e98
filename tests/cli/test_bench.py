"""`weft bench` compares engines: their outputs first, then their times, in turns."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import Cli
from tests.support.devices import needs_opencl

from weft.cli.bench import peak, roofline, roofline_picture
from weft.cli.bench.ablate import Ablated
from weft.cli.bench.engines import Weft, engine
from weft.cli.bench.measure import DIFFERS, Timed, difference, ratio, row
from weft.cli.bench.optimizations import Optimization, optimizations_of
from weft.cli.onnx_builder import GraphBuilder
from weft.cost import Layout
from weft.driver.build import build
from weft.driver.measure.limits import Limit
from weft.driver.measure.roofline import Level, Roofs, Standing
from weft.support.knobs import KNOBS
from weft.targets import cpu

ROW = {
    "model",
    "engine",
    "threads",
    "median_ms",
    "p10_ms",
    "p90_ms",
    "ratio_to_weft",
    "max_abs_err",
    "compile_s",
    "peak_rss_mb",
}


@pytest.mark.usefixtures("not_alone")
def test_the_figures(cli: Cli) -> None:
    done = cli("bench", "dense.onnx", "conv.onnx", "--against", "onnxruntime", "--seconds", "0.1", "--json", "out.json")
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines()]
    names = [("dense", "weft"), ("dense", "onnxruntime"), ("conv", "weft"), ("conv", "onnxruntime")]
    assert [(line[0], line[1]) for line in lines[2:]] == names
    figures = json.loads(Path("out.json").read_text())
    assert set(figures) == {"machine", "rows"}
    assert figures["machine"]["machine"]
    assert [(r["model"], r["engine"]) for r in figures["rows"]] == names
    for r in figures["rows"]:
        assert set(r) >= ROW
        assert 0 < r["p10_ms"] <= r["median_ms"] <= r["p90_ms"]
        assert (r["compile_s"], r["peak_rss_mb"]) == (0.5, 100)  # as `not_alone` has it
        assert r["max_abs_err"] < 1e-4
    assert figures["rows"][0]["ratio_to_weft"] == 1


def test_memory_is_that_of_a_process_of_its_own(cli: Cli) -> None:
    asked = ("--against", "onnxruntime", "--seconds", "0.1", "--json", "out.json", "-q")
    assert cli("bench", "dense.onnx", *asked).code == 0
    for r in json.loads(Path("out.json").read_text())["rows"]:
        assert 0 < r["compile_s"] < 60
        assert 20 < r["peak_rss_mb"] < 2000


@pytest.mark.usefixtures("not_alone")
def test_open_sizes_can_be_given(cli: Cli) -> None:
    assert cli("bench", "dense.onnx", "--shape", "batch=7", "--seconds", "0.1").code == 0


@needs_opencl
@pytest.mark.usefixtures("not_alone")
def test_a_device_is_timed(cli: Cli) -> None:
    asked = (
        "--target",
        "opencl",
        "--against",
        "onnxruntime",
        "--shape",
        "batch=7",
        "--seconds",
        "0.1",
        "--json",
        "out.json",
    )
    assert cli("bench", "dense.onnx", *asked).code == 0
    assert json.loads(Path("out.json").read_text())["rows"][1]["max_abs_err"] < 1e-4


@pytest.mark.parametrize("option", [("--peak",), ("--ablate", "dense.onnx"), ("--roofline", "dense.onnx")])
def test_some_figures_are_those_of_the_processor(cli: Cli, option: tuple[str, ...]) -> None:
    done = cli("bench", *option, "--target", "opencl")
    assert done.code == 2
    assert f"{option[0]} measures this processor" in " ".join(done.err.replace("│", " ").split())


@pytest.mark.usefixtures("not_alone")
def test_outputs_that_differ_fail(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Weft, "outputs", lambda self: [np.full((1, 10), 1e3, np.float32)])
    done = cli("bench", "dense.onnx", "--against", "onnxruntime", "--seconds", "0.1")
    assert done.code == 1
    assert done.err == (
        f"error: the outputs differ by more than 0.0001 of their magnitude: onnxruntime on dense\n  hint: {DIFFERS}\n"
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--against", "tensorflow"],
            "there is no engine 'tensorflow' to compare with\n  hint: use onnxruntime, openvino",
        ),
        (
            ["--json", "nowhere/f"],
            "nowhere/f can't be written: there is no folder nowhere\n  hint: make it, or choose another",
        ),
    ],
)
def test_what_can_be_known_before_the_work(cli: Cli, args: list[str], message: str) -> None:
    done = cli("bench", "mlp.onnx", *args)
    assert (done.code, done.out, done.err) == (1, "", f"error: {message}\n")


def test_a_peer_that_is_not_installed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)  # as where it is not installed
    monkeypatch.delitem(sys.modules, "weft.cli.bench.engine_openvino", raising=False)
    done = cli("bench", "mlp.onnx", "--against", "openvino")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: openvino is not installed\n  hint: pip install openvino\n"


def test_a_failure_in_the_other_process_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    done = cli("bench", "dense.onnx", "--seconds", "0.1")
    assert (done.code, done.err) == (1, "error: weft failed in a process of its own: \n  hint: run it alone\n")


def test_differences() -> None:
    a, b = np.array([1.0, -4.0]), np.array([1.5, -4.0])
    assert difference([a], [b]) == (0.5, 0.125)
    assert difference([a, np.zeros(0)], [a, np.zeros(0)]) == (0, 0)
    assert difference([a], [np.array([np.nan, -4.0])]) == (np.inf, np.inf)
    assert difference([np.array([np.nan, 2.0])], [np.array([np.nan, 2.0])]) == (0, 0)
    assert difference([a], [a[:1]]) == (np.inf, np.inf)
    assert difference([np.array([3])], [np.array([4])]) == (1, 0.25)


def test_ratios_are_those_of_the_middle_round() -> None:
    ours = Timed(engine("weft"), 1, 1, wall=[1, 1, 4], cpu=[1, 1, 1], runs=[1, 2, 3])
    theirs = Timed(engine("onnxruntime"), 1, 1, wall=[2, 3, 4], cpu=[5, 6, 7], runs=[1, 2, 3])
    assert ratio(theirs, ours) == 2
    assert ratio(theirs, ours, cpu=True) == 6
    assert row("m", theirs, ours, 1)["median_ms"] == 2000


def test_the_machines_limits(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Limit("f32 multiply-add", "GFLOP/s", 100.25, 200.0), Limit("L1 read", "GB/s", 400.0, 800.0, 24 << 10)]
    monkeypatch.setattr(peak, "measure_limits", lambda **_: found)
    done = cli("bench", "--peak", "--json", "peak.json")
    assert (done.code, done.err) == (0, "")
    assert [line.split() for line in done.out.splitlines()[2:]] == [
        ["f32", "multiply-add", "100.2", "200.0", "GFLOP/s"],
        ["L1", "read", "24.0", "KiB", "400.0", "800.0", "GB/s"],
    ]
    figures = json.loads(Path("peak.json").read_text())
    assert figures["limits"][1]["nbytes"] == 24 << 10


def test_nothing_to_time_is_a_usage_error(cli: Cli) -> None:
    done = cli("bench")
    assert done.code == 2
    assert "there is nothing to time" in done.err


def test_what_each_optimization_is_worth(cli: Cli) -> None:
    done = cli("bench", "--ablate", "dense.onnx", "--shape", "batch=8", "--seconds", "0.1", "--json", "out.json")
    assert (done.code, done.err) == (0, "")
    *table, last = done.out.splitlines()[2:]
    figures = json.loads(Path("out.json").read_text())
    rows = figures["rows"]
    assert [line.split()[0] for line in table] == [r["without"] for r in rows]
    assert last == f"the same code without: {', '.join(figures['same_code'])}"
    named = {r["without"] for r in rows} | set(figures["same_code"])
    assert named >= set(KNOBS) | {"fold_packed_constants", "pack_matrices", "partition_loops"}
    assert {r["kind"] for r in rows} >= {"knob", "graph pass"}
    assert {"layout", "winograd"} <= set(figures["same_code"])
    others = [r["ratio"] for r in rows if r["kind"] != "knob"]
    assert others == sorted(others, reverse=True)
    for r in rows:
        assert r["model"] == "dense"
        assert r["threads"] == 1 or r["without"] == "parallel"
        assert 0 < r["ms"] < 1000
        assert 0.01 < r["ratio"] < 100
        assert r["rel_err"] < 1e-4


def test_an_optimization_that_changes_results_fails(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Ablated.outputs
    monkeypatch.setattr(Ablated, "outputs", lambda self: [y + (self.off is not None) for y in real(self)])
    done = cli("bench", "--ablate", "dense.onnx", "--seconds", "0.1")
    assert done.code == 1
    assert done.err.startswith("error: without prepacking the outputs differ by ")


def test_optimizations_of_a_model() -> None:
    g = GraphBuilder("convolution")
    x = g.op("Conv", g.input("x", (1, 16, 14, 14)), g.normal((32, 16, 3, 3), 0.1), pads=[1] * 4)
    g.output(g.op("Relu", x), "y")
    made = build(g.model(), cpu("avx2"))
    found = {o.name: o for o in optimizations_of(made)}
    assert found["choose_layouts"] == Optimization("graph pass", "choose_layouts", "a pass over the graph")
    assert found["choose_layouts"].passes == ("choose_layouts=off",)
    assert "vectorize" not in found  # nothing can be made without it
    assert found["partition_loops"].kind == "loop pass"
    layout = found["Layout"]
    assert (layout.kind, layout.meaning, layout.passes, layout.without) == ("decision", Layout.question, (), ())
    plain = build(g.model(), cpu("avx2"), choose=layout.choose)
    assert not any(isinstance(s.decision, Layout) and not s.decision.is_plain for s in plain.graph_plan.steps)
    assert "Layout" not in {o.name for o in optimizations_of(plain)}


ROOFS = Roofs(100.0, [Level("L1", 32768, 400.0), Level("DRAM", float("inf"), 20.0)])


def test_what_bounds_each_kernel(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "measure_roofs", lambda *_, **__: ROOFS)
    done = cli("bench", "--roofline", "mlp.onnx", "--shape", "batch=3", "--seconds", "0.1", "--json", "out.json")
    assert (done.code, done.err) == (0, "")
    assert "one core: 100 GFLOP/s, and GB/s read from L1 400, DRAM 20" in done.out
    assert "at their limits they would take" in done.out
    figures = json.loads(Path("out.json").read_text())
    assert figures["roofs"]["levels"][1] == {"name": "DRAM", "bytes": None, "gb_per_s": 20.0}
    assert sum(r["operations"] * r["calls"] for r in figures["rows"]) >= 2 * 3 * (24 * 32 + 32 * 32 + 32 * 10)
    assert all(r["bound"] and r["seconds"] >= 0 for r in figures["rows"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "begins"), [("r.svg", b"<?xml"), ("r.png", b"\x89PNG"), ("r.pdf", b"%PDF")])
def test_the_roofline_as_a_picture(tmp_path: Path, name: str, begins: bytes) -> None:
    limits = {"arithmetic": 1e-6, "weights from DRAM": 2e-6, "activations from L1": 0.0}
    kernels = [Standing("dense", "Gemm", 2, 4e-6, 1e5, 1e4, limits), Standing("copy", "", 1, 1e-6, 0.0, 1e3, limits)]
    roofline_picture.draw(tmp_path / name, "model", kernels, ROOFS)
    drawn = (tmp_path / name).read_bytes()
    assert drawn.startswith(begins)
    if name.endswith("svg"):
        roofline_picture.draw(tmp_path / "again.svg", "model", kernels, ROOFS)
        assert (tmp_path / "again.svg").read_bytes() == drawn


@pytest.mark.parametrize("option", ["--ablate", "--roofline"])
def test_another_option_in_the_place_of_the_model(cli: Cli, option: str) -> None:
    done = cli("bench", "dense.onnx", option, "--threads", "1")
    hint = f"write the model right after it: weft bench {option} MODEL"
    assert (done.code, done.err) == (1, f"error: {option} is given --threads as its model\n  hint: {hint}\n")


@pytest.mark.usefixtures("not_alone")
def test_a_saved_model(cli: Cli, mlp_weft: Path) -> None:
    shutil.copy(mlp_weft, "mlp.weft")
    done = cli("bench", "mlp.weft", "--seconds", "0.1", "--shape", "batch=3", "--json", "figures.json")
    assert (done.code, done.err) == (0, "")
    (row,) = json.loads(Path("figures.json").read_text())["rows"]
    assert (row["model"], row["engine"], row["rel_err"]) == ("mlp", "weft", 0.0)
    assert row["median_ms"] > 0
    refused = {
        ("mlp.weft", "--against", "onnxruntime"): "mlp.weft is compiled already: only Weft runs it, not onnxruntime\n"
        "  hint: leave --against out, or give the ONNX model that it was made from",
        ("--ablate", "mlp.weft"): "mlp.weft is compiled already, and --ablate compiles a model anew\n"
        "  hint: give the ONNX model that it was made from",
        ("--roofline", "mlp.weft"): "mlp.weft is compiled already, and --roofline compiles a model anew\n"
        "  hint: give the ONNX model that it was made from",
    }
    for args, message in refused.items():
        done = cli("bench", *args)
        assert (done.code, done.out, done.err) == (1, "", f"error: {message}\n")


def test_pictures_that_can_not_be(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("bench", "mlp.onnx", "--picture", "x.svg").code == 2
    monkeypatch.setattr(roofline, "measure_roofs", lambda *_, **__: ROOFS)
    done = cli("bench", "--roofline", "mlp.onnx", "--seconds", "0.1", "--picture", "x.gif")
    assert done.err == "error: x.gif is no name of a picture\n  hint: let it end in .svg, .png, .pdf\n"
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "weft.cli.bench.roofline_picture")
    done = cli("bench", "--roofline", "mlp.onnx", "--picture", "x.svg")
    assert done.code == 1
    assert "the picture needs matplotlib" in done.err
    assert "hint: pip install matplotlib" in done.err
