"""The places of 1 x 1 convolutions in channel blocks become one axis, in the convolution and in the maps behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops
from tests.graph.oracle import Oracle

from weft.graph import Graph, Value, optimize, print_graph
from weft.graph.passes.convolutions.flatten_pointwise_places import flatten_pointwise_places
from weft.support.dtypes import f32
from weft.targets import cpu

Behind = Callable[[Graph, Value], Value]


def convolution(
    behind: Behind, places: tuple[int, ...] = (3, 5), taps: tuple[int, ...] = (1, 1), **attributes: Any
) -> Graph:
    """A convolution of two blocks of 4 channels to three, and what *behind* makes of it."""
    g = Graph()
    x = g.input("x", (2, 2, *places, 4), f32)
    y = g.add("conv2d_blocked", [x, constant(g, 3, 2, *taps, 4, 4, name="w")], **attributes)
    return one_output(g, behind(g, y))


def test_text_before_and_after() -> None:
    graph = convolution(lambda g, y: g.add("relu", [g.add("tanh", [y])]))
    assert print_graph(apply_pass(graph, flatten_pointwise_places)) == (
        "graph main(x: f32[2, 2, 3, 5, 4]) -> (y):\n"
        "  w = constant f32[3, 2, 1, 1, 4, 4]\n"
        "  reshape: f32[2, 2, 1, 15, 4] = reshape(x, shape=(2, 2, 1, 15, 4))\n"
        "  conv2d_blocked_1: f32[2, 3, 1, 15, 4] = conv2d_blocked(reshape, w)\n"
        "  tanh_1: f32[2, 3, 1, 15, 4] = tanh(conv2d_blocked_1)\n"
        "  relu_1: f32[2, 3, 1, 15, 4] = relu(tanh_1)\n"
        "  relu: f32[2, 3, 3, 5, 4] = reshape(relu_1, shape=(2, 3, 3, 5, 4))\n"
        "  return y=relu\n"
    )


MERGED: dict[str, Behind] = {
    "a value for each channel": lambda g, y: g.add("add", [y, constant(g, 3, 1, 1, 4, name="b")]),
    "a value for each of a block": lambda g, y: g.add("mul", [y, constant(g, 4, name="s")]),
    "a tensor of the same shape": lambda g, y: g.add("add", [y, g.input("z", (2, 3, 3, 5, 4), f32)]),
    "one image for the batch": lambda g, y: g.add("add", [y, g.input("z", (1, 3, 3, 5, 4), f32)]),
    "itself": lambda g, y: g.add("mul", [y, g.add("sigmoid", [y])]),
}


@pytest.mark.parametrize("what", MERGED)
def test_maps_on_places(what: str) -> None:
    graph = convolution(MERGED[what])
    made = apply_pass(graph, flatten_pointwise_places)
    assert [op for op in ops(made) if op != "reshape"] == ops(graph)
    assert print_graph(made).count(": f32[2, 3, 1, 15, 4] = ") >= len(ops(graph))


def test_a_map_that_tells_rows_apart_stays_as_it_is() -> None:
    graph = convolution(lambda g, y: g.add("relu", [g.add("add", [y, constant(g, 3, 1, 1, name="row")])]))
    assert ops(apply_pass(graph, flatten_pointwise_places)) == ["reshape", "conv2d_blocked", "reshape", "add", "relu"]


def test_places_of_parts() -> None:
    g = Graph()
    x = g.add("split_in_parts", [g.input("x", (2, 2, 3, 5, 32), f32)], block=32)
    w = g.add("pack_conv_weight_parts", [constant(g, 32, 64, 1, 1, name="w")], in_block=32, out_block=16)
    y = g.add("conv2d_in_parts", [g.add("reshape", [x], shape=(2, 2, 3, 5, 3, 32)), w], panels=2)
    made = apply_pass(one_output(g, g.add("relu", [y])), flatten_pointwise_places)
    assert "conv2d_in_parts_1: f32[2, 1, 1, 15, 32]" in print_graph(made)
    assert "relu_1: f32[2, 1, 1, 15, 32]" in print_graph(made)


def test_places_of_volumes() -> None:
    attributes = {"strides": (1, 1, 1), "pads": (0,) * 6, "dilations": (1, 1, 1)}
    graph = convolution(lambda g, y: g.add("relu", [y]), (2, 3, 5), (1, 1, 1), **attributes)
    made = apply_pass(graph, flatten_pointwise_places)
    assert "conv2d_blocked_1: f32[2, 3, 1, 1, 30, 4]" in print_graph(made)


@pytest.mark.parametrize(
    ("places", "taps", "attributes"),
    [
        ((3, 5), (1, 3), {}),
        ((3, 5), (1, 1), {"strides": (2, 1)}),
        ((3, 5), (1, 1), {"pads": (0, 1, 0, 0)}),
        ((1, 5), (1, 1), {}),
        ((1, 1), (1, 1), {}),
    ],
    ids=["taps along a row", "strides", "padding", "one row", "one place"],
)
def test_others_are_left_alone(places: tuple[int, ...], taps: tuple[int, ...], attributes: dict[str, Any]) -> None:
    graph = convolution(lambda g, y: g.add("relu", [y]), places, taps, **attributes)
    assert flatten_pointwise_places(graph) is graph


def test_the_whole_pipeline_flattens_places() -> None:
    graph = convolution(lambda g, y: g.add("tanh", [y]), (7, 7))
    found = apply_pass(graph, lambda g: optimize(g, cpu("avx2"), Oracle()))
    assert "f32[2, 3, 1, 49, 4] = tanh" in print_graph(found)
