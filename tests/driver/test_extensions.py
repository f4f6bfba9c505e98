"""Operators from outside of Weft: what is kept of a model never outlives their formulas."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import weft
from weft.cli.onnx_builder import GraphBuilder
from weft.driver.cache.cache_folder import NAME
from weft.driver.cache.code_cache import default_cache
from weft.frontends.onnx.call import Call, Results
from weft.frontends.onnx.registry import TABLE, translates
from weft.ops import OPERATORS, operator
from weft.te import Tensor, compute

DOMAIN = "com.example"
X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5

SCRIPT = """
import sys
import numpy as np
import weft
from weft.cli.onnx_builder import GraphBuilder
from weft.frontends.onnx.registry import translates
from weft.ops import operator
from weft.te import compute

@operator("scaled")
def scaled(x):
    return compute(x.shape, lambda *i: x[i] * {factor}, "scaled", dtype=x.dtype)

@translates("Scaled", domain="com.example")
def _scaled(c):
    return c.add("scaled", c.input(0))

print(weft.compile(sys.argv[1])(np.ones((3, 4), np.float32)).ravel()[0])
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / NAME


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Takes away what a test registers, and gives back what it replaces."""
    operators, table = dict(OPERATORS), dict(TABLE)
    yield
    OPERATORS.clear()
    OPERATORS.update(operators)
    TABLE.clear()
    TABLE.update(table)


def register(factor: float, name: str = "scaled", op: str = "Scaled") -> None:
    """Registers an operator that multiplies, in place of the one before."""
    OPERATORS.pop(name, None)
    TABLE.pop((DOMAIN, op), None)

    @operator(name)
    def scaled(x: Tensor) -> Tensor:
        return compute(x.shape, lambda *i: x[i] * factor, name, dtype=x.dtype)

    @translates(op, domain=DOMAIN)
    def _scaled(c: Call) -> Results:
        return c.add(name, c.input(0))


def custom(path: Path, op: str = "Scaled") -> Path:
    """A model of one node of the domain."""
    made = helper.make_node(op, ["x"], ["y"], domain=DOMAIN)
    shape = helper.make_tensor_value_info("x", 1, (3, 4)), helper.make_tensor_value_info("y", 1, (3, 4))
    graph = helper.make_graph([made], "custom", [shape[0]], [shape[1]])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    return path


def plain(path: Path, op: str = "Relu") -> Path:
    """A model of one node that Weft knows."""
    g = GraphBuilder(op)
    g.output(g.op(op, g.input("x", (3, 4))), "y")
    path.write_bytes(g.model().SerializeToString())
    return path


def run(path: Path) -> np.ndarray[Any, Any]:
    return np.asarray(weft.compile(path)(X))


def kept(folder: Path, kind: str) -> int:
    return len(list(folder.glob(f"{kind}-*")))


def test_a_changed_formula_is_compiled_in_another_process(tmp_path: Path) -> None:
    path = custom(tmp_path / "m.onnx")
    for factor in (2.0, 2.0, 3.0):
        command = [sys.executable, "-W", "error", "-c", SCRIPT.replace("{factor}", str(factor)), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
        assert done.stdout.strip() == str(factor)


def test_a_changed_formula_is_compiled_in_this_process(tmp_path: Path, folder: Path) -> None:
    path = custom(tmp_path / "m.onnx")
    for factor in (2.0, 3.0, -0.5):
        register(factor)
        np.testing.assert_array_equal(run(path), X * np.float32(factor))
    assert (kept(folder, "model"), kept(folder, "kernel")) == (0, 3)


def test_its_kernels_are_kept(tmp_path: Path) -> None:
    path = custom(tmp_path / "m.onnx")
    register(2.0)
    assert all(k.spans for k in weft.build(path, cache=default_cache()).kernels.values())
    assert not any(k.spans for k in weft.build(path, cache=default_cache()).kernels.values())


def test_equal_formulas_share_a_kernel_whatever_they_are_called(tmp_path: Path, folder: Path) -> None:
    one, two = custom(tmp_path / "one.onnx"), custom(tmp_path / "two.onnx", "Tripled")
    register(3.0)
    register(3.0, "tripled", "Tripled")
    np.testing.assert_array_equal(run(one), X * 3)
    (made,) = weft.build(two, cache=default_cache()).kernels.values()
    assert made.name == "tripled"
    assert not made.spans  # it comes from the cache
    np.testing.assert_array_equal(run(two), X * 3)
    assert kept(folder, "kernel") == 1


def test_other_models_are_kept_all_the_same(tmp_path: Path, folder: Path) -> None:
    register(2.0)
    path = plain(tmp_path / "m.onnx")
    for _ in range(2):
        np.testing.assert_array_equal(run(path), np.maximum(X, 0))
    assert kept(folder, "model") == 1


def test_a_translation_alone_is_enough(tmp_path: Path, folder: Path) -> None:
    def translate(op: str) -> None:
        TABLE.pop((DOMAIN, "Scaled"), None)
        translates("Scaled", domain=DOMAIN)(lambda c: c.add(op, c.input(0)))

    path = custom(tmp_path / "m.onnx")
    for op, wanted in (("neg", -X), ("abs", np.abs(X))):
        translate(op)
        np.testing.assert_array_equal(run(path), wanted)
    assert kept(folder, "model") == 0


def replace_operator(name: str) -> None:
    OPERATORS.pop(name)

    @operator(name)
    def replaced(x: Tensor) -> Tensor:
        return compute(x.shape, lambda *i: x[i] * 2.0, name, dtype=x.dtype)


def replace_translation(name: str) -> None:
    TABLE["", name] = TABLE["", "Neg"]


@pytest.mark.parametrize(
    ("replace", "name", "wanted"),
    [(replace_operator, "relu", X * 2), (replace_translation, "Relu", -X)],
)
def test_what_replaces_an_operator_of_wefts_meets_no_entry(
    tmp_path: Path, replace: Callable[[str], None], name: str, wanted: np.ndarray[Any, Any], folder: Path
) -> None:
    path = plain(tmp_path / "m.onnx")
    np.testing.assert_array_equal(run(path), np.maximum(X, 0))
    operators, table = dict(OPERATORS), dict(TABLE)
    replace(name)
    np.testing.assert_array_equal(run(path), wanted)
    OPERATORS.update(operators)
    TABLE.update(table)
    np.testing.assert_array_equal(run(path), np.maximum(X, 0))
    assert kept(folder, "model") == 1


def test_a_function_in_the_model_gives_way_to_a_translation(tmp_path: Path) -> None:
    path = custom(tmp_path / "m.onnx")
    model = onnx.load(path)
    body = [helper.make_node("Neg", ["a"], ["b"])]
    model.functions.append(helper.make_function(DOMAIN, "Scaled", ["a"], ["b"], body, [helper.make_opsetid("", 17)]))
    onnx.save(model, path)
    np.testing.assert_array_equal(run(path), -X)
    register(2.0)
    assert np.array_equal(run(path), np.asarray(weft.compile(path, cache=False)(X)))


def test_wefts_own_tables_are_whole() -> None:
    assert not OPERATORS.added()
    assert not TABLE.added()
    assert not OPERATORS.is_altered()
    assert not TABLE.is_altered()
    assert not OPERATORS.is_foreign("relu")
    assert not OPERATORS.is_foreign("no such operator")
