"""Winograd's method on bytes: where it pays and all of its numbers fit, convolutions become ones by it that are equal."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.graph.checks import ops
from tests.graph.oracle import Oracle
from tests.graph.passes.quantized.quantized_graphs import centred, run_on_bytes

from weft.cost import Choosing
from weft.graph import Graph
from weft.graph.layout.winograd_range import is_in_range
from weft.graph.passes.choose_layouts import choose_layouts
from weft.graph.passes.convolutions.choose_integer_winograd import choose_integer_winograd
from weft.graph.passes.fold_constants import fold_constants
from weft.graph.passes.quantized.choose_dot_products import choose_dot_products
from weft.support.dtypes import u8
from weft.targets import Target, cpu

WORDS = cpu("avx2").having(features=tuple(f for f in cpu("avx2").isa.features if f != "+avxvnni"))
"""A machine that multiplies integers of 16 bits, and none of 8."""

BYTES = cpu("avx2").having(features=tuple(sorted({*WORDS.isa.features, "+avxvnni"})))


def blocked(target: Target, kernel: int = 3, stride: int = 1, size: int = 28, channels: int = 32) -> Graph:
    g = Graph("convolution")
    x = centred(g, g.input("x", (1, channels, size, size), u8), 117)
    rng = np.random.default_rng(0)
    w = centred(g, g.constant(rng.integers(-127, 128, (64, channels, kernel, kernel)).astype(np.int8), "w"), None)
    window: dict[str, Any] = {"strides": (stride, stride), "pads": (1, 1, 1, 1), "dilations": (1, 1), "group": 1}
    g.output(g.add("conv2d", [x, w], **window), "y")
    made = fold_constants(choose_dot_products(g, Choosing(target)), Oracle())
    return choose_layouts(made, Choosing(target))


def by_method(graph: Graph, target: Target) -> Graph:
    made = choose_integer_winograd(graph, Choosing(target))
    for before, after in zip(run_on_bytes(graph), run_on_bytes(made), strict=True):
        np.testing.assert_array_equal(before, after)
    return made


@pytest.mark.parametrize("size", [28, 14])
def test_it_is_equal(size: int) -> None:
    assert "conv2d_winograd" in ops(by_method(blocked(WORDS, size=size), WORDS))


@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (5, 1), (1, 2)])
def test_other_windows_stay(kernel: int, stride: int) -> None:
    assert "conv2d_winograd" not in ops(by_method(blocked(WORDS, kernel, stride), WORDS))


def test_phases_of_channels_that_fill_no_block_are_zero_for_those_missing() -> None:
    made = by_method(blocked(WORDS, kernel=7, stride=2, size=64, channels=3), WORDS)
    assert {"pad", "split_weight_phases", "conv2d_winograd"} <= set(ops(made))


def test_machines_that_multiply_bytes_have_dot_products() -> None:
    assert "conv2d_winograd" not in ops(by_method(blocked(BYTES), BYTES))


def test_large_sums_are_left_to_smaller_tiles_or_none() -> None:
    made = []
    for channels in (32, 512, 8192):
        fits = partial(is_in_range, np.full((1, channels, 3, 3), 127, np.int8))
        made.append([m for m in (2, 3, 4) if fits(m, (m, m))])
    assert made == [[2, 3, 4], [2, 3], []]
