"""Convolutions over volumes as convolutions over images, the taps along the first dimension as channels."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops
from tests.graph.oracle import Oracle

from weft.graph import Graph, print_graph
from weft.graph.passes.convolutions.lower_volume_convolutions import lower_volume_convolutions
from weft.support.dtypes import f32


def built(
    kernel: tuple[int, ...], channels: int = 2, bias: bool = False, known: bool = True, **attributes: Any
) -> Graph:
    g = Graph()
    x = g.input("x", (2, channels, 5, 6, 7), f32)
    shape = (3 * attributes.get("group", 1), channels // attributes.get("group", 1), *kernel)
    w = constant(g, *shape, name="w") if known else g.input("w", shape, f32)
    return one_output(g, g.add("conv2d", [x, w, constant(g, shape[0], name="b") if bias else None], **attributes))


def lowered(g: Graph) -> Graph:
    return lower_volume_convolutions(g, Oracle())


def test_text_before_and_after() -> None:
    made = apply_pass(built((2, 3, 3), strides=(1, 1, 1), pads=(0,) * 6, dilations=(1, 1, 1)), lowered)
    assert print_graph(made) == (
        "graph main(x: f32[2, 2, 5, 6, 7]) -> (y):\n"
        "  w_images = constant f32[3, 4, 3, 3]\n"
        "  transpose: f32[2, 5, 2, 6, 7] = transpose(x, perm=(0, 2, 1, 3, 4))\n"
        "  slice: f32[2, 4, 2, 6, 7] = slice(transpose, axes=(1,), ends=(4,), starts=(0,), steps=(1,))\n"
        "  slice_1: f32[2, 4, 2, 6, 7] = slice(transpose, axes=(1,), ends=(5,), starts=(1,), steps=(1,))\n"
        "  concat: f32[2, 4, 4, 6, 7] = concat(slice, slice_1, axis=2)\n"
        "  reshape: f32[8, 4, 6, 7] = reshape(concat, shape=(8, 4, 6, 7))\n"
        "  conv2d_1: f32[8, 3, 4, 5] = conv2d(reshape, w_images, none, dilations=(1, 1), pads=(0, 0, 0, 0), strides=(1, 1))\n"
        "  reshape_1: f32[2, 4, 3, 4, 5] = reshape(conv2d_1, shape=(2, 4, 3, 4, 5))\n"
        "  conv2d: f32[2, 3, 4, 4, 5] = transpose(reshape_1, perm=(0, 2, 1, 3, 4))\n"
        "  return y=conv2d\n"
    )


@pytest.mark.sampled(8)
@pytest.mark.parametrize("pads", [(0, 0, 0, 0, 0, 0), (1, 1, 0, 2, 0, 3), (0, 0, 2, 1, 1, 0)])
@pytest.mark.parametrize(
    ("strides", "dilations"), [((1, 1, 1), (1, 1, 1)), ((2, 1, 2), (1, 1, 1)), ((1, 2, 1), (2, 1, 1))]
)
@pytest.mark.parametrize("kernel", [(3, 3, 3), (1, 3, 2), (2, 1, 1)])
def test_any_window(kernel: tuple[int, ...], pads: tuple[int, ...], strides: Any, dilations: Any) -> None:
    made = apply_pass(built(kernel, bias=True, pads=pads, strides=strides, dilations=dilations), lowered)
    [convolution] = [n for n in made.nodes if n.op == "conv2d"]
    assert convolution.output.rank == 4
    assert "concat" in ops(made) or kernel[0] == 1


@pytest.mark.parametrize("other", [{"group": 2, "channels": 4}, {"known": False}])
def test_groups_and_weights_that_are_not_known_are_kept(other: dict[str, Any]) -> None:
    g = built((2, 2, 2), **other, strides=(1, 1, 1), pads=(0,) * 6, dilations=(1, 1, 1))
    assert lowered(g) is g
