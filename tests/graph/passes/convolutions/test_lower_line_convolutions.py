"""Convolutions of lines as those of images of one row, with the maps and pools that read them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops
from tests.graph.oracle import Oracle
from tests.support.machines import SERVER

from weft.graph import Graph, optimize, print_graph
from weft.graph.passes.convolutions.lower_line_convolutions import lower_line_convolutions
from weft.ir import Var
from weft.support.dtypes import f32
from weft.support.knobs import Switches


def test_text_before_and_after() -> None:
    g = Graph()
    x, w = g.input("x", (2, 4, 9), f32), constant(g, 3, 4, 2, name="w")
    y = g.add("conv2d", [x, w, None], strides=(2,), pads=(1, 0), dilations=(1,))
    made = apply_pass(one_output(g, g.add("relu", [y])), lower_line_convolutions)
    assert print_graph(made) == (
        "graph main(x: f32[2, 4, 9]) -> (y):\n"
        "  w = constant f32[3, 4, 1, 2]\n"
        "  reshape: f32[2, 4, 1, 9] = reshape(x, shape=(2, 4, 1, 9))\n"
        "  conv2d_1: f32[2, 3, 1, 5] = conv2d(reshape, w, none, dilations=(1, 1), pads=(0, 1, 0, 0), strides=(1, 2))\n"
        "  relu_1: f32[2, 3, 1, 5] = relu(conv2d_1)\n"
        "  relu: f32[2, 3, 5] = reshape(relu_1, shape=(2, 3, 5))\n"
        "  return y=relu\n"
    )


@pytest.mark.parametrize("known", [True, False], ids=["weights", "weights given"])
@pytest.mark.parametrize(
    "window",
    [
        {"strides": (2,), "pads": (1, 2), "dilations": (1,)},
        {"strides": (1,), "pads": (0, 0), "dilations": (3,)},
        {"strides": (3,), "pads": (2, 0), "dilations": (2,), "group": 2},
    ],
    ids=["strides", "dilations", "groups"],
)
def test_what_follows_is_computed_with_images_too(window: dict[str, Any], known: bool) -> None:
    """Maps broadcast channels, elements of the lines, and other lines; pools have windows of one row."""
    g = Graph()
    x, group = g.input("x", (2, 4, 23), f32), window.get("group", 1)
    w = constant(g, 6, 4 // group, 3) if known else g.input("w", (6, 4 // group, 3), f32)
    y = g.add("conv2d", [x, w, constant(g, 6)], **window)
    length = y.shape[2]
    y = g.add("mul", [g.add("add", [y, constant(g, 6, 1)]), constant(g, length.value)])  # type: ignore[attr-defined]
    y = g.add("add", [y, g.input("z", (2, 6, length), f32)])
    y = g.add("max_pool2d", [y], kernel=(2,), strides=(2,), pads=(1, 0), dilations=(1,), ceil_mode=True)
    y = g.add("avg_pool2d", [y], kernel=(2,), strides=(1,), pads=(0, 1), dilations=(1,), count_include_pad=True)
    y = g.add(
        "conv_transpose2d",
        [y, constant(g, 6, 3, 2), None],
        strides=(2,),
        pads=(1, 0),
        dilations=(1,),
        output_padding=(1,),
    )
    made = apply_pass(one_output(g, y), lower_line_convolutions)
    assert {n.output.rank for n in made.nodes if n.op != "reshape"} == {4}
    assert ops(made)[-1] == "reshape"


def test_lines_of_any_length() -> None:
    g, n = Graph(), Var("n")
    x = g.input("x", (1, 4, n), f32)
    y = g.add("conv2d", [x, constant(g, 4, 4, 3), None], strides=(2,), pads=(1, 1), dilations=(1,))
    made = lower_line_convolutions(one_output(g, y))
    assert ops(made) == ["reshape", "conv2d", "reshape"]


def test_other_lines_are_kept() -> None:
    g = Graph()
    y = g.add(
        "max_pool2d",
        [g.add("relu", [g.input("x", (2, 4, 9), f32)])],
        kernel=(2,),
        strides=(2,),
        pads=(0, 0),
        dilations=(1,),
    )
    g = one_output(g, y)
    assert lower_line_convolutions(g) is g


def test_a_chain_of_them_stays_in_channel_blocks() -> None:
    g = Graph()
    y = g.input("x", (1, 32, 300), f32)
    for _ in range(3):
        y = g.add("conv2d", [y, constant(g, 32, 32, 3), None], strides=(2,), pads=(1, 1), dilations=(1,))
        y = g.add("gelu", [y])
    made = optimize(one_output(g, y), SERVER, Oracle(), Switches(without=("winograd",)))
    assert [op for op in ops(made) if op != "reshape"] == [
        "pack_channels",
        *["conv2d_blocked", "gelu"] * 3,
        "unpack_channels",
    ]
