"""Functions of a byte become tables where computing them takes longer, with the same results to the bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.graph.checks import ops
from tests.graph.oracle import Oracle
from tests.graph.passes.quantized.quantized_graphs import dequantized, number, quantized, run_on_bytes

from weft.cost import Choosing
from weft.graph import Graph, Value, verify_graph
from weft.graph.passes.quantized.tabulate_bytes import tabulate_bytes
from weft.support.dtypes import DType, f32, i8, u8
from weft.targets import cpu

Build = Callable[[Graph, Value], Value]
SHAPE = (3, 300)
AVX2 = cpu("avx2")


def made_of(build: Build, dtype: DType = u8) -> Graph:
    """What the pass makes of a graph; both computed on the same bytes."""
    g = Graph()
    g.output(build(g, g.input("x", SHAPE, dtype)), "y")
    verify_graph(g)
    made = tabulate_bytes(g, Oracle(), Choosing(AVX2))
    verify_graph(made)
    for before, after in zip(run_on_bytes(g), run_on_bytes(made), strict=True):
        np.testing.assert_array_equal(before, after)
    return made


def swish(g: Graph, x: Value) -> Value:
    """Reads the dequantised element twice."""
    real = dequantized(g, x, 0.05, 3)
    return quantized(g, g.add("mul", [real, g.add("sigmoid", [real])]), 0.03, 10, x.dtype)


def tanh(g: Graph, x: Value) -> Value:
    """Scales of a shape of ones, and signed results of unsigned bytes."""
    scale = g.constant(np.full((1, 1), 0.02, np.float32))
    return quantized(g, g.add("tanh", [dequantized(g, x, scale, 128)]), 0.01, -5, i8)


@pytest.mark.parametrize("dtype", [u8, i8])
@pytest.mark.parametrize("build", [swish, tanh])
def test_activations_are_tables(build: Build, dtype: DType) -> None:
    names = ops(made_of(build, dtype))
    assert names[-1] == "gather"
    assert set(names) <= {"gather", "cast"}


def two_in_a_row(g: Graph, x: Value) -> Value:
    return swish(g, tanh(g, x))


def test_a_table_of_a_table() -> None:
    assert ops(made_of(two_in_a_row)).count("gather") == 2


def relu(g: Graph, x: Value) -> Value:
    return quantized(g, g.add("relu", [dequantized(g, x, 0.05, 3)]), 0.03, 10, u8)


def of_two(g: Graph, x: Value) -> Value:
    real = g.add("mul", [dequantized(g, x, 0.05, 3), dequantized(g, g.input("other", SHAPE, u8), 0.05, 3)])
    return quantized(g, g.add("sigmoid", [real]), 0.01, 0, u8)


def by_column(g: Graph, x: Value) -> Value:
    real = g.add("mul", [dequantized(g, x, 0.05, 3), g.constant(np.linspace(0, 1, SHAPE[1], dtype=np.float32))])
    return quantized(g, g.add("sigmoid", [real]), 0.01, 0, u8)


def of_a_reduction(g: Graph, x: Value) -> Value:
    real = g.add("softmax", [dequantized(g, x, 0.05, 3)], axis=-1)
    return quantized(g, real, 0.01, 0, u8)


def of_a_scalar_input(g: Graph, x: Value) -> Value:
    real = g.add("mul", [dequantized(g, x, 0.05, 3), g.input("scale", (), f32)])
    return quantized(g, g.add("sigmoid", [real]), 0.01, 0, u8)


@pytest.mark.parametrize("build", [relu, of_two, by_column, of_a_reduction, of_a_scalar_input])
def test_what_is_computed(build: Build) -> None:
    assert "gather" not in ops(made_of(build))


def test_a_function_of_no_input_is_none() -> None:
    made = made_of(lambda g, x: g.add("cast", [g.add("exp", [number(g, 1.0)])], dtype=x.dtype))
    assert "gather" not in ops(made)
