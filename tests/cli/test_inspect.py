"""`weft inspect` shows what became of a model, readably."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from tests.cli.commands import Cli
from tests.cli.test_main import WEFT, on_a_terminal

import weft
from weft.cli import console
from weft.cost import Layout, parse_plan
from weft.driver.options import CompileOptions
from weft.loop import parse_program, print_program
from weft.targets import host


def test_the_summary(cli: Cli) -> None:
    done = cli("inspect", "mlp.onnx")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[:3] == ["mlp.onnx for cpu", "  input    x: f32[batch, 24]", "  output   y: f32[batch, 10]"]
    assert re.fullmatch(r"  work     5 nodes became 3 calls of \d+ kernels", lines[3])
    assert re.fullmatch(
        r"  memory   [\d.]+ KiB of code, [\d.]+ KiB of constants; arena \(\d+ \* batch\) bytes, lower bound \(\d+ \* batch\)",
        lines[4],
    )
    assert re.fullmatch(
        r"  compiled in [\d.]+ m?s: read .*, optimize .*, plan .*, kernels .*, link [\d.]+ m?s"
        r"(; (\d+) of \d+ kernels came from the cache)?",
        lines[5],
    )
    assert lines[6:] == [
        "look closer with --graph, --kernels, --memory, --schedule KERNEL, --plan KERNEL, --asm KERNEL"
    ]


def test_the_graph(cli: Cli) -> None:
    done = cli("inspect", "conv.onnx", "--graph", "-O", "0")
    assert done.out.splitlines()[:4] == [
        "3 groups, 3 distinct; the numbers are those of the kernels",
        "   1  /Conv_0_output_0: f32[1, 8, 9, 9] = conv2d(x, weight_0)",
        "   2  /BatchNormalization_1_output_0: f32[1, 8, 9, 9] = batch_norm"
        "(/Conv_0_output_0, weight_1, weight_2, weight_3, weight_4)",
        "   3  y: f32[1, 8, 9, 9] = relu(/BatchNormalization_1_output_0)",
    ]


def test_the_numbers_are_the_same_everywhere(cli: Cli) -> None:
    made = weft.build("resnet.onnx", options=CompileOptions(opt_level=1))
    names = {n: k.name for n, k in enumerate(made.kernels.values(), 1)}
    listed = cli("inspect", "resnet.onnx", "--kernels", "-O", "1").out.splitlines()[2:]
    assert {int(line.split()[0]): line.split()[1] for line in listed} == names
    calls = cli("inspect", "resnet.onnx", "--graph", "-O", "1").out.splitlines()[1:]
    found = [int(m[1]) for line in calls if (m := re.match(r" *(\d+)  \S", line))]
    assert [names[n] for n in found] == [made.kernels[g.key].name for g in made.fused.groups]
    for n in (1, len(names)):
        assert cli("inspect", "resnet.onnx", "--schedule", n, "-O", "1").out.startswith(f"# kernel {n}: {names[n]}")
        assert cli("inspect", "resnet.onnx", "--asm", n, "-O", "1").out.startswith(f"# kernel {n}: {names[n]}")


def test_the_kernels(cli: Cli) -> None:
    lines = cli("inspect", "conv.onnx", "--kernels", "-O", "1").out.splitlines()
    assert lines[0].split() == ["#", "kernel", "calls", "code", "made", "in", "first", "for"]
    assert re.fullmatch(
        r"1 +conv2d_relu +1 +[\d.]+ KiB +\d+ ms +Conv /Conv_0, BatchNormalization /BatchNormalization_1, Relu /Relu_2 *",
        lines[2],
    )
    assert len(lines) == 3


def test_the_memory(cli: Cli) -> None:
    lines = cli("inspect", "conv.onnx", "--memory", "-O", "0").out.splitlines()
    assert lines[0].split() == ["buffer", "type", "bytes", "steps", "offset"]
    assert lines[2].split()[-3:] == ["2624", "0-1", "0"]  # 8 * 9 * 9 floats, and the rest of a cache line
    assert lines[-1] == "arena 5248 bytes, lower bound 5248"


@pytest.mark.parametrize("kernel", ["conv2d_relu", "1"])
def test_the_schedule(cli: Cli, kernel: str) -> None:
    program, _, trace = cli("inspect", "conv.onnx", "--schedule", kernel, "-O", "1").out.partition("# made by\n")
    head, _, program = program.partition("\n")
    assert head == "# kernel 1: conv2d_relu, for Conv /Conv_0, BatchNormalization /BatchNormalization_1, Relu /Relu_2"
    assert program.startswith("def conv2d_relu(p0: f32[1, 4, 9, 9], p1: f32[8, 4, 3, 3], p2: f32[8]")
    assert print_program(parse_program(program)).strip() == program.strip()
    assert "s.loops(" in trace


def test_the_machine_code(cli: Cli) -> None:
    done = cli("inspect", "conv.onnx", "--asm", "1", "-O", "1")
    assert "conv2d_relu:\n" in done.out
    assert re.search(r"^\tvfmadd\w+" if host().isa.fma else r"^\tmulps", done.out, re.MULTILINE)
    older = cli("inspect", "conv.onnx", "--asm", "1", "-O", "1", "--target", "cpu -mattr=sse4")
    assert "vfmadd" not in older.out
    assert "\tmulps\t" in older.out


def test_kernels_for_a_device_that_is_not_here(cli: Cli) -> None:
    done = cli("inspect", "mlp.onnx", "--target", "metal", "--kernels", "--asm", "1")
    assert done.out.startswith("all kernels are for metal, in metal\n")
    assert "kernel void fn_" in done.out
    assert "[[threadgroup_position_in_grid]]" in done.out


def test_kernels_of_two_machines(cli: Cli) -> None:
    """Each is named with the machine that runs it."""
    done = cli("inspect", "mlp.onnx", "--target", "metal+cpu", "--kernels")
    head, _, *rows = done.out.splitlines()
    assert head.split() == ["#", "kernel", "device", "calls", "code", "made", "in", "first", "for"]
    facts = json.loads(cli("inspect", "mlp.onnx", "--target", "metal+cpu", "--json").out)
    assert facts["target"] == "metal+cpu"
    assert {k["device"] for k in facts["kernels"]} <= {"metal", "cpu"}
    assert [row.split()[2] for row in rows] == [k["device"] for k in facts["kernels"]]


def test_sections_come_together(cli: Cli) -> None:
    done = cli("inspect", "conv.onnx", "--graph", "--kernels", "--memory", "--schedule", "1", "--asm", "1")
    places = [done.out.index(t) for t in (" groups, ", "first for", "lower bound", "# made by", "\t.text")]
    assert places == sorted(places)


def test_json(cli: Cli) -> None:
    facts = json.loads(cli("inspect", "mlp.onnx", "--json").out)
    assert facts["inputs"] == ["x: f32[batch, 24]"]
    assert facts["outputs"] == ["y: f32[batch, 10]"]
    assert (facts["target"], facts["nodes"], facts["calls"]) == ("cpu", 5, 3)
    assert set(facts["kernels"][0]) == {"name", "calls", "code_bytes", "seconds", "first_call", "device"}
    assert list(facts["seconds"]) == ["read", "optimize", "plan", "kernels", "link"]


def test_an_artifact(cli: Cli) -> None:
    cli("compile", "mlp.onnx", "-o", "mlp.weft")
    lines = cli("inspect", "mlp.weft").out.splitlines()
    assert lines[:3] == [
        "mlp.weft, compiled for cpu (x86_64)",
        "  input    x: f32[batch, 24]",
        "  output   y: f32[batch, 10]",
    ]
    assert re.fullmatch(r"  memory   [\d.]+ KiB of code, [\d.]+ KiB in all", lines[3])
    assert lines[4].startswith(f"  made by  Weft {weft.__version__} (llvmlite 0.")
    assert lines[4].endswith(") with opt_level=3 precision=model, records: none")
    digest = hashlib.sha256(Path("mlp.onnx").read_bytes()).hexdigest()
    assert lines[5:] == [f"  from     {digest}  mlp.onnx"]
    facts = json.loads(cli("inspect", "mlp.weft", "--json").out)
    assert facts["notes"]["model"] == f"{digest}  mlp.onnx\n"
    assert facts["arena_bytes"] is None
    assert facts["machine"] == "x86_64"
    assert "sse4_2" in facts["features"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("option", [["--graph"], ["--schedule", "1"], ["--asm", "1"], ["--kernels"], ["--memory"]])
def test_an_artifact_has_no_more_to_show(cli: Cli, option: list[str]) -> None:
    cli("compile", "mlp.onnx", "-o", "mlp.weft")
    done = cli("inspect", "mlp.weft", *option)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: mlp.weft is compiled: it holds code, no graph and no loops\n  hint: inspect the model it was made from\n"
    )


def test_json_has_what_is_asked_for(cli: Cli) -> None:
    asked = ["--graph", "--memory", "--schedule", "1", "--asm", "1"]
    facts = json.loads(cli("inspect", "conv.onnx", "--json", "-O", "0", *asked).out)
    assert len(facts["graph"]) == 4
    assert facts["memory"][0] == {
        "buffer": "/Conv_0_output_0",
        "type": "f32[1, 8, 9, 9]",
        "bytes": "2624",
        "steps": "0-1",
        "offset": "0",
    }
    assert facts["schedule"]["kernel"] == facts["asm"]["kernel"] == facts["kernels"][0]["name"] == "conv2d"
    assert parse_program(facts["schedule"]["program"]).entry.name == "conv2d"
    assert "conv2d:" in facts["asm"]["text"]


def test_equal_calls_have_the_number_of_their_kernel(cli: Cli) -> None:
    x, y = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy"]
    nodes = [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Exp", ["a"], ["y"])]
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(
        helper.make_model(helper.make_graph(nodes, "net", [x], [y]), opset_imports=opsets, ir_version=8), "exp.onnx"
    )
    lines = cli("inspect", "exp.onnx", "--graph", "-O", "0").out.splitlines()
    assert lines[0].startswith("2 groups, 1 distinct")
    assert [line.split()[0] for line in lines[1:]] == ["1", "1"]


def check_width(shown: str, columns: int) -> None:
    lines = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown).splitlines()
    assert len(lines) > 3
    assert [line for line in lines if len(line.expandtabs()) > columns] == []


@pytest.mark.parametrize("columns", [80, 50])
def test_everything_fits_a_terminal(cli: Cli, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.out, "_force_terminal", True)
    monkeypatch.setattr(console.out, "_width", columns)
    asked = ("--graph", "--kernels", "--memory", "--schedule", "1", "--asm", "1")
    check_width(cli("inspect", "resnet.onnx", *asked, "-q").out, columns)


def test_the_summary_fits_a_real_terminal(cli: Cli) -> None:
    check_width(on_a_terminal([*WEFT, "inspect", "resnet.onnx", "-q"], 60), 60)


def test_the_full_text_on_a_terminal(cli: Cli) -> None:
    full = on_a_terminal([*WEFT, "inspect", "conv.onnx", "--schedule", "1", "-q", "--full"])
    assert max(map(len, full.splitlines())) > 80
    assert "reads(" in full


@pytest.mark.parametrize("option", ["--schedule", "--asm"])
def test_a_kernel_that_there_is_not(cli: Cli, option: str) -> None:
    done = cli("inspect", "conv.onnx", option, "2", "-O", "1")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: there is no kernel 2\n  hint: the kernels are\n    1 conv2d_relu\n"


def test_the_plan_of_the_graph(cli: Cli) -> None:
    head, *lines = cli("inspect", "conv.onnx", "--plan", "graph", "--full").out.splitlines()
    assert head.startswith("# graph ")
    plan = parse_plan("\n".join(lines))
    assert any(isinstance(step.decision, Layout) for step in plan.steps)
    assert any(line.startswith("#   ") and " x  Layout(" in line for line in lines)
    facts = json.loads(cli("inspect", "conv.onnx", "--plan", "graph", "--json").out)["plan"]
    assert [d["chosen"] for d in facts["decisions"]] == [str(step.decision) for step in plan.steps]
