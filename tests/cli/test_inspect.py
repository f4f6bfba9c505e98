"""`weft inspect` shows what became of a model, readably."""

from __future__ import annotations

import json
import re

import pytest
from tests.cli.commands import Cli


def test_the_summary(cli: Cli) -> None:
    done = cli("inspect", "mlp.onnx")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[:3] == ["mlp.onnx for cpu", "  input    x: f32[batch, 24]", "  output   y: f32[batch, 10]"]
    assert re.fullmatch(r"  work     5 nodes became 3 calls of 3 kernels", lines[3])
    assert re.fullmatch(
        r"  memory   [\d.]+ KB of code, [\d.]+ KB of constants; arena \(\d+ \* batch\) bytes, lower bound \(\d+ \* batch\)",
        lines[4],
    )
    assert re.fullmatch(
        r"  compiled in [\d.]+ m?s: read .*, optimize .*, plan .*, kernels .*, link [\d.]+ m?s", lines[5]
    )
    assert lines[6:] == ["look closer with --graph, --kernels, --memory, --schedule KERNEL, --asm KERNEL"]


def test_the_graph(cli: Cli) -> None:
    done = cli("inspect", "conv.onnx", "--graph", "-O", "0")
    assert done.out.splitlines()[:4] == [
        "3 groups, 3 distinct",
        "  /Conv_0_output_0: f32[1, 8, 9, 9] = conv2d(x, weight_0)",
        "  /BatchNormalization_1_output_0: f32[1, 8, 9, 9] = batch_norm"
        "(/Conv_0_output_0, weight_1, weight_2, weight_3, weight_4)",
        "  y: f32[1, 8, 9, 9] = relu(/BatchNormalization_1_output_0)",
    ]


def test_the_kernels(cli: Cli) -> None:
    lines = cli("inspect", "conv.onnx", "--kernels", "-O", "1").out.splitlines()
    assert lines[0].split() == ["#", "kernel", "calls", "code", "made", "in", "first", "for"]
    assert re.fullmatch(
        r"1 +conv2d_relu +1 +[\d.]+ KB +\d+ ms +Conv /Conv_0, BatchNormalization /BatchNormalization_1, Relu /Relu_2 *",
        lines[2],
    )
    assert len(lines) == 3


def test_the_memory(cli: Cli) -> None:
    lines = cli("inspect", "conv.onnx", "--memory", "-O", "0").out.splitlines()
    assert lines[0].split() == ["buffer", "type", "bytes", "steps", "offset"]
    assert lines[1].split()[-3:] == ["2624", "0-1", "0"]  # 8 * 9 * 9 floats, and the rest of a cache line
    assert lines[-1] == "arena 5248 bytes, lower bound 5248"


@pytest.mark.parametrize("kernel", ["conv2d_relu", "1"])
def test_the_schedule(cli: Cli, kernel: str) -> None:
    program, _, trace = cli("inspect", "conv.onnx", "--schedule", kernel, "-O", "1").out.partition("# made by\n")
    assert program.startswith("def conv2d_relu(p0: f32[1, 4, 9, 9], p1: f32[8, 4, 3, 3], p2: f32[8]")
    assert 'with block("' in program
    assert "s.loops(" in trace


def test_the_machine_code(cli: Cli) -> None:
    done = cli("inspect", "conv.onnx", "--asm", "1", "-O", "1")
    assert "conv2d_relu:\n" in done.out
    assert re.search(r"^\tvfmadd\w+", done.out, re.MULTILINE)
    older = cli("inspect", "conv.onnx", "--asm", "1", "-O", "1", "--target", "cpu -mattr=sse4")
    assert "vfmadd" not in older.out
    assert "\tmulps\t" in older.out


def test_sections_come_together(cli: Cli) -> None:
    done = cli("inspect", "conv.onnx", "--graph", "--kernels", "--memory", "--schedule", "1", "--asm", "1")
    places = [done.out.index(t) for t in (" groups, ", "first for", "lower bound", "# made by", "\t.text")]
    assert places == sorted(places)


def test_json(cli: Cli) -> None:
    facts = json.loads(cli("inspect", "mlp.onnx", "--json").out)
    assert facts["inputs"] == ["x: f32[batch, 24]"]
    assert facts["outputs"] == ["y: f32[batch, 10]"]
    assert (facts["target"], facts["nodes"], facts["calls"], len(facts["kernels"])) == ("cpu", 5, 3, 3)
    assert set(facts["kernels"][0]) == {"name", "calls", "code_bytes", "seconds", "first_call"}
    assert list(facts["seconds"]) == ["read", "optimize", "plan", "kernels", "link"]


def test_an_artifact(cli: Cli) -> None:
    cli("compile", "mlp.onnx", "-o", "mlp.weft")
    lines = cli("inspect", "mlp.weft").out.splitlines()
    assert lines[:3] == [
        "mlp.weft, compiled for cpu (x86_64)", "  input    x: f32[batch, 24]", "  output   y: f32[batch, 10]",
    ]  # fmt: skip
    assert re.fullmatch(r"  memory   [\d.]+ KB of code, [\d.]+ KB in all", lines[3])
    facts = json.loads(cli("inspect", "mlp.weft", "--json").out)
    assert facts["machine"] == "x86_64"
    assert "sse4_2" in facts["features"]


@pytest.mark.parametrize("option", [["--graph"], ["--schedule", "1"], ["--asm", "1"], ["--kernels"], ["--memory"]])
def test_an_artifact_has_no_more_to_show(cli: Cli, option: list[str]) -> None:
    cli("compile", "mlp.onnx", "-o", "mlp.weft")
    done = cli("inspect", "mlp.weft", *option)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: mlp.weft is compiled: it holds code, no graph and no loops\n  hint: inspect the model it was made from\n"
    )


@pytest.mark.parametrize("option", ["--schedule", "--asm"])
def test_a_kernel_that_there_is_not(cli: Cli, option: str) -> None:
    done = cli("inspect", "conv.onnx", option, "2", "-O", "1")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: there is no kernel 2\n  hint: the kernels are\n    1 conv2d_relu\n"
