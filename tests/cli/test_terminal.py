"""Names of models, files and operators may hold anything: what is shown of them neither controls a terminal nor forges a line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.cli.commands import Cli

import weft
from weft.cli.console import print_table
from weft.support.errors import InputError, MissingFile, ModelError, WeftError
from weft.support.text import printable, printable_line

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x00\x7f\u2028\rforged\nerror: line"


def hostile(op: str = "Tanh", domain: str = "") -> ModelProto:
    """Returns a model in which everything that has a name has an evil one."""

    def name(what: str) -> str:
        return f"{what}{EVIL}"

    nodes = [
        helper.make_node("MatMul", [name("x"), name("w")], [name("m")], name=name("product")),
        helper.make_node(op, [name("m")], [name("y")], name=name("node"), domain=domain),
    ]
    graph = helper.make_graph(
        nodes,
        name("graph"),
        [helper.make_tensor_value_info(name("x"), TensorProto.FLOAT, [name("n"), 6])],
        [helper.make_tensor_value_info(name("y"), TensorProto.FLOAT, None)],
        [helper.make_tensor(name("w"), TensorProto.FLOAT, [6, 4], np.ones(24))],
        doc_string=name("text"),
    )
    opsets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name=name("producer"))
    helper.set_model_props(model, {name("key"): name("value")})
    return model


def controls(text: str) -> set[str]:
    """Returns the characters of *text* that are not printable, newlines aside."""
    return {c for c in text if not c.isprintable() and c not in "\n\t"}


COMMANDS = [
    "run evil.onnx --random --shape BATCH=2",
    "run evil.onnx --random",
    "run evil.onnx --random --profile --json",
    "run evil.onnx --random --profile",
    "inspect evil.onnx",
    "inspect evil.onnx --graph",
    "inspect evil.onnx --kernels",
    "inspect evil.onnx --memory",
    "inspect evil.onnx --schedule 1",
    "inspect evil.onnx --asm 1",
    "inspect evil.onnx --json",
    "inspect evil.onnx --graph --json",
    "compile evil.onnx -o evil.weft",
    "run evil.weft --random",
    "inspect evil.weft",
    "inspect evil.weft --json",
    "cache ls",
    "cache ls --json",
    "run evil.onnx",
    "run evil.onnx --input x=x.npy",
    "run unknown.onnx --random",
    "run wrong.onnx --random",
    "compile evil.onnx -o out/",
    "run evil.onnx --random --save saved",
    "run evil.onnx --random --trace trace.json -v",
]


@pytest.mark.filterwarnings("always")
def test_no_command_shows_control_characters(cli: Cli, tmp_path: Path) -> None:
    wrong = hostile()
    wrong.graph.node[0].input[0] = f"nothing{EVIL}"
    evil = tmp_path / "evil\x1b[2J.onnx"
    for path, model in [
        (Path("evil.onnx"), hostile()),
        (Path("unknown.onnx"), hostile(f"Odd{EVIL}", f"own{EVIL}")),
        (Path("wrong.onnx"), wrong),
        (evil, hostile()),
    ]:
        path.write_bytes(model.SerializeToString())
    shown: dict[str, str] = {}
    for words in COMMANDS:
        done = cli(*words.split())
        assert "bug in Weft" not in done.err, words
        shown[words] = done.out + done.err
    done = cli("run", evil, "--random")
    shown["an evil file"] = done.out + done.err
    shown["cache"] = cli("cache", "ls").out
    found = {words: controls(text) for words, text in shown.items()}
    assert {words: c for words, c in found.items() if c} == {}
    forged = {
        words for words, text in shown.items() if any(line.startswith("error: line") for line in text.splitlines())
    }
    assert {w: shown[w] for w in forged} == {}
    for made in [Path("out") / "model.h", *Path("saved").iterdir()]:
        assert controls(made.read_text() if made.suffix == ".h" else made.name) == set()


def test_json_stays_json(cli: Cli) -> None:
    Path("evil.onnx").write_bytes(hostile().SerializeToString())
    told = json.loads(cli("run", "evil.onnx", "--random", "--json").out)
    assert list(told["outputs"]) == [f"y{EVIL}"]


def test_messages_in_python() -> None:
    with pytest.raises(ModelError) as raised:
        weft.compile(hostile(f"Odd{EVIL}"), cache=False)
    assert controls(str(raised.value)) == set()
    assert str(WeftError("a\x1bb\nc", where="d\ne")) == "d\\ne: a\\x1bb\nc"


def test_printable_text() -> None:
    assert printable("é … 語 a\tb\n") == "é … 語 a\tb\n"
    assert printable("\x1b[2J\x9b\u202e\r\ud800") == "\\x1b[2J\\x9b\\u202e\\r\\ud800"
    assert printable_line("a\nb") == "a\\nb"


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name"], [[EVIL]], "name")
    assert controls(capsys.readouterr().out) == set()


def test_a_missing_file_is_pythons_own_error_too(tmp_path: Path) -> None:
    for opening in (weft.compile, weft.InferenceSession):
        with pytest.raises(FileNotFoundError) as raised:
            opening(str(tmp_path / "gone.onnx"))
        assert isinstance(raised.value, MissingFile)
        again = pickle.loads(pickle.dumps(raised.value))
        assert type(again) is MissingFile
        assert str(again) == str(raised.value) != ""


def test_wrong_arguments_are_value_errors() -> None:
    with pytest.raises(ValueError, match="opt_level") as raised:
        weft.compile("x.onnx", opt_level=9)
    assert isinstance(raised.value, InputError)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
