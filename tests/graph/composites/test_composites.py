"""Composites against NumPy; the conformance cases of ONNX go through all of them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.graph.builder_calls import run_composite

from weft.graph import Graph, Value
from weft.graph.builder import Builder, PartialEvaluator
from weft.graph.composites.einsum import einsum
from weft.graph.composites.normalization import group_norm
from weft.graph.composites.ordering import top_k
from weft.graph.composites.pixel_shuffle import depth_to_space, space_to_depth
from weft.graph.composites.quantized.quantization import dequantize, quantize
from weft.graph.composites.recurrent import Direction, lstm_cell, recurrent_layer
from weft.graph.composites.resize import resample_axis
from weft.graph.composites.sampling import Filter
from weft.graph.composites.slicing import equal_sizes, reshape_open, slice_axes
from weft.graph.composites.windows import same_pads
from weft.ir import as_expr
from weft.support.dtypes import f32, u8
from weft.support.errors import ModelError

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
RNG = np.random.default_rng(0)


def numbers(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


EQUATIONS: dict[str, list[tuple[int, ...]]] = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "bij,bkj->bik": [(2, 3, 4), (2, 5, 4)],
    "ij,kj": [(2, 3), (4, 3)],
    "...i,i->...": [(2, 3, 4), (4,)],
    "ij,k->kij": [(2, 3), (4,)],
    "ij,jk,kl->il": [(9, 8), (8, 7), (7, 6)],
    "abc,cd,de,ef->fab": [(2, 3, 9), (9, 8), (8, 7), (7, 6)],
    "bi,bij,bj->b": [(3, 4), (3, 4, 5), (3, 5)],
    "ij,jk,kl->": [(9, 8), (8, 7), (7, 6)],
    "ij,ij,ij->ij": [(4, 5), (4, 5), (4, 5)],
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str) -> None:
    arrays = [numbers(*s) for s in EQUATIONS[equation]]
    (made,) = run_composite(lambda b, *xs: einsum(b, xs, equation), *arrays)
    np.testing.assert_allclose(made, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-6)


def test_a_chain_of_products_is_multiplied_two_by_two() -> None:
    assert products_of("ij,jk,kl->il", (40, 30), (30, 20), (20, 50)) == ["matmul", "matmul"]
    assert products_of("i,j,k->ijk", (4,), (5,), (6,)) == ["einsum"]  # two by two, no operation less


def products_of(equation: str, *shapes: tuple[int, ...]) -> list[str]:
    """Returns the operators that multiply."""
    graph = Graph()
    b = Builder(PartialEvaluator(graph), "Node /n")
    einsum(b, [graph.input(f"x{n}", s, f32) for n, s in enumerate(shapes)], equation)
    return [n.op for n in graph.nodes if n.op in ("matmul", "einsum")]


def test_an_equation_that_does_not_fit_names_the_node() -> None:
    with pytest.raises(ModelError) as caught:
        run_composite(lambda b, x: einsum(b, [x], "ij,jk->ik"), numbers(2, 3))
    assert str(caught.value) == "Node /n: the equation 'ij,jk->ik' has 2 terms for 1 inputs"


def test_lstm() -> None:
    steps, batch, features, hidden = 3, 2, 4, 5
    x, w, r, bias = numbers(steps, batch, features), numbers(features, 20), numbers(hidden, 20), numbers(20)

    def build(b: Builder, x: Value, w: Value, r: Value, bias: Value) -> Any:
        zeros = b.add("full", shape=(batch, hidden), value=0, dtype=f32)
        functions = [lambda b, v, op=op: b.add(op, v) for op in ("sigmoid", "tanh", "tanh")]
        y, finals = recurrent_layer(b, x, [Direction(True, w, r, functions, (zeros, zeros), bias)], lstm_cell())
        return [y, *finals]

    y, last, memory = run_composite(build, x, w, r, bias)
    h, c = np.zeros((batch, hidden), np.float32), np.zeros((batch, hidden), np.float32)
    for t in range(steps):
        i, o, f, g = np.split(x[t] @ w + bias + h @ r, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        np.testing.assert_allclose(y[t, 0], h, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last[0], h, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(memory[0], c, rtol=1e-4, atol=1e-5)


def test_resampling() -> None:
    x = numbers(1, 2, 4)
    (nearest,) = run_composite(
        lambda b, v: resample_axis(b, v, 2, 8, Filter(coordinates="asymmetric", nearest="floor")), x
    )
    np.testing.assert_array_equal(nearest, np.repeat(x, 2, axis=2))
    (linear,) = run_composite(lambda b, v: resample_axis(b, v, 2, 7, Filter("linear", "align_corners")), x)
    at = np.linspace(0, 3, 7)
    wanted = [np.interp(at, np.arange(4), row) for row in x.reshape(2, 4)]
    np.testing.assert_allclose(linear.reshape(2, 7), wanted, rtol=1e-5, atol=1e-6)


def test_group_norm() -> None:
    x, scale, bias = numbers(2, 6, 3, 3), numbers(6), numbers(6)
    (made,) = run_composite(lambda b, v, s, t: group_norm(b, v, 3, s, t, 1e-5), x, scale, bias)
    rows = x.reshape(2, 3, -1)
    wanted = ((rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-5)).reshape(x.shape)
    np.testing.assert_allclose(made, wanted * scale[:, None, None] + bias[:, None, None], rtol=1e-4, atol=1e-5)


def test_pixel_shuffle_and_back() -> None:
    x = numbers(2, 8, 3, 4)
    for outer in (True, False):
        there = lambda b, v, outer=outer: depth_to_space(b, v, 2, outer=outer)  # noqa: E731
        back = lambda b, v, outer=outer: space_to_depth(b, v, 2, outer=outer)  # noqa: E731
        (wide,) = run_composite(there, x)
        assert wide.shape == (2, 2, 6, 8)
        (made,) = run_composite(back, wide)
        np.testing.assert_array_equal(made, x)


def test_quantized_and_back() -> None:
    x = np.array([-1.0, 0.0, 0.26, 3.0, 100.0], np.float32)

    def build(b: Builder, v: Value) -> Any:
        scale, zero = b.scalar(0.5, f32), b.scalar(10, u8)
        q = quantize(b, v, scale, zero, u8)
        return [q, dequantize(b, q, scale, zero, f32)]

    q, made = run_composite(build, x)
    np.testing.assert_array_equal(q, np.array([8, 10, 11, 16, 210], np.uint8))
    np.testing.assert_array_equal(made, np.array([-1.0, 0.0, 0.5, 3.0, 100.0], np.float32))


def test_top_k() -> None:
    x = numbers(3, 7)
    values, where = run_composite(lambda b, v: top_k(b, v, 2, 1, largest=True), x)
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :2])
    np.testing.assert_array_equal(np.take_along_axis(x, where, 1), values)


def test_same_pads() -> None:
    b = Builder(PartialEvaluator(Graph()), "Node /n")
    sizes = [as_expr(7), as_expr(8)]
    assert same_pads(b, [3, 2], [2, 1], [1, 1], sizes, lower=False) == [1, 0, 1, 1]
    assert same_pads(b, [3, 2], [2, 1], [1, 1], sizes, lower=True) == [1, 1, 1, 0]


def test_symbolic_sizes_of_shapes_and_slices() -> None:
    graph = Graph()
    n, m = graph.dim("n"), graph.dim("m")
    x = graph.input("x", (n, 3, 4), f32)
    b = Builder(PartialEvaluator(graph), "Node /n")
    assert repr(reshape_open(b, x, [-1, 6])) == "reshape: f32[(n * 2), 6]"
    assert repr(slice_axes(b, x, [0], [0], [m], [1])) == "slice: f32[m, 3, 4]"
    (needed,) = graph.requirements
    assert needed.message == "Node /n: takes elements {0} to {1} of dimension 0, which has {2}"
    assert [str(s.value) for s in equal_sizes(as_expr(7), 3) if hasattr(s, "value")] == ["3", "3", "1"]
    with pytest.raises(ModelError) as caught:
        reshape_open(b, x, [-1, -1])
    assert str(caught.value) == "Node /n: its shape [-1, -1] leaves 2 dimensions open; only one may be -1"
