"""Values that are used many times over: what compiles them takes time and memory by their number, not by the paths to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.cli.commands import Cli
from tests.driver.budgets.bombs import chain, compile_apart, model_of, tensor, twice

import weft

DEPTH = 60
node = helper.make_node

INTEGERS = {"inputs": [tensor("v0", [5], TensorProto.INT64)], "dtype": TensorProto.INT64}

DIAMOND = chain(
    40,
    lambda a, b: [
        node("Add", [a, "w"], [f"{b}+"]),
        node("Sub", [a, "w"], [f"{b}-"]),
        node("Mul", [f"{b}+", f"{b}-"], [b]),
    ],
    inputs=[tensor("v0", [4, 5]), tensor("w", [4, 5])],
)
RESIDUAL = chain(400, lambda a, b: [node("Tanh", [a], [f"{b}t"]), node("Add", [f"{b}t", a], [b])])
FIBONACCI = model_of([node("Add", [f"v{max(k - 1, 0)}", f"v{k}"], [f"v{k + 1}"]) for k in range(80)], "v80")
GATHER = chain(DEPTH, twice("Gather"), **INTEGERS)


def sizes(body: list[tuple[str, str, str]]) -> ModelProto:
    """Returns a model that computes with the size `n` of its input, thirty times by the nodes of *body*."""
    nodes = [node("Shape", ["v0"], ["s0"])]
    for k in range(30):
        nodes += [node(op, [f"{a}{k}", f"{b}{k}" if b != "three" else b], [f"t{k}"]) for op, a, b in body[:1]]
        nodes += [node(op, [f"{a}{k}", f"{b}{k}"], [f"s{k + 1}"]) for op, a, b in body[1:]]
    return model_of(nodes, "s30", [tensor("v0", ["n", "m"])], TensorProto.INT64, {"three": np.int64(3)})


MODELS = {
    **{op: chain(DEPTH, twice(op)) for op in ("Add", "Mul", "Max")},
    **{op: chain(DEPTH, lambda a, b, op=op: [node(op, [a], [b])]) for op in ("HardSwish", "Mish", "Gelu")},  # type: ignore[misc]
    "whole numbers": chain(DEPTH, twice("Mul"), **INTEGERS),
    "bounded numbers": chain(DEPTH, twice("Mul"), inputs=[tensor("x", [5], TensorProto.INT8)], dtype=TensorProto.INT64),
    "diamonds": DIAMOND,
    "residuals": RESIDUAL,
    "Fibonacci": FIBONACCI,
    "gathers": GATHER,
    "squares of sizes": sizes([("Mul", "s", "s"), ("Add", "t", "s")]),
    "quotients of sizes": sizes([("Div", "s", "three"), ("Add", "t", "s")]),
}
FEW = ["Mul", "Gelu", "diamonds", "Fibonacci", "squares of sizes", "quotients of sizes"]
MODELS["bounded numbers"].graph.node.insert(0, node("Cast", ["x"], ["v0"], to=TensorProto.INT64))


@pytest.mark.parametrize("names", [FEW, pytest.param([*MODELS], marks=pytest.mark.slow)], ids=["few", "all"])
def test_models_of_values_used_twice_compile_in_time_and_memory_for_their_nodes(
    names: list[str], tmp_path: Path
) -> None:
    found = dict(zip(names, compile_apart([MODELS[n] for n in names], tmp_path), strict=True))
    assert {name: o.said for name, o in found.items() if o.said} == {}
    assert {name: o for name, o in found.items() if o.megabytes > 150 or o.seconds > 10} == {}
    assert found["Mul"].seconds < 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_results_of_a_value_used_twice_each_time(op: str) -> None:
    x = np.random.default_rng(0).uniform(0.999, 1.001, (4, 5)).astype(np.float32)
    expected = x
    for _ in range(12 if op == "Mul" else DEPTH):
        expected = expected + expected if op == "Add" else expected * expected
    model = weft.compile(chain(12 if op == "Mul" else DEPTH, twice(op)), cache=False)
    np.testing.assert_allclose(model(x), expected, rtol=1e-6)


def test_results_of_gathers_of_themselves() -> None:
    x = np.array([1, 2, 3, 4, 0])
    expected = x
    for _ in range(7):
        expected = expected[expected]
    np.testing.assert_array_equal(weft.compile(chain(7, twice("Gather"), **INTEGERS), cache=False)(x), expected)


def test_products_of_whole_numbers_wrap() -> None:
    x = np.array([3, -5, 7, 2, 1])
    expected = x
    with np.errstate(over="ignore"):
        for _ in range(8):
            expected = expected * expected * 3037000507
    nodes = [
        n for k in range(8) for n in (node("Mul", [f"v{k}"] * 2, [f"t{k}"]), node("Mul", [f"t{k}", "c"], [f"v{k + 1}"]))
    ]
    model = model_of(nodes, "v8", constants={"c": np.int64(3037000507)}, **INTEGERS)  # type: ignore[arg-type]
    np.testing.assert_array_equal(weft.compile(model, cache=False)(x), expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("view", ["--kernels", "--schedule 1", "--asm 1", "--graph", "--memory"])
def test_views_show_them(
    view: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mish.onnx"
    path.write_bytes(MODELS["Mish"].SerializeToString())
    done = Cli(capsys, monkeypatch)("inspect", path, *view.split())
    assert done.code == 0
    assert 0 < len(done.out) < 3_000_000
