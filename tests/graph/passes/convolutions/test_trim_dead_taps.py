"""Taps of a window that meet nothing but padding are not computed."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops
from tests.graph.oracle import Oracle

from weft.graph import Graph
from weft.graph.passes.convolutions.trim_dead_taps import trim_dead_taps
from weft.support.dtypes import f32


def built(size: tuple[int, int], kernel: tuple[int, int], **attributes: Any) -> Graph:
    g = Graph()
    x, w = g.input("x", (2, 4, *size), f32), constant(g, 6, 4 // attributes.get("group", 1), *kernel, name="w")
    return one_output(g, g.add("conv2d", [x, w, constant(g, 6, name="b")], **attributes))


def kernel_of(g: Graph) -> tuple[int, ...]:
    [convolution] = [n for n in apply_pass(g, lambda g: trim_dead_taps(g, Oracle())).nodes if n.op == "conv2d"]
    assert convolution.inputs[1] is not None
    assert min(convolution.attribute("pads")) >= 0
    return (convolution.inputs[1].static_shape or ())[2:]


def test_wide_windows_on_few_rows() -> None:
    assert kernel_of(built((6, 30), (7, 7), pads=(6, 6, 6, 6), dilations=(2, 2))) == (5, 7)


def test_one_place_is_left_of_a_window_wider_than_the_image() -> None:
    assert kernel_of(built((5, 5), (3, 3), pads=(6, 6, 6, 6), dilations=(6, 6), group=2)) == (1, 1)


@pytest.mark.parametrize(("size", "kernel"), list(product([(1, 2), (3, 4)], [(2, 5), (3, 1)])))
@pytest.mark.parametrize("pads", [(3, 3, 3, 3), (6, 0, 1, 7), (0, 6, 6, 2)])
@pytest.mark.parametrize(("strides", "dilations"), [((1, 1), (1, 1)), ((2, 3), (1, 1)), ((1, 2), (2, 1))])
def test_any_window(size: Any, kernel: Any, pads: Any, strides: Any, dilations: Any) -> None:
    kernel_of(built(size, kernel, pads=pads, strides=strides, dilations=dilations))


def test_windows_that_fit_are_kept() -> None:
    g = built((6, 6), (3, 3), pads=(1, 1, 1, 1))
    assert trim_dead_taps(g, Oracle()) is g
    assert ops(g) == ["conv2d"]
