"""1x1 convolutions as matrix products, where no other convolution is near."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops
from tests.graph.oracle import Oracle

from weft.graph import Graph, Value, optimize, print_graph
from weft.graph.passes.convolutions.lower_pointwise_convolutions import lower_pointwise_convolutions
from weft.support.dtypes import f32
from weft.targets import cpu


def conv(g: Graph, x: Value, kernel: int = 1, bias: bool = True, **attributes: Any) -> Value:
    group = attributes.get("group", 1)
    w, b = constant(g, 4, 4 // group, kernel, kernel, name="w"), constant(g, 4, name="b")
    return g.add("conv2d", [x, w, b if bias else None], **attributes)


def built(build: Callable[[Graph, Value], Value], *shape: int) -> Graph:
    g = Graph()
    return one_output(g, build(g, g.input("x", shape, f32)))


def test_text_before_and_after() -> None:
    made = apply_pass(built(lambda g, x: conv(g, x, bias=False), 2, 4, 3, 5), lower_pointwise_convolutions)
    assert print_graph(made) == (
        "graph main(x: f32[2, 4, 3, 5]) -> (y):\n"
        "  w_matrix = constant f32[4, 4]\n"
        "  reshape: f32[2, 4, 15] = reshape(x, shape=(2, 4, 15))\n"
        "  matmul: f32[2, 4, 15] = matmul(w_matrix, reshape)\n"
        "  conv2d: f32[2, 4, 3, 5] = reshape(matmul, shape=(2, 4, 3, 5))\n"
        "  return y=conv2d\n"
    )


def test_a_single_place_multiplies_the_images() -> None:
    made = apply_pass(built(conv, 2, 4, 1, 1), lower_pointwise_convolutions)
    assert [n for n in ops(made) if n != "reshape"] == ["gemm"]


def test_each_group_is_a_product() -> None:
    made = apply_pass(built(lambda g, x: conv(g, x, group=2), 2, 4, 3, 5), lower_pointwise_convolutions)
    assert ops(made) == ["reshape", "matmul", "reshape", "add", "reshape"]
    [product] = [n for n in made.nodes if n.op == "matmul"]
    assert [str(s) for s in product.output.shape] == ["2", "2", "2", "15"]


def test_a_strided_one_multiplies_the_places_that_it_reads() -> None:
    made = apply_pass(
        built(lambda g, x: conv(g, x, bias=False, strides=(2, 3)), 2, 4, 3, 5), lower_pointwise_convolutions
    )
    assert ops(made) == ["slice", "reshape", "matmul", "reshape"]


@pytest.mark.parametrize(("channels", "group"), [(1, 1), (4, 4), (2, 2)])
def test_a_group_of_one_channel_is_scaled(channels: int, group: int) -> None:
    def build(g: Graph, x: Value) -> Value:
        return g.add("conv2d", [x, constant(g, 4, 1, 1, 1, name="w"), constant(g, 4, name="b")], group=group)

    made = apply_pass(built(build, 2, channels, 3, 5), lower_pointwise_convolutions)
    assert [n for n in ops(made) if n != "reshape"] == ["mul", "add"]


LOWERED: dict[str, Callable[[Graph, Value], Value]] = {
    "bias": conv,
    "chain": lambda g, x: conv(g, g.add("relu", [conv(g, x)])),
    "residual": lambda g, x: g.add("add", [conv(g, x), conv(g, g.add("relu", [x]))]),
}


@pytest.mark.parametrize("what", LOWERED)
def test_regions_of_pointwise_convolutions(what: str) -> None:
    assert "conv2d" not in ops(apply_pass(built(LOWERED[what], 1, 4, 5, 5), lower_pointwise_convolutions))


KEPT: dict[str, Callable[[Graph, Value], Value]] = {
    "window": lambda g, x: conv(g, x, 3),
    "padding": lambda g, x: conv(g, x, pads=(1, 1, 1, 1)),
    "a window on each channel alone": lambda g, x: conv(g, x, 3, group=4),
}


@pytest.mark.parametrize("what", KEPT)
def test_others_are_kept(what: str) -> None:
    g = built(KEPT[what], 1, 4, 5, 5)
    assert lower_pointwise_convolutions(g) is g


def test_what_follows_fuses_into_the_product() -> None:
    graph = built(lambda g, x: g.add("relu", [conv(g, g.add("relu", [conv(g, x)]))]), 1, 4, 5, 5)
    made = apply_pass(graph, lambda g: optimize(g, cpu("sse4"), Oracle()))
    assert ops(made) == ["reshape", "matmul", "add", "relu", "matmul", "add", "relu", "reshape"]
