"""Scales and shifts go into weights and biases, where nothing else uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops, scalar

from weft.graph import Constant, Graph, Value, print_graph
from weft.graph.passes.fold_scale_and_shift import fold_scale_and_shift
from weft.support.dtypes import f32

Build = Callable[[Graph, Value], Value]


def batch_norm(g: Graph, y: Value, channels: int) -> Value:
    scale, bias, mean = (constant(g, channels, seed=k) for k in range(3))
    return g.add(
        "batch_norm", [y, scale, bias, mean, constant(g, channels, seed=3, positive=True)], source="BN", epsilon=1e-3
    )


def conv(g: Graph, x: Value, *, group: int = 1, bias: bool = False) -> Value:
    w = constant(g, 6, 4 // group, 3, 3, name="w")
    return g.add("conv2d", [x, w, constant(g, 6, name="b") if bias else None], source="Conv", group=group)


def transposed(g: Graph, x: Value, *, group: int = 1) -> Value:
    return g.add("conv_transpose2d", [x, constant(g, 4, 6 // group, 2, 2, name="w")], strides=(2, 2), group=group)


def gemm(g: Graph, x: Value, **attributes: Any) -> Value:
    shape = (6, 5) if attributes.get("trans_b") else (5, 6)
    return g.add("gemm", [x, constant(g, *shape, name="w"), constant(g, 6, name="b")], **attributes)


def matmul(g: Graph, x: Value) -> Value:
    return g.add("matmul", [x, constant(g, 5, 6)])


FOLDED: dict[str, tuple[tuple[int, ...], Build, list[str]]] = {
    "conv": ((2, 4, 5, 5), lambda g, x: batch_norm(g, conv(g, x), 6), ["conv2d"]),
    "conv with bias": ((2, 4, 5, 5), lambda g, x: batch_norm(g, conv(g, x, bias=True), 6), ["conv2d"]),
    "grouped conv": ((2, 4, 5, 5), lambda g, x: batch_norm(g, conv(g, x, group=2), 6), ["conv2d"]),
    "transposed": ((2, 4, 3, 3), lambda g, x: batch_norm(g, transposed(g, x), 6), ["conv_transpose2d"]),
    "grouped transposed": ((2, 4, 3, 3), lambda g, x: batch_norm(g, transposed(g, x, group=2), 6), ["conv_transpose2d"]),
    "matmul": ((3, 5), lambda g, x: batch_norm(g, matmul(g, x), 6), ["matmul", "add"]),
    "matmul and mul": ((2, 3, 5), lambda g, x: g.add("mul", [scalar(g, 0.5), matmul(g, x)]), ["matmul"]),
    "gemm": ((3, 5), lambda g, x: batch_norm(g, gemm(g, x), 6), ["gemm"]),
    "gemm with factors": ((3, 5), lambda g, x: batch_norm(g, gemm(g, x, trans_b=True, alpha=0.5, beta=2.0), 6), ["gemm"]),
    "add": ((2, 4, 5, 5), lambda g, x: g.add("add", [conv(g, x), constant(g, 6, 1, 1)]), ["conv2d"]),
    "sub": ((2, 4, 5, 5), lambda g, x: g.add("sub", [conv(g, x), scalar(g, 2.0)]), ["conv2d"]),
    "sub from": ((2, 4, 5, 5), lambda g, x: g.add("sub", [constant(g, 1, 6, 1, 1), conv(g, x, bias=True)]), ["conv2d"]),
    "div": ((2, 4, 5, 5), lambda g, x: g.add("div", [conv(g, x, bias=True), constant(g, 6, 1, 1, positive=True)]), ["conv2d"]),
    "mul then add": (
        (2, 4, 5, 5),
        lambda g, x: g.add("add", [g.add("mul", [conv(g, x), constant(g, 6, 1, 1)]), scalar(g, 1.0)]),
        ["conv2d"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FOLDED)
def test_folded(what: str) -> None:
    shape, build, expected = FOLDED[what]
    g = Graph()
    made = apply_pass(one_output(g, build(g, g.input("x", shape, f32))), fold_scale_and_shift)
    assert ops(made) == expected


KEPT: dict[str, tuple[tuple[int, ...], Build]] = {
    "one over": ((2, 4, 5, 5), lambda g, x: g.add("div", [scalar(g, 1.0), conv(g, x)])),
    "per place": ((2, 4, 5, 5), lambda g, x: g.add("mul", [conv(g, x), constant(g, 3, 3)])),
    "growing": ((1, 4, 5, 5), lambda g, x: g.add("mul", [conv(g, x), constant(g, 2, 1, 1, 1)])),
    "per row": ((6, 5), lambda g, x: g.add("mul", [gemm(g, x), constant(g, 6, 1)])),
    "dynamic": ((2, 4, 5, 5), lambda g, x: g.add("mul", [conv(g, x), g.add("reduce_max", [x])])),
    "parameter": ((2, 4, 5, 5), lambda g, x: g.add("mul", [conv(g, x), g.parameter(np.ones(1, np.float32), "p")])),
    "matmul and add": ((3, 5), lambda g, x: g.add("add", [matmul(g, x), constant(g, 6)])),
    "no contraction": ((2, 4, 5, 5), lambda g, x: g.add("mul", [x, scalar(g, 2.0)])),
}


@pytest.mark.parametrize("what", KEPT)
def test_kept(what: str) -> None:
    shape, build = KEPT[what]
    g = Graph()
    one_output(g, build(g, g.input("x", shape, f32)))
    assert fold_scale_and_shift(g) is g


def test_other_users_of_the_result_keep_it() -> None:
    g = Graph()
    y = conv(g, g.input("x", (2, 4, 5, 5), f32))
    g.output(g.add("mul", [y, scalar(g, 2.0)]), "twice")
    g.output(y, "once")
    assert fold_scale_and_shift(g) is g


def test_shared_weights_are_not_scaled() -> None:
    g = Graph()
    x = g.input("x", (2, 4, 5, 5), f32)
    w = constant(g, 6, 4, 3, 3)
    g.output(g.add("mul", [g.add("conv2d", [x, w]), scalar(g, 2.0)]), "a")
    g.output(g.add("conv2d", [g.add("neg", [x]), w]), "b")
    assert fold_scale_and_shift(g) is g


def test_alone_it_becomes_arithmetic() -> None:
    g = Graph()
    made = apply_pass(one_output(g, batch_norm(g, g.input("x", (2, 4, 5, 5), f32), 4)), fold_scale_and_shift)
    assert ops(made) == ["mul", "add"]


def test_text_before_and_after() -> None:
    g = Graph()
    one_output(g, batch_norm(g, conv(g, g.input("x", (2, 4, 5, 5), f32)), 6))
    made = fold_scale_and_shift(g)
    assert print_graph(made).splitlines()[-2:] == [
        "  batch_norm: f32[2, 6, 3, 3] = conv2d(x, w, w_bias, group=1)  # Conv, BN",
        "  return y=batch_norm",
    ]


def test_weights_are_rounded_once() -> None:
    g = Graph()
    x = g.input("x", (1, 1, 1, 1), f32)
    w = g.constant(np.array([[[[1.1]]]], np.float32))
    scale, bias, mean, variance = (g.constant(np.array([v], np.float32)) for v in (3.3, 0.7, -0.4, 0.9))
    g.output(g.add("batch_norm", [g.add("conv2d", [x, w]), scale, bias, mean, variance], epsilon=1e-5), "y")
    made = fold_scale_and_shift(g).nodes[0]
    factor = np.float64(scale.array[0]) / np.sqrt(np.float64(variance.array[0]) + 1e-5)
    assert isinstance(made.inputs[1], Constant)
    assert isinstance(made.inputs[2], Constant)
    assert made.inputs[1].array.item() == np.float32(np.float64(w.array.item()) * factor)
    assert made.inputs[2].array.item() == np.float32(bias.array[0] - np.float64(mean.array[0]) * factor)


def test_the_channels_of_a_batch_of_products_are_not_their_columns() -> None:
    g = Graph()
    made = apply_pass(one_output(g, batch_norm(g, matmul(g, g.input("x", (2, 3, 5), f32)), 3)), fold_scale_and_shift)
    assert ops(made) == ["matmul", "mul", "add"]


def test_statistics_that_are_inputs_scale_and_shift_what_a_convolution_computes() -> None:
    """A multiplication and an addition are done on channels in blocks; a batch normalization is not."""
    g = Graph()
    x, w = g.input("x", (1, 4, 5, 5), f32), g.input("w", (6, 4, 3, 3), f32)
    statistics = [g.input(name, (6,), f32) for name in ("scale", "bias", "mean")]
    variance = g.add("exp", [g.input("logarithm", (6,), f32)])
    one_output(g, g.add("batch_norm", [g.add("conv2d", [x, w, None]), *statistics, variance], epsilon=1e-3))
    made = ops(apply_pass(g, fold_scale_and_shift))
    assert "batch_norm" not in made
    assert made[-2:] == ["mul", "add"]


def test_statistics_that_are_inputs_are_left_elsewhere() -> None:
    g = Graph()
    x = g.input("x", (2, 6), f32)
    statistics = [g.input(name, (6,), f32) for name in ("scale", "bias", "mean")]
    variance = g.add("exp", [g.input("logarithm", (6,), f32)])
    one_output(g, g.add("batch_norm", [x, *statistics, variance], epsilon=1e-3))
    assert "batch_norm" in ops(fold_scale_and_shift(g))
