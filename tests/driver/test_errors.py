"""What is said when something is wrong with a model or a call, whole, in Python and at the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.cli.commands import Cli
from tests.models import matmul, mlp
from tests.support.formats import READS

import weft
from weft.cli.onnx_builder import GraphBuilder
from weft.codegen.llvm.backend import LlvmBackend
from weft.driver import kernel_request
from weft.support.errors import MissingFile, ScheduleError

X = [("x", [2])]
x = np.ones((2, 24), np.float32)


def graph(
    nodes: Sequence[onnx.NodeProto], inputs: Sequence[tuple[str, Sequence[int]]] = X, output: str = "y"
) -> onnx.ModelProto:
    """Returns a model without checking it."""
    declared = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs]
    made = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(helper.make_graph(nodes, "net", declared, made), opset_imports=opsets, ir_version=8)


def node(op: str, inputs: str, output: str, name: str, domain: str = "") -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], name=name, domain=domain)


def written(model: onnx.ModelProto) -> Callable[[Path], Path]:
    return saved(model.SerializeToString())


def saved(data: bytes) -> Callable[[Path], Path]:
    def save(folder: Path) -> Path:
        (folder / "model.onnx").write_bytes(data)
        return folder / "model.onnx"

    return save


def with_external_data(contents: bytes | None) -> Callable[[Path], Path]:
    """Returns a maker of a model whose weights are in another file, which then gets these *contents*, or goes."""

    def save(folder: Path) -> Path:
        path = folder / "model.onnx"
        onnx.save(mlp(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        if contents is None:
            (folder / "weights.bin").unlink()
        else:
            (folder / "weights.bin").write_bytes(contents)
        return path

    return save


def compiled(folder: Path) -> Path:
    weft.compile(mlp()).save(folder / "model.weft")
    return folder / "model.weft"


WHOLE = mlp().SerializeToString()
AFTER = 6  # bytes of the file that come after the graph
MODELS: dict[str, tuple[Callable[[Path], Path], type[weft.WeftError], str]] = {
    "no file": (
        lambda folder: folder / "nowhere.onnx",
        MissingFile,
        "there is no file DIR/nowhere.onnx\n  hint: the current folder is HERE",
    ),
    "a folder": (
        lambda folder: folder,
        weft.ModelError,
        "DIR is a folder, not a model\n"
        "  hint: give the path of a file in it; folders that are models have a Manifest.json or a saved_model.pb",
    ),
    "an empty file": (saved(b""), weft.ModelError, "DIR/model.onnx is empty\n  hint: download or export it again"),
    "another kind of file": (
        saved(b"#!/bin/sh\necho no model\n"),
        weft.ModelError,
        f"DIR/model.onnx is not a model that Weft can read; it begins with '#!/bin/sh\\necho n'\n  hint: {READS}",
    ),
    "a compiled model": (
        compiled,
        weft.ModelError,
        "DIR/model.weft is a compiled model already\n  hint: load it with weft.load('DIR/model.weft')",
    ),
    "a truncated file": (
        saved(WHOLE[:5000]),
        weft.ModelError,
        f"DIR/model.onnx is cut short: it has 5000 bytes, and at least {len(WHOLE) - 5000 - AFTER} more should follow\n"
        "  hint: download or export it again",
    ),
    "unsupported operators": (
        written(
            graph([node("Foo", "x", "a", "/foo"), node("Bar", "a", "y", "/bar", "com.acme"), node("Foo", "x", "b", "")])
        ),
        weft.UnsupportedOperators,
        "the model uses 2 operators that Weft does not have:\n"
        "  Foo (ai.onnx 17), 2 nodes: /foo, b\n"
        "  Bar (com.acme (not imported)), 1 node: /bar\n"
        "  hint: `python -m weft.frontends.onnx.table` lists those it has; export the model without these, "
        "or as functions of ONNX's standard operators; weft.register_op gives Weft a formula of one, and "
        "`weft inspect MODEL --support` prints it to be filled in",
    ),
    "a dangling input": (
        written(graph([node("Relu", "z", "y", "/relu")])),
        weft.ModelError,
        "Relu /relu: reads 'z', which no node of the model makes\n"
        "  hint: the model is damaged or was cut; check it with onnx.checker.check_model",
    ),
    "a dangling output": (
        written(graph([node("Relu", "x", "y", "/relu")], output="z")),
        weft.ModelError,
        "net: the output 'z' is not made by any node\n"
        "  hint: the model is damaged or was cut; check it with onnx.checker.check_model",
    ),
    "a cycle": (
        written(graph([node("Add", "x y", "a", "/add"), node("Relu", "a", "y", "/relu")])),
        weft.ModelError,
        "net: the nodes Add /add -> Relu /relu -> Add /add form a cycle\n"
        "  hint: an ONNX graph must have none; write a recurrence with Loop or Scan",
    ),
    "shapes that do not fit": (
        written(graph([node("Add", "x w", "y", "/add")], [("x", [2]), ("w", [3])])),
        weft.ModelError,
        "Add /add: the shapes (2) and (3) do not broadcast together; given x: f32[2], w: f32[3]\n"
        "  hint: change what makes these inputs, or how the model was exported; onnx.checker.check_model may say more",
    ),
    "missing external data": (
        with_external_data(None),
        weft.ModelError,
        "tensor weight_0: its data is in weights.bin, which is not in DIR\n"
        "  hint: put that file beside the model; an .onnx file with external data is not complete alone",
    ),
    "truncated external data": (
        with_external_data(bytes(100)),
        weft.ModelError,
        "tensor weight_0: its data in DIR/weights.bin ends after 100 of 3072 bytes\n"
        "  hint: the file is cut short: download or export it again",
    ),
}
CALLS: dict[str, tuple[Callable[[weft.Model], object], str]] = {
    "no such input": (
        lambda m: m(y=x),
        "there is no input 'y'\n  hint: the model takes (x: f32[batch, 24])",
    ),
    "a wrong size": (
        lambda m: m(x[:, :23]),
        "input 'x' has shape (2, 23): dimension 1 is 23, not 24\n  hint: the model takes x: f32[batch, 24]",
    ),
    "a wrong rank": (
        lambda m: m(x[0]),
        "input 'x' has 1 dimensions (24,), and the model takes x: f32[batch, 24]\n  hint: reshape it to 2 dimensions",
    ),
    "a wrong dtype": (
        lambda m: m(x.astype(np.float64)),
        "input 'x' has dtype float64, and the model takes x: f32[batch, 24]\n"
        "  hint: convert it yourself, so that nothing is lost unseen: x.astype('float32')",
    ),
    "no array": (
        lambda m: m([[1.0] * 24]),
        "input 'x' is a list, not an array\n  hint: give x: f32[batch, 24] as a NumPy array, a torch tensor or any array "
        "with DLPack, such as np.asarray(value, dtype=np.float32)",
    ),
    "a missing input": (
        lambda m: m(),
        "missing inputs: x\n  hint: the model takes (x: f32[batch, 24])",
    ),
    "too many inputs": (
        lambda m: m(x, x),
        "2 inputs were given, and there are only 1\n  hint: the model takes (x: f32[batch, 24])",
    ),
    "an input given twice": (
        lambda m: m(x, x=x),
        "input 'x' was given twice, in order and by name\n  hint: the model takes (x: f32[batch, 24])",
    ),
}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(capsys, monkeypatch)


def placed(message: str, folder: Path) -> str:
    """Returns a message with the folders of the test put in."""
    return message.replace("DIR", str(folder)).replace("HERE", str(Path.cwd()))


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, tmp_path: Path, cli: Cli) -> None:
    make, kind, message = MODELS[name]
    path = make(tmp_path)
    with pytest.raises(weft.ModelError) as told:
        weft.compile(path)
    assert type(told.value) is kind
    assert str(told.value) == placed(message, tmp_path)
    done = cli("compile", path, "-o", tmp_path / "out")
    assert (done.code, done.out, done.err) == (1, "", f"error: {placed(message, tmp_path)}\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    call, message = CALLS[name]
    model = weft.compile(mlp())
    with pytest.raises(weft.InputError) as told:
        call(model)
    assert str(told.value) == message


def test_two_inputs_that_disagree() -> None:
    g = GraphBuilder("two", 0)
    a, b = g.input("a", ("n", 4)), g.input("b", ("n", 4))
    g.output(g.op("Add", a, b), "y")
    with pytest.raises(weft.InputError) as told:
        weft.compile(g.model())(np.ones((3, 4), np.float32), np.ones((2, 4), np.float32))
    assert str(told.value) == (
        "input 'b' has shape (2, 4): dimension 0 is 2, not 3 (n is 3 by dimension 0 of 'a')\n"
        "  hint: the model takes b: f32[n, 4]"
    )


def test_a_missing_input() -> None:
    model = weft.compile(matmul(m="n", k=20, constant=False))
    with pytest.raises(weft.InputError) as told:
        model(np.ones((3, 20), np.float32))
    assert str(told.value) == "missing inputs: b\n  hint: the model takes (a: f32[n, 20], b: f32[20, 12])"


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            {"bach": 2},
            "shapes has 'bach', which is no symbolic dimension of the model\n  hint: inputs: x; symbolic dimensions: batch",
        ),
        (
            {"batch": -1},
            "the input 'x' has a dimension of size -1: (batch, 24)\n  hint: give it a size of 0 or more",
        ),
    ],
)
def test_shapes(shapes: dict[str, int], message: str) -> None:
    with pytest.raises(weft.ModelError) as told:
        weft.compile(mlp(), shapes=shapes)
    assert str(told.value) == message


def test_what_is_no_model() -> None:
    with pytest.raises(weft.ModelError) as told:
        weft.compile(42)
    assert str(told.value) == (f"an object of type int is not a model that Weft can read\n  hint: {READS}")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ScheduleError("there is no loop", where="split"), "split: there is no loop"),
        (KeyError("thing"), "KeyError: 'thing'"),
    ],
)
def test_a_kernel_that_cannot_be_made_names_the_nodes(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cli: Cli
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(kernel_request, "schedule_program", fail)
    model = graph([node("Mul", "x x", "a", "/mul"), node("Relu", "a", "y", "/relu")])
    message = (
        f"Mul /mul, Relu /relu: no code could be made for it: {said}\n"
        "  hint: this is a bug in Weft, not in the model; opt_level=0 may get around it"
    )
    with pytest.raises(weft.LoweringError) as told:
        weft.compile(model)
    assert str(told.value) == message
    done = cli("run", written(model)(tmp_path), "--random")
    assert (done.code, done.out, done.err) == (1, "", f"error: {message}\n")


def test_code_generation_that_fails_names_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise weft.ToolchainError("LLVM refuses the module", hint="look at it")

    monkeypatch.setattr(LlvmBackend, "compile", fail)
    with pytest.raises(weft.LoweringError, match=re.escape("Relu /relu: no code could be made for it: LLVM refuses")):
        weft.compile(graph([node("Relu", "x", "y", "/relu")]))
