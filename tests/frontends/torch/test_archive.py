"""Files of `torch.export.save`: read without pickles, and refused where their texts are not those of plain programs."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.modules import array, numbers  # noqa: E402

import weft  # noqa: E402
from weft.frontends.dispatch import to_graph  # noqa: E402
from weft.frontends.torch.program_json import checked_program  # noqa: E402
from weft.graph import print_graph  # noqa: E402

X = numbers(5, 3)


@pytest.fixture(scope="module")
def saved() -> bytes:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    file = io.BytesIO()
    torch.export.save(torch.export.export(module, (X,), dynamic_shapes=({0: torch.export.Dim("b")},)), file)
    return file.getvalue()


def changed(saved: bytes, change: Callable[[Any], None]) -> bytes:
    """Returns the archive with its program changed."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved)) as old, zipfile.ZipFile(made, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("models/model.json"):
                program = json.loads(data)
                change(program)
                data = json.dumps(program).encode()
            new.writestr(item.filename, data)
    return made.getvalue()


def test_a_file_is_read(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(saved)
    wanted = torch.export.load(io.BytesIO(saved)).module()(X)
    np.testing.assert_allclose(weft.compile(path)(array(X)), array(wanted), rtol=1e-5, atol=1e-6)
    assert print_graph(to_graph(saved)) == print_graph(to_graph(str(path)))


class InPlace(torch.nn.Module):  # type: ignore[misc,name-defined]
    """A network as PyTorch traces it: changes in place, and buffers beside parameters; one buffer counts the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Any, factor: int = 2, *, shift: Any = None) -> Any:
        self.calls += 1
        y = self.norm(x).detach()
        y.add_(1).relu_()
        y[:, 0] = factor
        return {"y": y if shift is None else y + shift, "calls": self.calls.clone()}


@pytest.mark.parametrize(
    ("given", "named"), [((X,), {}), ((X, 3), {}), ((X,), {"shift": X})], ids=["one", "number", "named"]
)
def test_a_file_of_a_program_as_it_was_traced(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    module, file = InPlace().eval(), io.BytesIO()
    program = torch.export.export(module, given, named)
    torch.export.save(program, file)
    wanted = program.module()(*given, **named)
    tensors = [array(x) for x in (*given, *named.values()) if isinstance(x, torch.Tensor)]
    model = weft.compile(file.getvalue())
    found = model.run(tensors, state=model.new_state())
    for a, b in zip(found, wanted.values(), strict=True):
        np.testing.assert_allclose(a, array(b), rtol=1e-5, atol=1e-6)


def test_operators_of_packages_that_weft_imports_are_read_once_they_are_registered() -> None:
    """Such as transformers's products of groups: the file names them alone."""
    name = "grouped_mm_fallback"
    text = {"graph_module": {"graph": {"nodes": [{"target": f"torch.ops.transformers.{name}.default"}], "inputs": []}}}
    text["graph_module"]["signature"] = {"input_specs": [], "output_specs": []}
    if hasattr(torch.ops.transformers, name):
        assert checked_program(text, "m.pt2") is text
        return
    with pytest.raises(weft.WeftError, match=f"m.pt2 calls transformers.{name}, which is not registered here"):
        checked_program(text, "m.pt2")


class Paired(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Rows of one tensor beside twice as many of another."""

    def forward(self, x: Any, y: Any) -> Any:
        return torch.cat([x, y]).softmax(0), x.flatten() @ y[: x.shape[0]].flatten(), y.reshape(-1, 2, 3)


def test_sizes_that_a_file_leaves_open(tmp_path: Path) -> None:
    """A size with limits, and one that is twice that: each call may have another, within the limits."""
    rows, path = torch.export.Dim("rows", min=3, max=9), tmp_path / "model.pt2"
    dims = ({0: rows}, {0: 2 * rows})
    torch.export.save(torch.export.export(Paired(), (X[:4], numbers(8, 3)), dynamic_shapes=dims), path)
    model = weft.compile(path)
    for n in (3, 9, 5):
        given = numbers(n, 3, seed=n), numbers(2 * n, 3, seed=n + 1)
        for a, b in zip(model(*map(array, given)), Paired()(*given), strict=True):
            np.testing.assert_allclose(a, array(b), rtol=1e-5, atol=1e-6)
    with pytest.raises(weft.InputError, match="was compiled for 3 to 9"):
        model(array(numbers(10, 3)), array(numbers(20, 3)))
    with pytest.raises(weft.InputError):
        model(array(numbers(4, 3)), array(numbers(7, 3)))


EVIL = "__import__('os').abort()"


def _target(program: Any) -> None:
    program["graph_module"]["graph"]["nodes"][0]["target"] = "torch.hub.load"


def _name(program: Any) -> None:
    program["graph_module"]["graph"]["inputs"][2]["as_tensor"]["name"] = f"x={EVIL}"


def _size(program: Any) -> None:
    for meta in program["graph_module"]["graph"]["tensor_values"].values():
        meta["sizes"][0] = {"as_expr": {"expr_str": EVIL, "hint": None}}


def _power(program: Any) -> None:
    for meta in program["graph_module"]["graph"]["tensor_values"].values():
        meta["sizes"][0] = {"as_expr": {"expr_str": "Pow(Integer(9), Integer(999999999))", "hint": None}}


@pytest.mark.parametrize("change", [_target, _name, _size, _power])
def test_texts_that_would_run_are_refused(saved: bytes, change: Callable[[Any], None]) -> None:
    with pytest.raises(weft.ModelError, match="which an exported program of plain operators does not have"):
        to_graph(changed(saved, change))


def test_guards_are_not_run(saved: bytes) -> None:
    def change(program: Any) -> None:
        program["guards_code"] = [EVIL]

    to_graph(changed(saved, change))


def test_pickles_are_refused(tmp_path: Path) -> None:
    torch.save({"x": X}, tmp_path / "weights.pt")
    with pytest.raises(weft.ModelError, match="holds pickled objects of PyTorch's"):
        to_graph(tmp_path / "weights.pt")


def test_damaged_files_are_refused(saved: bytes) -> None:
    choose = random.Random(0)
    for _ in range(60):
        bad = bytearray(saved)
        for _ in range(choose.choice((1, 4, 16))):
            bad[choose.randrange(len(bad))] = choose.randrange(256)
        cut = bytes(bad[: choose.choice((len(bad), choose.randrange(4, len(bad))))])
        try:
            to_graph(b"PK\x03\x04" + cut[4:])
        except weft.WeftError:
            continue


@pytest.mark.filterwarnings("ignore:No complete tensor found:UserWarning")
def test_tensors_of_more_elements_than_the_file_has() -> None:
    module = torch.nn.Module()
    module.register_buffer("table", torch.ones(1, 3).expand(1000, 3))
    module.forward = lambda x: x + module.table
    made = io.BytesIO()
    torch.export.save(torch.export.export(module, (torch.ones(1000, 3),)), made)
    with pytest.raises(weft.ModelError) as told:
        to_graph(made.getvalue())
    assert str(told.value) == (
        "the model given as bytes has 3000 elements in 'table', of which 3 are in the file\n"
        "  hint: call contiguous() on it before the module is exported"
    )
