"""Layouts are chosen for the whole graph at once: values are moved where that costs least, and once."""

from __future__ import annotations

import pytest
from tests.graph.checks import apply_pass, one_output, ops
from tests.graph.oracle import Oracle
from tests.graph.passes.test_choose_layouts import conv
from tests.support.machines import SERVER

from weft.cost import Choosing
from weft.graph import Graph
from weft.graph.layout.assign_layouts import nodes_in_blocks
from weft.graph.passes.choose_layouts import choose_layouts
from weft.graph.passes.fold_constants import fold_constants
from weft.support.dtypes import f32
from weft.targets import cpu

FOUR = cpu("sse4")


def layouts(graph: Graph) -> Graph:
    return fold_constants(choose_layouts(graph, Choosing(FOUR)), Oracle())


def test_what_two_layouts_read_is_moved_once() -> None:
    g = Graph()
    y = conv(g, g.input("x", (1, 8, 6, 6), f32), 8)
    flat = g.add("reshape", [y], shape=(1, 8, 36, 1))
    z = g.add("reshape", [conv(g, y, 8)], shape=(1, 8, 36, 1))
    made = apply_pass(one_output(g, g.add("add", [flat, z])), layouts)
    assert ops(made).count("pack_channels") == 1
    assert ops(made).count("unpack_channels") == 2, "the first value, and the second"
    assert "conv2d" not in ops(made)


def test_packed_where_there_is_least_to_pack() -> None:
    """Between a wide depthwise convolution, as good in rows, and one that needs blocks, the pooled value is the smaller."""
    g = Graph()
    x = g.input("x", (1, 8, 32, 32), f32)
    y = conv(g, x, 8, group=8)
    y = g.add("max_pool2d", [y], kernel=(4, 4), strides=(4, 4), pads=(0, 0, 0, 0))
    made = apply_pass(one_output(g, conv(g, y, 8, stride=2)), layouts)
    assert ops(made) == ["conv2d", "max_pool2d", "pack_channels", "conv2d_blocked", "unpack_channels"]


def test_a_convolution_too_small_to_move_for_stays_plain() -> None:
    g = Graph()
    y = conv(g, g.input("x", (1, 4, 16, 16), f32), 4, 1)
    graph = one_output(g, y)
    assert nodes_in_blocks(graph, Choosing(FOUR)) == set()


@pytest.mark.parametrize(("count", "size", "blocked"), [(1, 14, False), (8, 14, True), (8, 16, False)])
def test_pointwise_convolutions_in_rows_as_long_as_rows_fill_vectors(count: int, size: int, blocked: bool) -> None:
    """Planes of 196 places leave a rest, which many layers pay for; one layer does not pay for moving what it reads."""
    g = Graph()
    y = g.input("x", (1, 64, size, size), f32)
    for _ in range(count):
        y = g.add("relu", [conv(g, y, 64, 1)])
    assert any(n.op == "conv2d" for n in nodes_in_blocks(one_output(g, y), Choosing(SERVER))) == blocked


def test_all_of_a_network_with_few_kinds_of_edges() -> None:
    """Blocks run through sums, products with one value a channel, and concatenations, from end to end."""
    g = Graph()
    x = g.input("x", (1, 8, 6, 6), f32)
    y = x
    for _ in range(12):
        z = g.add("relu", [conv(g, y, 8)])
        s = g.add("sigmoid", [conv(g, g.add("reduce_mean", [z], axes=(2, 3), keepdims=True), 8, 1)])
        y = g.add("add", [g.add("mul", [z, s]), y])
        y = g.add("concat", [conv(g, y, 4), conv(g, y, 4)], axis=1)
    made = apply_pass(one_output(g, y), layouts)
    assert ops(made).count("pack_channels") == 1
    assert ops(made).count("unpack_channels") == 1


@pytest.mark.parametrize(
    ("level", "size", "stride", "between", "blocked"),
    [
        ("avx512", 14, 1, False, False),  # masks leave out what is beyond a row
        ("avx512", 14, 2, False, False),
        ("avx2", 6, 1, False, True),
        ("avx512", 14, 1, True, True),  # between layers in blocks nothing is moved
    ],
)
def test_depthwise_convolutions_in_narrow_rows(
    level: str, size: int, stride: int, between: bool, blocked: bool
) -> None:
    g = Graph()
    y = g.input("x", (1, 128, size, size), f32)
    y = conv(g, y, 128) if between else y
    y = depthwise = conv(g, y, 128, group=128, stride=stride)
    y = conv(g, y, 128) if between else y
    assert (
        depthwise.producer in nodes_in_blocks(one_output(g, y), Choosing(SERVER if level == "avx512" else cpu(level)))
    ) == blocked


@pytest.mark.parametrize(
    ("size", "channels", "stride", "blocked"), [(24, 36, 1, False), (33, 472, 2, False), (9, 326, 2, True)]
)
def test_a_depthwise_convolution_alone(size: int, channels: int, stride: int, blocked: bool) -> None:
    """Blocks are moved to only for rows of a few elements; channels that fill no block count as much as those that do."""
    g = Graph()
    y = conv(g, g.input("x", (1, channels, size, size), f32), channels, 7, group=channels, stride=stride)
    graph = one_output(g, y)
    assert (nodes_in_blocks(graph, Choosing(SERVER)) == {y.producer}) == blocked


@pytest.mark.parametrize(("made", "blocked"), [(18, False), (64, True)])
def test_groups_in_rows_where_they_fill_no_blocks(made: int, blocked: bool) -> None:
    """Nine of sixteen channels of a block are less than the 45 of 48 elements of a row."""
    g = Graph()
    y = conv(g, g.input("x", (1, 64, 45, 45), f32), made, 5, group=2)
    assert (nodes_in_blocks(one_output(g, y), Choosing(SERVER)) == {y.producer}) == blocked


@pytest.mark.parametrize(
    ("made", "width", "blocked"),
    [
        (16, 32, False),
        (24, 40, False),
        (64, 18, True),
        (12, 24, False),
        (64, 8, True),
        (128, 40, True),
    ],
)
def test_a_convolution_in_rows_where_these_fill_vectors(made: int, width: int, blocked: bool) -> None:
    """A single layer, which has to be moved to be in blocks; one block of channels is slow, and so are ends of rows."""
    g = Graph()
    y = conv(g, g.input("x", (1, 48, 20, width), f32), made, 5)
    assert any(n.op == "conv2d" for n in nodes_in_blocks(one_output(g, y), Choosing(SERVER))) == blocked


def test_winograds_method_is_a_reason_for_blocks() -> None:
    """Rows of 32 fill their vectors as well as 64 channels do."""
    g = Graph()
    graph = one_output(g, conv(g, g.input("x", (1, 64, 32, 32), f32), 64))
    assert nodes_in_blocks(graph, Choosing(SERVER), by_winograd=True)
    assert not nodes_in_blocks(graph, Choosing(SERVER), by_winograd=False)
