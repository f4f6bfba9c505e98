"""Winograd's method: where it pays and is accurate, convolutions at any stride become ones by it that mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.graph.checks import apply_pass, constant, ops, random_array
from tests.graph.machines import WIDE

from weft.cost import Candidate, Choosing, Winograd
from weft.graph import Graph
from weft.graph.passes.choose_layouts import choose_layouts
from weft.graph.passes.convolutions.choose_winograd import choose_winograd
from weft.support.dtypes import f32
from weft.targets import cpu

FOUR = cpu("sse4")


def convolution(kernel: int, stride: int, channels: int = 16, size: int = 16, outputs: int = 16) -> Graph:
    """Returns a convolution of images [1, *channels*, *size*, *size*]."""
    g = Graph("convolution")
    x = g.input("x", (1, channels, size, size), f32)
    scale = np.float32((2 / (channels * kernel**2)) ** 0.5)  # so that the outputs are about as large as the inputs
    w = g.constant(random_array((outputs, channels, kernel, kernel)) * scale, "w")
    attributes: dict[str, Any] = {"strides": (stride, stride), "pads": (1, 1, 1, 1), "dilations": (1, 1), "group": 1}
    g.output(g.add("conv2d", [x, w, constant(g, outputs)], **attributes), "y")
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


@pytest.mark.parametrize(("channels", "outputs", "read"), [(16, 17, 4), (13, 16, 1), (31, 13, 4), (14, 29, 1)])
def test_blocks_of_channels_need_not_be_full(channels: int, outputs: int, read: int) -> None:
    """31 channels are in blocks of 4, of which the products leave out the last place; 13 are each alone."""
    blocked = choose_layouts(convolution(3, 1, channels, outputs=outputs), Choosing(FOUR))
    made = apply_pass(blocked, lambda g: choose_winograd(g, Choosing(FOUR)))
    [node] = [n for n in made.nodes if n.op == "conv2d_winograd"]
    assert node.attribute("channels") == -(-outputs // 4) * 4
    [x] = [v for v in node.inputs[:1] if v is not None]
    assert str(x.shape[-1]) == str(read)


def test_blocks_that_are_not_full_go_from_one_to_the_next() -> None:
    g = Graph("convolutions")
    attributes: dict[str, Any] = {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1), "group": 1}
    first, second = (g.constant(random_array((n, 31, 3, 3)) * np.float32(0.05), f"w{n}") for n in (31, 13))
    made = g.add("relu", [g.add("conv2d", [g.input("x", (1, 31, 16, 16), f32), first], **attributes)])
    g.output(g.add("conv2d", [made, second], **attributes), "y")
    blocked = choose_layouts(g, Choosing(FOUR))
    found = ops(apply_pass(blocked, lambda g: choose_winograd(g, Choosing(FOUR))))
    assert found.count("conv2d_winograd") == 2
    assert found.count("unpack_channels") == 1


def test_channels_of_phases_fill_their_blocks() -> None:
    blocked = choose_layouts(convolution(4, 2, 31, outputs=32), Choosing(FOUR))
    assert "conv2d_winograd" not in ops(apply_pass(blocked, lambda g: choose_winograd(g, Choosing(FOUR))))
    blocked = choose_layouts(convolution(4, 2, 32, outputs=31), Choosing(FOUR))
    assert "conv2d_winograd" in ops(apply_pass(blocked, lambda g: choose_winograd(g, Choosing(FOUR))))


def volumes(
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    size: tuple[int, ...] = (2, 16, 6, 12, 12),
    outputs: int = 16,
) -> Graph:
    """Returns a convolution of volumes [N, C, D, H, W]."""
    g = Graph("convolution")
    x = g.input("x", size, f32)
    scale = np.float32((2 / (size[1] * np.prod(kernel))) ** 0.5)
    w = g.constant(random_array((outputs, size[1], *kernel)) * scale, "w")
    attributes: dict[str, Any] = {"strides": strides, "pads": pads, "dilations": (1, 1, 1), "group": 1}
    g.output(g.add("conv2d", [x, w, constant(g, outputs)], **attributes), "y")
    return g


def with_patch(patch: tuple[int, int, int] | None, tile: int = 4) -> Choosing:
    """Returns a planner that takes Winograd's method with *patch*, or any."""

    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        found = [c for c in candidates if isinstance(c.decision, Winograd) and c.decision.tile == tile]
        found = [c for c in found if patch is None or c.decision.patch == patch]
        return (found or list(candidates))[0]

    return Choosing(FOUR, choose)


@pytest.mark.parametrize("patch", [(1, 1, 3), (3, 1, 3), (2, 3, 3), (6, 3, 3)])
def test_patches_of_frames_mean_the_same(patch: tuple[int, int, int]) -> None:
    blocked = choose_layouts(volumes((3, 3, 3), (1, 1, 1), (1,) * 6), Choosing(FOUR))
    made = apply_pass(blocked, lambda g: choose_winograd(g, with_patch(patch)))
    assert [n.attribute("patch") for n in made.nodes if n.op == "conv2d_winograd"] == [patch]


@pytest.mark.parametrize(
    ("kernel", "strides", "pads"),
    [
        ((2, 2, 2), (1, 1, 1), (0,) * 6),
        ((1, 3, 3), (1, 1, 1), (0, 1, 1, 0, 1, 1)),
        ((4, 3, 3), (1, 1, 1), (2, 0, 1, 1, 1, 0)),
        ((3, 3, 3), (2, 1, 1), (1,) * 6),
        ((3, 4, 4), (2, 2, 2), (1,) * 6),
        ((2, 3, 3), (3, 1, 1), (0, 1, 1, 0, 1, 1)),
    ],
)
def test_volumes_mean_the_same(kernel: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...]) -> None:
    blocked = choose_layouts(volumes(kernel, strides, pads), Choosing(FOUR))
    made = apply_pass(blocked, lambda g: choose_winograd(g, with_patch(None)))
    assert "conv2d_winograd" in ops(made)


@pytest.mark.parametrize(("channels", "strides"), [(6, (1, 1, 1)), (16, (2, 1, 1)), (31, (1, 1, 1)), (6, (1, 2, 2))])
def test_blocks_of_channels_of_volumes_need_not_be_full(channels: int, strides: tuple[int, ...]) -> None:
    """Of 6 channels each is alone, and the last block of transformed ones is filled up; 31 are in blocks."""
    graph = volumes((3, 3, 3), strides, (1,) * 6, (1, channels, 4, 12, 12), outputs=17)
    made = apply_pass(choose_layouts(graph, Choosing(FOUR)), lambda g: choose_winograd(g, with_patch(None)))
    assert [n.attribute("channels") for n in made.nodes if n.op == "conv2d_winograd"] == [20]


def test_frames_that_padding_moves_are_not_the_input() -> None:
    """Steps of two from a frame of padding on read as many frames as there are, but others."""
    blocked = choose_layouts(volumes((2, 3, 3), (2, 1, 1), (1, 0, 0, 0, 0, 0)), Choosing(FOUR))
    made = apply_pass(blocked, lambda g: choose_winograd(g, with_patch(None, tile=2)))
    assert [n.attribute("tile") for n in made.nodes if n.op == "conv2d_winograd"] == [2]


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_volumes_are_by_the_method_where_it_takes_fewer_products(isa: str) -> None:
    planner = Choosing(cpu(isa))
    large, ones = (1, 64, 8, 28, 28), (1, 1, 1)

    def is_direct(kernel: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...]) -> bool:
        blocked = choose_layouts(volumes(kernel, strides, pads, large), planner)
        return "conv2d_winograd" not in ops(choose_winograd(blocked, planner))

    assert not is_direct((3, 3, 3), ones, (1,) * 6)
    assert is_direct((3, 3, 3), (2, 2, 2), (1,) * 6)
    assert is_direct((3, 1, 1), ones, (1, 0, 0, 1, 0, 0))
    assert is_direct((1, 1, 1), ones, (0,) * 6)


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
