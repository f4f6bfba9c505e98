"""Contractions of dequantised tensors are computed in integers, and bytes stay bytes where they are moved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.graph.checks import ops
from tests.graph.oracle import Oracle
from tests.graph.passes.quantized.quantized_graphs import dequantized, number, quantized, run_on_bytes, whole

from weft.graph import Graph, Value, verify_graph
from weft.graph.passes.fold_constants import fold_constants
from weft.graph.passes.quantized.fold_dequantization import fold_dequantization
from weft.support.dtypes import f32, i8, u8

Build = Callable[[Graph], Value]
SX, SW = 0.02, 0.005


def made_of(build: Build) -> tuple[Graph, Graph]:
    """A graph, and what the pass makes of it; both computed on the same bytes."""
    g = Graph()
    g.output(build(g), "y")
    verify_graph(g)
    made = fold_constants(fold_dequantization(g), Oracle())
    verify_graph(made)
    for before, after in zip(run_on_bytes(g), run_on_bytes(made), strict=True):
        assert before.dtype == after.dtype
        near = 1 if before.dtype.kind in "iu" else 2e-5 * max(1.0, float(np.abs(before).max()))
        assert np.abs(before.astype(np.float64) - after).max() <= near, "one quantum, or rounding errors"
    return g, made


def by_channel(g: Graph, *shape: int) -> Value:
    return g.constant(np.linspace(0.002, 0.009, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def image(g: Graph) -> Value:
    return dequantized(g, g.input("x", (1, 4, 5, 6), u8), SX, 117)


def conv(g: Graph, bias: Value | None = None, per_channel: bool = False) -> Value:
    scale = by_channel(g, 6, 1, 1, 1) if per_channel else number(g, SW)
    w = dequantized(g, whole(g, i8, 6, 4, 3, 3), scale, 0)
    return g.add("conv2d", [image(g), w, bias], pads=(1, 1, 1, 1))


def matrix(g: Graph, *shape: int, scale: Value | float = SW) -> Value:
    return dequantized(g, whole(g, i8, *shape), scale, 3)


def rows(g: Graph) -> Value:
    return dequantized(g, g.input("x", (3, 8), u8), SX, 117)


INTEGER: dict[str, Build] = {
    "conv": conv,
    "conv by channel": lambda g: conv(g, per_channel=True),
    "matmul": lambda g: g.add("matmul", [rows(g), matrix(g, 8, 5)]),
    "matmul by column": lambda g: g.add("matmul", [rows(g), matrix(g, 8, 5, scale=by_channel(g, 5))]),
    "gemm": lambda g: g.add("gemm", [rows(g), matrix(g, 8, 5), None]),
    "gemm transposed": lambda g: g.add(
        "gemm", [rows(g), matrix(g, 5, 8, scale=by_channel(g, 5, 1)), None], trans_b=True
    ),
    "depthwise": lambda g: g.add(
        "conv2d", [image(g), dequantized(g, whole(g, i8, 4, 1, 3, 3), SW, 0)], group=4, pads=(1, 1, 1, 1)
    ),
    "two inputs": lambda g: g.add("matmul", [rows(g), dequantized(g, g.input("v", (8, 5), i8), 0.3, -4)]),
}


@pytest.mark.parametrize("name", INTEGER)
def test_sums_are_integers(name: str) -> None:
    _, made = made_of(INTEGER[name])
    (contraction,) = [n for n in made.nodes if n.op in ("conv2d", "matmul", "gemm")]
    assert contraction.output.dtype.is_int


def test_a_bias_of_whole_steps_joins_the_sums() -> None:
    steps = np.array([5, -70000, 0, 12, 1, -1])
    bias = (steps * np.float32(SX) * np.float32(SW)).astype(np.float32)
    _, made = made_of(lambda g: conv(g, g.constant(bias, "b")))
    (contraction,) = [n for n in made.nodes if n.op == "conv2d"]
    np.testing.assert_array_equal(contraction.inputs[2].array, steps)  # type: ignore[union-attr]
    _, made = made_of(lambda g: conv(g, g.constant(bias + np.float32(SX * SW / 3), "b")))
    (contraction,) = [n for n in made.nodes if n.op == "conv2d"]
    assert contraction.inputs[2] is None
    assert ops(made)[-1] == "add"


@pytest.mark.parametrize("rectified", [False, True])
def test_a_sum_is_scaled_once(rectified: bool) -> None:
    def build(g: Graph) -> Value:
        y = conv(g)
        return quantized(g, g.add("relu", [y]) if rectified else y, 0.07, 9, u8)

    _, made = made_of(build)
    assert "div" not in ops(made)
    assert ops(made).count("mul") == 1


def test_bytes_are_moved_as_they_are() -> None:
    def pooled(g: Graph) -> Value:
        y = g.add("max_pool2d", [image(g)], kernel=(2, 2), strides=(1, 1), pads=(0, 0, 0, 0))
        y = g.add("reshape", [g.add("transpose", [y], perm=(0, 2, 3, 1))], shape=(1, 80))
        return quantized(g, y, SX, 117, u8)

    _, made = made_of(pooled)
    assert ops(made) == ["max_pool2d", "transpose", "reshape"]
    _, made = made_of(lambda g: quantized(g, image(g), SX * 2, 117, u8))
    assert "round" in ops(made), "another scale"


LEFT: dict[str, Build] = {
    "weights of floats": lambda g: g.add("matmul", [rows(g), g.input("v", (8, 5), f32)]),
    "groups of many channels": lambda g: g.add(
        "conv2d",
        [dequantized(g, g.input("x", (1, 200, 3, 3), u8), SX, 0), dequantized(g, whole(g, i8, 2, 100, 3, 3), SW, 0)],
        group=2,
    ),
    "scale of rows": lambda g: g.add(
        "matmul", [dequantized(g, g.input("x", (3, 8), u8), by_channel(g, 3, 1), 0), matrix(g, 8, 5)]
    ),
    "scale along the reduction": lambda g: g.add("matmul", [rows(g), matrix(g, 8, 5, scale=by_channel(g, 8, 1))]),
    "scaled product": lambda g: g.add("gemm", [rows(g), matrix(g, 8, 5), None], alpha=0.5),
    "sums beyond 32 bits": lambda g: g.add(
        "matmul", [dequantized(g, g.input("x", (1, 40000), u8), SX, 0), matrix(g, 40000, 1)]
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_others_stay_as_they_are(name: str) -> None:
    g, made = made_of(LEFT[name])
    contraction = [[n for n in x.nodes if n.op in ("conv2d", "matmul", "gemm")] for x in (g, made)]
    assert [n.output.dtype for x in contraction for n in x] == [f32, f32]
