"""Winograd's method: where it pays and is accurate, convolutions at any stride become ones by it that mean the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.graph.checks import apply_pass, constant, random_array

from weft.graph import Graph
from weft.graph.passes.choose_layouts import choose_layouts
from weft.graph.passes.choose_winograd import Layer, Plan, choose_winograd, good_plans, phase_weight, sampled_error
from weft.support.dtypes import f32
from weft.targets.cpu import cpu
from weft.targets.target import Target

FOUR = cpu("sse4")


def convolution(kernel: int, stride: int, channels: int = 16, size: int = 16) -> Graph:
    g = Graph("convolution")
    x = g.input("x", (1, channels, size, size), f32)
    scale = np.float32((2 / (channels * kernel**2)) ** 0.5)  # so that the outputs are about as large as the inputs
    w = g.constant(random_array((16, channels, kernel, kernel)) * scale, "w")
    attributes: dict[str, Any] = {"strides": (stride, stride), "pads": (1, 1, 1, 1), "dilations": (1, 1), "group": 1}
    g.output(g.add("conv2d", [x, w, constant(g, 16)], **attributes), "y")
    return g


def ops(g: Graph) -> list[str]:
    return [n.op for n in g.nodes]


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (2, 1), (4, 1), (3, 2), (4, 2), (5, 2), (7, 2), (5, 3)])
def test_it_means_the_same(kernel: int, stride: int) -> None:
    blocked = choose_layouts(convolution(kernel, stride), FOUR)
    found = ops(apply_pass(blocked, lambda g: choose_winograd(g, FOUR)))
    if (kernel, stride) in {(3, 1), (4, 1), (4, 2)}:
        assert "conv2d_winograd" in found
    assert ("split_weight_phases" in found) == ("conv2d_winograd" in found and stride > 1)


@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (1, 2), (9, 1), (2, 2)])
def test_windows_of_other_sizes_stay(kernel: int, stride: int) -> None:
    blocked = choose_layouts(convolution(kernel, stride), FOUR)
    assert "conv2d_winograd" not in ops(apply_pass(blocked, lambda g: choose_winograd(g, FOUR)))


WIDE = replace(cpu("avx512"), l2=1 << 20, l3=32 << 20, fma_per_cycle=1, vector_registers=32)
"""A machine with vectors of sixteen floats."""


def best(layer: Layer, target: Target, others: int = 0) -> Plan | None:
    return next(iter(good_plans(layer, target, others)), None)


def layer(size: int, inputs: int, outputs: int) -> Layer:
    """A layer of 3 x 3 taps."""
    return Layer(1, size, size, inputs, outputs, 3, 9 * inputs, (1, 1), 16)


def test_weights_that_come_from_memory_count() -> None:
    large = Layer(1, 14, 14, 512, 256, 2, 128 * 9, (2, 2), 16)  # 13 MB of transformed weights for 49 tiles
    small = Layer(1, 28, 28, 256, 128, 2, 64 * 9, (2, 2), 16)
    assert best(small, WIDE) == Plan(4, (1, 7, 7))
    assert best(large, WIDE, others=40 << 20) is None


def test_patches_fit_the_second_level_cache() -> None:
    rows = {}
    for megabytes in (1, 2, 16):
        plan = best(layer(112, 64, 64), replace(WIDE, l2=megabytes << 20))
        assert plan is not None
        rows[megabytes] = plan.patch[1]
    assert 4 * 36 * rows[1] * 28 * 128 < 1 << 20
    assert rows[1] < rows[2] < rows[16]


def test_large_weights_are_read_once() -> None:
    assert best(layer(14, 256, 256), WIDE) == Plan(4, (1, 4, 4))


def test_first_layers_are_gathered() -> None:
    first = Layer(1, 112, 112, 12, 64, 4, 147, (2, 2), 16, gathered=True)
    plan = best(first, WIDE)
    assert plan is not None
    assert plan.tile == 4
    assert best(replace(first, inputs=3, outputs=16, multiplications=27, taps=3, strides=(1, 1)), WIDE) is None


def test_the_error_grows_with_the_tile() -> None:
    w = np.random.default_rng(0).standard_normal((16, 32, 3, 3)).astype(np.float32)
    assert sampled_error(w, 2) < sampled_error(w, 4) < 2e-5


def test_a_smaller_tile_is_taken_where_a_larger_one_errs(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = choose_layouts(convolution(3, 1, channels=64, size=32), WIDE)
    tiles = []
    for limit in (2e-5, 4e-7, 1e-9):
        monkeypatch.setattr("weft.graph.passes.choose_winograd.LARGEST_ERROR", limit)
        chosen = choose_winograd(graph, WIDE).nodes
        tiles.append([n.attribute("tile") for n in chosen if n.op == "conv2d_winograd"])
    assert tiles == [[4], [2], []]


def test_phases_of_a_weight() -> None:
    w = np.arange(2 * 3 * 3 * 3, dtype=np.float32).reshape(2, 3, 3, 3)
    made = phase_weight(w, (2, 2))
    assert made.shape == (2, 12, 2, 2)
    np.testing.assert_array_equal(made[:, :3], w[:, :, ::2, ::2])
    np.testing.assert_array_equal(made[:, 9:, 0, 0], w[:, :, 1, 1])
    assert not made[:, 9:, 1, 1].any()
