"""`weft run --profile` tells how long each kernel takes; `--trace` writes what was done when."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.commands import Cli
from tests.driver.test_trace import check_trace

FAST = ("--seconds", "0.02")


def test_the_table(cli: Cli) -> None:
    plain = cli("run", "mlp.onnx", "-i", "x=x.npy", "-q", "--shape", "batch=2").out
    done = cli("run", "mlp.onnx", "-i", "x=x.npy", "-q", "--profile", "--threads", "1", *FAST)
    assert done.code == 0
    outputs, _, table = done.out.partition("\n\n")
    assert outputs == plain.rstrip()
    lines = table.splitlines()
    assert lines[0].split() == ["#", "kernel", "calls", "us", "of", "all", "GFLOP/s", "first", "for"]
    rows = [re.fullmatch(r" *(\d+) +(\w+) +(\d+) +([\d.]+) +([\d.]+)% +([\d.]+) +(\S.*)", line) for line in lines[2:-1]]
    shares = [float(r[5]) for r in rows if r is not None]
    assert len(shares) == len(lines) - 3 > 1
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=0.1 * len(shares))
    assert re.fullmatch(r"all kernels take [\d.]+ ms one by one, on 1 thread; a run takes [\d.]+ ms", lines[-1])


def test_the_numbers_are_those_of_inspect(cli: Cli) -> None:
    found = json.loads(cli("run", "resnet.onnx", "--random", "--profile", "--json", "-O", "1", *FAST).out)["profile"]
    listed = cli("inspect", "resnet.onnx", "--kernels", "-O", "1").out.splitlines()[2:]
    wanted = {int(line.split()[0]): (line.split()[1], int(line.split()[2])) for line in listed}
    assert {k["number"]: (k["name"], k["calls"]) for k in found["kernels"]} == wanted
    assert found["kernel_seconds"] == pytest.approx(sum(k["calls"] * k["seconds"] for k in found["kernels"]))
    assert found["run_seconds"] > 0
    assert all(k["gflops"] >= 0 for k in found["kernels"])


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
    assert {e["cat"] for e in tracks[1, 1]} == {"stage", "kernel", "pass"}


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
