"""The rows of a product with a matrix become one axis, in the product and in the maps behind it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops, scalar
from tests.graph.oracle import Oracle

from weft.graph import Graph, Value, optimize, print_graph
from weft.graph.passes.flatten_matmul_rows import flatten_matmul_rows
from weft.support.dtypes import f32
from weft.targets import cpu


def product(behind: Callable[[Graph, Value], Value], shape: tuple[int, ...] = (2, 3, 4)) -> Graph:
    """A product with a matrix of six columns, and what *behind* makes of it."""
    g = Graph()
    x = g.input("x", shape, f32)
    return one_output(g, behind(g, g.add("matmul", [x, constant(g, shape[-1], 6, name="w")])))


def test_text_before_and_after() -> None:
    graph = product(lambda g, y: g.add("relu", [g.add("tanh", [y])]))
    assert print_graph(apply_pass(graph, flatten_matmul_rows)) == (
        "graph main(x: f32[2, 3, 4]) -> (y):\n"
        "  w = constant f32[4, 6]\n"
        "  reshape: f32[6, 4] = reshape(x, shape=(6, 4))\n"
        "  matmul_1: f32[6, 6] = matmul(reshape, w)\n"
        "  tanh_1: f32[6, 6] = tanh(matmul_1)\n"
        "  relu_1: f32[6, 6] = relu(tanh_1)\n"
        "  relu: f32[2, 3, 6] = reshape(relu_1, shape=(2, 3, 6))\n"
        "  return y=relu\n"
    )


def test_symbolic_rows_are_merged_too() -> None:
    g = Graph()
    x = g.input("x", (g.dim("batch"), g.dim("seq"), 4), f32)
    g = one_output(g, g.add("relu", [g.add("matmul", [x, constant(g, 4, 6, name="w")])]))
    assert print_graph(apply_pass(g, flatten_matmul_rows)) == (
        "graph main(x: f32[batch, seq, 4]) -> (y):\n"
        "  w = constant f32[4, 6]\n"
        "  reshape: f32[(batch * seq), 4] = reshape(x, shape=((batch * seq), 4))\n"
        "  matmul_1: f32[(batch * seq), 6] = matmul(reshape, w)\n"
        "  relu_1: f32[(batch * seq), 6] = relu(matmul_1)\n"
        "  relu: f32[batch, seq, 6] = reshape(relu_1, shape=(batch, seq, 6))\n"
        "  return y=relu\n"
    )


MERGED: dict[str, Callable[[Graph, Value], Value]] = {
    "a number": lambda g, y: g.add("mul", [y, scalar(g, 0.5)]),
    "a row": lambda g, y: g.add("sub", [constant(g, 1, 1, 6, name="r"), y]),
    "a tensor of the same shape": lambda g, y: g.add("add", [y, g.input("z", (2, 3, 6), f32)]),
    "itself": lambda g, y: g.add("mul", [y, g.add("sigmoid", [y])]),
    "a second product": lambda g, y: g.add("matmul", [g.add("relu", [y]), constant(g, 6, 5, name="v")]),
}


@pytest.mark.parametrize("what", MERGED)
def test_maps_on_rows(what: str) -> None:
    graph = product(MERGED[what])
    made = apply_pass(graph, flatten_matmul_rows)
    assert all(v.rank < 3 for n in made.nodes if n.op != "reshape" for v in n.outputs)
    assert [op for op in ops(made) if op != "reshape"] == ops(graph)


def test_a_map_that_tells_rows_apart_stays_as_it_is() -> None:
    graph = product(lambda g, y: g.add("relu", [g.add("add", [y, constant(g, 3, 1, name="column")])]))
    assert ops(apply_pass(graph, flatten_matmul_rows)) == ["reshape", "matmul", "reshape", "add", "relu"]


@pytest.mark.parametrize("shape", [(3, 4), (1, 3, 4), (1, 3, 1, 4), (4,)])
def test_one_axis_of_rows_is_left_alone(shape: tuple[int, ...]) -> None:
    graph = product(lambda g, y: g.add("relu", [y]), shape)
    assert flatten_matmul_rows(graph) is graph


def test_a_matrix_for_each_of_a_batch_is_left_alone() -> None:
    g = Graph()
    y = g.add("matmul", [g.input("x", (2, 3, 4), f32), g.input("w", (2, 4, 6), f32)])
    graph = one_output(g, y)
    assert flatten_matmul_rows(graph) is graph


def test_the_whole_pipeline_multiplies_rows() -> None:
    graph = product(lambda g, y: g.add("tanh", [g.add("add", [y, constant(g, 6, name="b")])]), (2, 7, 7, 16))
    found = apply_pass(graph, lambda g: optimize(g, cpu("avx512"), Oracle()))
    assert [n.output.static_shape for n in found.nodes if n.op == "matmul_packed"] == [(98, 6)]
