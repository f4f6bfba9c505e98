"""Dilated convolutions over the phases of their places, where Winograd's method is worth the way."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops
from tests.graph.machines import WIDE

from weft.cost import Choosing
from weft.graph import Graph
from weft.graph.passes.convolutions.lower_dilated_convolutions import lower_dilated_convolutions
from weft.support.dtypes import f32


def built(size: tuple[int, int], channels: int = 256, kernel: int = 3, images: Any = 1, **attributes: Any) -> Graph:
    g = Graph()
    x = g.input("x", (g.dim("n") if images == "n" else images, channels, *size), f32)
    w = constant(g, channels, channels // attributes.get("group", 1), kernel, kernel, name="w")
    return one_output(g, g.add("conv2d", [x, w, constant(g, channels, name="b")], **attributes))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("size", "dilations", "pads"),
    [
        ((12, 12), (2, 2), (2, 2, 2, 2)),
        ((11, 13), (2, 2), (2, 2, 2, 2)),
        ((13, 14), (3, 3), (3, 0, 3, 3)),
        ((14, 9), (2, 1), (0, 1, 2, 1)),
        ((16, 16), (2, 2), (0, 0, 0, 0)),
        ((13, 13), (2, 2), (2, 2, 5, 3)),
    ],
)
def test_phases_are_images(size: Any, dilations: Any, pads: Any) -> None:
    made = apply_pass(
        built(size, dilations=dilations, pads=pads), lambda g: lower_dilated_convolutions(g, Choosing(WIDE))
    )
    [convolution] = [n for n in made.nodes if n.op == "conv2d"]
    assert set(convolution.attribute("dilations")) == {1}
    assert int(str(convolution.output.shape[0])) == dilations[0] * dilations[1]


def test_a_batch_of_unknown_size() -> None:
    g = built((12, 12), channels=128, images="n", dilations=(2, 2), pads=(2, 2, 2, 2))
    assert ops(apply_pass(g, lambda g: lower_dilated_convolutions(g, Choosing(WIDE)))).count("transpose") == 2


@pytest.mark.parametrize(
    "other",
    [
        {"size": (12, 12), "dilations": (1, 1)},
        {"size": (12, 12), "channels": 32, "group": 32},
        {"size": (12, 12), "channels": 20},
        {"size": (12, 12), "kernel": 1},
        {"size": (12, 12), "strides": (2, 2)},
        {"size": (12, 12), "pads": (1, 2, 2, 2)},
        {"size": (6, 6), "channels": 16},
    ],
    ids=["near", "each channel alone", "channels", "one tap", "strides", "pads", "small"],
)
def test_others_are_kept(other: dict[str, Any]) -> None:
    g = built(**{"dilations": (2, 2), "pads": (2, 2, 2, 2), **other})
    assert lower_dilated_convolutions(g, Choosing(WIDE)) is g
