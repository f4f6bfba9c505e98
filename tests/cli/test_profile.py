"""`weft run --profile` tells how long each kernel takes; `--trace` writes what was done when."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from onnx import TensorProto, save
from tests.cli.commands import Cli
from tests.driver.measure.test_trace import check_trace
from tests.frontends.onnx.nodes import model_of, node

from weft.cli.profile import account
from weft.driver.measure.profile import Timing

FAST = ("--seconds", "0.02")


def test_the_table(cli: Cli) -> None:
    plain = cli("run", "mlp.onnx", "-i", "x=x.npy", "-q", "--shape", "batch=2").out
    done = cli("run", "mlp.onnx", "-i", "x=x.npy", "-q", "--profile", "--threads", "1", *FAST)
    assert done.code == 0
    outputs, _, table = done.out.partition("\n\n")
    assert outputs == plain.rstrip()
    lines = table.splitlines()
    assert lines[0].split() == ["#", "kernel", "calls", "us", "of", "all", "GFLOP/s", "first", "for"]
    rows = [re.fullmatch(r" *(\d+) +(\w+) +(\d+) +([\d.]+) +([\d.]+)% +([\d.]+) +(\S.*)", line) for line in lines[2:-4]]
    shares = [float(r[5]) for r in rows if r is not None]
    assert len(shares) == len(lines) - 6 > 1
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=0.1 * len(shares))
    assert re.fullmatch(r"a run takes [\d.]+ us on 1 thread, the median of many:", lines[-4])
    assert [re.sub(r"^ +[\d.]+ us  ", "", line) for line in lines[-3:]] == [
        "kernels",
        "the rest of the call: checks of the inputs, memory for the outputs",
        "interruptions: other programs want the processors and caches too",
    ]


def test_the_account_adds_up() -> None:
    assert account(Timing((2e-6, 3e-6), in_turn=6e-6, run=9e-6), threads=2) == [
        "a run takes 9.00 us on 2 threads, the median of many:",
        "     5.00 us  kernels",
        "     3.00 us  the rest of the call: checks of the inputs, memory for the outputs",
        "     1.00 us  interruptions: other programs want the processors and caches too",
    ]
    assert account(Timing((0.014,), in_turn=0.0139, run=0.0145, is_processor_time=True), threads=1)[:3] == [
        "a run takes 14.50 ms of processor time on 1 thread, the median of many:",
        "    14.00 ms  kernels",
        "     0.50 ms  the rest of the call: checks of the inputs, memory for the outputs",
    ]
    interrupted = Timing((1.0,), in_turn=1.5, run=1.25)
    assert (interrupted.interrupted, interrupted.outside) == (0.25, 0.0)
    noisy = Timing((1.0,), in_turn=1.0, run=0.99)
    assert (noisy.interrupted, noisy.outside) == (0.0, 0.0)


@pytest.mark.timed
@pytest.mark.parametrize("threads", ["1", "2"])
def test_small_kernels_do_not_take_longer_than_the_run(cli: Cli, threads: str) -> None:
    args = ("run", "mlp.onnx", "--random", "--profile", "--json", "--seconds", "0.3", "--threads", threads)
    found = [json.loads(cli(*args).out)["profile"] for _ in range(3)]
    assert min(f["kernel_seconds"] / f["run_seconds"] for f in found) < 1.05
    for f in found:
        parts = f["kernel_seconds"] + f["outside_seconds"] + f["interrupted_seconds"]
        assert parts == pytest.approx(max(f["run_seconds"], f["kernel_seconds"]))


def test_the_numbers_are_those_of_inspect(cli: Cli) -> None:
    found = json.loads(cli("run", "resnet.onnx", "--random", "--profile", "--json", "-O", "1", *FAST).out)["profile"]
    listed = cli("inspect", "resnet.onnx", "--kernels", "-O", "1").out.splitlines()[2:]
    wanted = {int(line.split()[0]): (line.split()[1], int(line.split()[2])) for line in listed}
    assert {k["number"]: (k["name"], k["calls"]) for k in found["kernels"]} == wanted
    assert found["kernel_seconds"] == pytest.approx(sum(k["calls"] * k["seconds"] for k in found["kernels"]))
    assert found["run_seconds"] > 0
    assert all(k["gflops"] >= 0 for k in found["kernels"])


def test_kernels_that_no_call_needs_are_left_out(cli: Cli, tmp_path: Path) -> None:
    """Those of a vectorizer that look for a wrong index run only if there is one."""
    vectorizer = node(
        "TfIdfVectorizer",
        "x",
        mode="TF",
        min_gram_length=1,
        max_gram_length=1,
        max_skip_count=0,
        ngram_counts=[0],
        ngram_indexes=[0, 1, 2],
        pool_int64s=[2, 3, 5],
    )
    made = model_of([vectorizer], {"x": (TensorProto.INT64, (4,))})
    save(made, tmp_path / "words.onnx")
    found = json.loads(cli("run", str(tmp_path / "words.onnx"), "--random", "--profile", "--json", *FAST).out)[
        "profile"
    ]
    assert found["kernels"]
    assert all(k["calls"] > 0 for k in found["kernels"])


def test_open_sizes_are_those_of_the_inputs(cli: Cli) -> None:
    args = ["run", "mlp.onnx", "--profile", "--json", *FAST]
    assert json.loads(cli(*args, "-i", "x=x.npy").out)["outputs"]["y"]["shape"] == [2, 10]
    assert json.loads(cli(*args, "--random").out)["outputs"]["y"]["shape"] == [1, 10]
    assert json.loads(cli(*args, "--random", "--shape", "batch=3").out)["outputs"]["y"]["shape"] == [3, 10]


def test_the_trace(cli: Cli) -> None:
    done = cli("run", "conv.onnx", "--random", "--trace", "t.json", "--no-cache", "-O", "1")
    assert done.code == 0
    assert done.out.endswith("wrote t.json: open it in ui.perfetto.dev or chrome://tracing\n")
    trace = json.loads(Path("t.json").read_text())
    tracks = check_trace(trace)
    assert trace["otherData"]["model"] == "conv.onnx"
    assert [e["name"] for e in tracks[2, 1]] == ["run", "conv2d_relu"]
    assert {e["cat"] for e in tracks[1, 1]} == {"stage", "graph pass", "kernel", "pass"}


def test_a_place_for_the_trace_is_looked_for_first(cli: Cli) -> None:
    done = cli("run", "no.onnx", "--random", "--trace", "nowhere/t.json")
    assert done.err == (
        "error: nowhere/t.json can't be written: there is no folder nowhere\n  hint: make it, or choose another\n"
    )


@pytest.mark.parametrize("option", [["--profile"], ["--trace", "t.json"]])
def test_an_artifact_has_no_kernels_to_tell_apart(cli: Cli, option: list[str]) -> None:
    cli("compile", "mlp.onnx", "-o", "mlp.weft")
    done = cli("run", "mlp.weft", "--random", *option)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: mlp.weft is compiled: its kernels can't be told apart\n  hint: profile the model it was made from\n"
    )
