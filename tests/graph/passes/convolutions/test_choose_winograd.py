"""Winograd's method: where it pays and is accurate, convolutions at any stride become ones by it that mean the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.graph.checks import apply_pass, constant, ops, random_array
from tests.graph.machines import WIDE

from weft.cost import Choosing
from weft.graph import Graph
from weft.graph.passes.choose_layouts import choose_layouts
from weft.graph.passes.convolutions.choose_winograd import choose_winograd
from weft.support.dtypes import f32
from weft.targets import cpu

FOUR = cpu("sse4")


def convolution(kernel: int, stride: int, channels: int = 16, size: int = 16) -> Graph:
    g = Graph("convolution")
    x = g.input("x", (1, channels, size, size), f32)
    scale = np.float32((2 / (channels * kernel**2)) ** 0.5)  # so that the outputs are about as large as the inputs
    w = g.constant(random_array((16, channels, kernel, kernel)) * scale, "w")
    attributes: dict[str, Any] = {"strides": (stride, stride), "pads": (1, 1, 1, 1), "dilations": (1, 1), "group": 1}
    g.output(g.add("conv2d", [x, w, constant(g, 16)], **attributes), "y")
    return g


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (2, 1), (4, 1), (3, 2), (4, 2), (5, 2), (7, 2), (5, 3)])
def test_it_means_the_same(kernel: int, stride: int) -> None:
    blocked = choose_layouts(convolution(kernel, stride), Choosing(FOUR))
    found = ops(apply_pass(blocked, lambda g: choose_winograd(g, Choosing(FOUR))))
    if (kernel, stride) in {(3, 1), (4, 1), (4, 2)}:
        assert "conv2d_winograd" in found
    assert ("split_weight_phases" in found) == ("conv2d_winograd" in found and stride > 1)


@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (1, 2), (9, 1), (2, 2)])
def test_windows_of_other_sizes_stay(kernel: int, stride: int) -> None:
    blocked = choose_layouts(convolution(kernel, stride), Choosing(FOUR))
    assert "conv2d_winograd" not in ops(apply_pass(blocked, lambda g: choose_winograd(g, Choosing(FOUR))))


def test_a_smaller_tile_is_taken_where_a_larger_one_errs() -> None:
    graph = choose_layouts(convolution(3, 1, channels=64, size=32), Choosing(WIDE))
    tiles = []
    for limit in (2e-5, 4e-7, 1e-9):
        chosen = choose_winograd(graph, Choosing(WIDE), largest_error=limit).nodes
        tiles.append([n.attribute("tile") for n in chosen if n.op == "conv2d_winograd"])
    assert tiles == [[4], [2], []]


def test_tiles_of_several_sizes_mean_the_same() -> None:
    graph = choose_layouts(convolution(3, 1, channels=64, size=14), Choosing(FOUR))
    made = apply_pass(graph, lambda g: choose_winograd(g, Choosing(FOUR)))
    [node] = [n for n in made.nodes if n.op == "conv2d_winograd"]
    assert node.attribute("mixed")


@pytest.mark.parametrize(("size", "is_worth_it"), [(56, True), (4, False)])
def test_weights_that_change_are_transformed_in_each_call_for_large_images(size: int, is_worth_it: bool) -> None:
    g = Graph("convolution")
    x, w = g.input("x", (1, 32, size, size), f32), g.input("w", (32, 32, 3, 3), f32)
    attributes: dict[str, Any] = {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1), "group": 1}
    g.output(g.add("conv2d", [x, w], **attributes), "y")
    made = choose_winograd(choose_layouts(g, Choosing(WIDE)), Choosing(WIDE))
    assert ("pack_winograd_weight" in ops(made)) is is_worth_it
