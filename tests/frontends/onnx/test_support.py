"""The table of a model's operators, and the formula to fill in for one that is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.cli.commands import Cli
from tests.frontends.onnx.nodes import model_of, node
from tests.frontends.onnx.test_register_op import registries  # noqa: F401 (a fixture: takes away what a test registers)

import weft
from weft.frontends.onnx.support import Way, stub_of, support_of
from weft.support.errors import ModelError, UnsupportedOperators


def mixed(name: str = "SwirlBy") -> onnx.ModelProto:
    """Returns a model with an operator of each kind."""
    missing = node(name, "a", "y", angle=0.5, turns=2)
    missing.domain = "com.example"
    nodes = [
        node("Add", "x x", "s"),
        node("Add", "s x", "t"),
        node("Celu", "t", "a"),
        missing,
        node("Cast", "y", "z", to=1),
    ]
    made = model_of(
        [*nodes, node("StringConcat", "w w", "v")],
        {"x": (1, [3]), "w": (TensorProto.STRING, [1])},
        ["z", "v"],
        opset=20,
    )
    made.opset_import.append(helper.make_opsetid("com.example", 1))
    return made


def test_each_operator_is_told() -> None:
    rows = {(r.domain, r.name): (r.way, r.nodes) for r in support_of(mixed())}
    assert rows == {
        ("com.example", "SwirlBy"): (Way.MISSING, 1),
        ("", "Add"): (Way.COMPILED, 2),
        ("", "Cast"): (Way.COMPILED, 1),
        ("", "Celu"): (Way.COMPOSITE, 1),
        ("", "StringConcat"): (Way.HOST, 1),
    }
    assert next(iter(rows)) == ("com.example", "SwirlBy")


def test_the_stub_registers_and_says_what_is_left_to_do() -> None:
    """It is Python as it stands; filled in, the model that it was made for runs."""
    model = mixed("SwirlOnce")
    (row,) = [r for r in support_of(model) if r.way is Way.MISSING]
    assert row.stub is not None
    exec(compile(row.stub, "<stub>", "exec"), {})
    with pytest.raises(ModelError, match="the formula of SwirlOnce"):
        weft.compile(model)
    model = mixed("SwirlTwice")
    stub = stub_of(next(n for n in model.graph.node if n.domain))
    head, _ = stub.split("    # such as:")
    scope: dict[str, Any] = {}
    body = "    return compute(x0.shape, lambda *i: x0[i] * angle * turns, 'swirl_twice', dtype=x0.dtype)"
    exec(compile(f"{head}{body}", "<stub>", "exec"), scope)
    x, w = np.array([1, 2, 3], np.float32), np.array(["a"], object)
    z, v = weft.compile(model)(x, w)
    np.testing.assert_allclose(z, 3 * x, rtol=1e-6)
    assert v.tolist() == ["aa"]


def test_what_onnx_defines_itself_has_no_stub() -> None:
    model = model_of([node("Nowhere", "x")], {"x": (1, [3])})
    (row,) = support_of(model)
    assert (row.way, row.stub) == (Way.MISSING, None)


def test_the_error_tells_of_the_formula() -> None:
    with pytest.raises(UnsupportedOperators) as caught:
        weft.compile(mixed("SwirlNever"))
    assert "weft inspect MODEL --support" in (caught.value.hint or "")


def test_the_command_shows_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(mixed("SwirlShown"), tmp_path / "mixed.onnx")
    shown = Cli(capsys, monkeypatch)("inspect", tmp_path / "mixed.onnx", "--support").out
    assert "StringConcat" in shown
    assert "host" in shown
    assert "def swirl_shown(x0: Tensor, *, angle: float = 0.5, turns: int = 2) -> Tensor:" in shown
