"""Channel blocks: convolutions and what lies between them, with every way a block can be filled or padded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops, scalar
from tests.graph.oracle import Oracle

from weft.cost import Choosing, group_blocks, input_block, output_block
from weft.cost.graph.channel_blocks import group_block
from weft.graph import Constant, Graph, Value, print_graph
from weft.graph.passes.choose_layouts import choose_layouts
from weft.graph.passes.fold_constants import fold_constants
from weft.support.dtypes import f32
from weft.targets import cpu

FOUR = cpu("sse4")
"""A machine with vectors of four floats, so that small models fill them."""


def conv(
    g: Graph, x: Value, channels: int, kernel: int = 3, *, group: int = 1, bias: bool = True, stride: int = 1
) -> Value:
    taken = int(x.shape[1].value) // group  # type: ignore[attr-defined]
    w = constant(g, channels, taken, kernel, kernel, name="w")
    b = constant(g, channels, name="b") if bias else None
    pad = kernel // 2
    return g.add("conv2d", [x, w, b], strides=(stride, stride), pads=(pad,) * 4, group=group)


def layouts(graph: Graph) -> Graph:
    return fold_constants(choose_layouts(graph, Choosing(FOUR)), Oracle())


def built(build: Callable[[Graph, Value], Value], channels: int = 8, width: int = 6) -> Graph:
    g = Graph()
    return one_output(g, build(g, g.input("x", (1, channels, 6, width), f32)))


SHORT = 5
"""A width of rows that fill less of their vectors than the channels of the tests do."""


def test_blocks() -> None:
    assert [output_block(c, 16) for c in (1, 3, 8, 12, 16, 24, 1000)] == [1, 4, 8, 16, 16, 16, 16]
    assert [input_block(c, 16) for c in (1, 3, 8, 16, 24, 63, 72)] == [1, 1, 1, 16, 1, 16, 16]
    assert [group_block(c, 16) for c in ((32, 16), (4, 8), (2, 2))] == [16, 4, None]


def test_blocks_of_groups() -> None:
    """What is read takes any block; what is computed whole vectors, padded or not, or a common block that fills as much."""
    assert [group_blocks(r, 32, 16) for r in (32, 22, 8, 1)] == [(16, 16), (1, 16), (1, 16), None]
    assert [group_blocks(26, m, 16) for m in (12, 10, 25, 3)] == [(1, 16), (1, 16), (1, 16), None]
    assert [group_blocks(c, c, 16) for c in (2, 4, 8, 24)] == [None, (4, 4), (8, 8), (1, 16)]
    assert [group_blocks(72, m, 16) for m in (72, 33, 6, 4)] == [(72, 16), (72, 16), None, (4, 4)]
    assert [group_blocks(2, m, 16, rows=False) for m in (3, 4, 32)] == [(1, 4), (1, 4), (1, 16)]


def test_text_before_and_after() -> None:
    graph = built(lambda g, x: g.add("relu", [conv(g, conv(g, x, 8, bias=False), 8, 1, bias=False)]))
    made = apply_pass(graph, layouts)
    assert print_graph(made) == (
        "graph main(x: f32[1, 8, 6, 6]) -> (y):\n"
        "  w_packed = constant f32[2, 2, 3, 3, 4, 4]\n"
        "  w_packed.1 = constant f32[2, 2, 1, 1, 4, 4]\n"
        "  pack_channels: f32[1, 2, 6, 6, 4] = pack_channels(x, block=4)\n"
        "  conv2d_blocked: f32[1, 2, 6, 6, 4] = conv2d_blocked(pack_channels, w_packed, none, dilations=(1, 1), "
        "group=1, pads=(1, 1, 1, 1), strides=(1, 1))\n"
        "  conv2d_1_blocked: f32[1, 2, 6, 6, 4] = conv2d_blocked(conv2d_blocked, w_packed.1, none, dilations=(1, 1), "
        "group=1, pads=(0, 0, 0, 0), strides=(1, 1))\n"
        "  relu_blocked: f32[1, 2, 6, 6, 4] = relu(conv2d_1_blocked)\n"
        "  relu: f32[1, 8, 6, 6] = unpack_channels(relu_blocked, channels=8)\n"
        "  return y=relu\n"
    )


def residual(g: Graph, x: Value) -> Value:
    y = g.add("relu", [conv(g, x, 8)])
    return g.add("relu", [g.add("add", [conv(g, y, 8), conv(g, x, 8, 1)])])


def pools(g: Graph, x: Value) -> Value:
    y = g.add("max_pool2d", [conv(g, x, 8)], kernel=(2, 2), strides=(2, 2), pads=(0, 0, 0, 0))
    y = g.add("avg_pool2d", [y], kernel=(2, 2), strides=(1, 1), pads=(1, 1, 1, 1))
    return g.add("reduce_mean", [y], axes=(-1, -2), keepdims=True)


def squeezed(g: Graph, x: Value) -> Value:
    y = conv(g, x, 8)
    s = g.add("sigmoid", [conv(g, g.add("reduce_mean", [y], axes=(2, 3), keepdims=True), 8, 1)])
    return g.add("mul", [y, s])


def affine(g: Graph, x: Value) -> Value:
    y = g.add("mul", [conv(g, x, 8), constant(g, 8, 1, 1)])
    y = g.add("add", [y, constant(g, 1, 1, 6, 1)])
    return g.add("add", [scalar(g, 2.0), y])


def transposed(g: Graph, x: Value) -> Value:
    w, b = constant(g, 8, 4, 4, 4, name="w"), constant(g, 4, name="b")
    return g.add("conv_transpose2d", [x, w, b], strides=(2, 2), pads=(1, 1, 1, 1), output_padding=(1, 0))


def stretched(g: Graph, x: Value) -> Value:
    taps, weights = np.array([[0, 1], [3, 5], [2, 2]]), np.array([[0.5, 0.5], [0.25, 0.75], [1, 0]], np.float32)
    y = g.add("repeat", [conv(g, x, 8)], axis=-1, times=2)
    y = g.add("resample", [y, Constant("taps", taps), Constant("weights", weights)], axis=2)
    return conv(g, g.add("softmax", [y], axis=3), 8)


def padded(g: Graph, x: Value) -> Value:
    y = g.add("pad", [conv(g, x, 8)], pads=(0, 0, 0, 1, 0, 0, 2, 0), value=1.5)
    return g.add("max_pool2d", [y], kernel=(3, 3), strides=(2, 2), pads=(0, 0, 0, 0))


STAYS_BLOCKED: dict[str, Callable[[Graph, Value], Value]] = {
    "residual": residual,
    "pools": pools,
    "squeeze and excite": squeezed,
    "stretched": stretched,
    "padded": padded,
    "affine": affine,
    "depthwise with stride": lambda g, x: conv(g, conv(g, x, 8, group=8), 8, group=8, stride=2),
    "depthwise": lambda g, x: conv(g, conv(g, conv(g, x, 8), 8, group=8), 4),
    "grouped": lambda g, x: conv(g, conv(g, x, 16, 1), 8, group=2),
    "concat": lambda g, x: g.add("concat", [conv(g, x, 8), conv(g, x, 4)], axis=1),
    "transposed": transposed,
    "stride": lambda g, x: conv(g, conv(g, x, 8, stride=2), 8, stride=2),
}


@pytest.mark.parametrize("what", STAYS_BLOCKED)
def test_between_convolutions_nothing_is_unpacked(what: str) -> None:
    made = apply_pass(built(STAYS_BLOCKED[what]), layouts)
    found = ops(made)
    assert found[0] == "pack_channels"
    assert found.count("pack_channels") == 1
    assert found[-1] == ("unpack_channels" if what != "pools" else "reshape")
    assert found.count("unpack_channels") + found.count("reshape") == 1
    assert not {"conv2d", "conv_transpose2d"} & set(found)


def volume(g: Graph, x: Value, channels: int, kernel: int = 3, *, group: int = 1, stride: int = 1) -> Value:
    taken = int(x.shape[1].value) // group  # type: ignore[attr-defined]
    w, b = constant(g, channels, taken, *(kernel,) * 3, name="w"), constant(g, channels, name="b")
    strides, pads = (stride,) * 3, (kernel // 2,) * 6
    return g.add("conv2d", [x, w, b], group=group, strides=strides, dilations=(1,) * 3, pads=pads)


VOLUMES: dict[str, Callable[[Graph, Value], Value]] = {
    "residual": lambda g, x: g.add("relu", [g.add("add", [volume(g, volume(g, x, 8), 8), volume(g, x, 8, 1)])]),
    "stride": lambda g, x: volume(g, volume(g, x, 8, stride=2), 8, stride=2),
    "groups": lambda g, x: volume(g, volume(g, x, 16, 1), 8, group=2),
    "depthwise": lambda g, x: volume(g, volume(g, volume(g, x, 8), 8, group=8, stride=2), 4),
    "channel by channel": lambda g, x: g.add("mul", [volume(g, x, 8), constant(g, 8, 1, 1, 1)]),
    "concat": lambda g, x: g.add("concat", [volume(g, x, 8), volume(g, x, 4)], axis=1),
    "padded": lambda g, x: volume(g, g.add("pad", [volume(g, x, 8)], pads=(0, 0, 0, 1, 0, 0, 0, 2, 0, 1)), 8),
    "pooled": lambda g, x: volume(
        g,
        g.add("max_pool2d", [volume(g, x, 8)], kernel=(2,) * 3, strides=(2,) * 3, pads=(0,) * 6, dilations=(1,) * 3),
        8,
    ),
}


@pytest.mark.parametrize("what", VOLUMES)
def test_volumes_stay_in_blocks(what: str) -> None:
    g = Graph()
    made = apply_pass(one_output(g, VOLUMES[what](g, g.input("x", (1, 8, 4, 6, 5), f32))), layouts)
    found = ops(made)
    assert found[0] == "pack_channels"
    assert found[-1] == "unpack_channels"
    assert found.count("pack_channels") + found.count("unpack_channels") == 2
    assert "conv2d" not in found


def test_volumes_are_reduced_in_blocks() -> None:
    g = Graph()
    y = volume(g, g.input("x", (2, 8, 4, 6, 5), f32), 8)
    made = apply_pass(one_output(g, g.add("reduce_mean", [y], axes=(-1, 2, 3), keepdims=False)), layouts)
    assert ops(made) == ["pack_channels", "conv2d_blocked", "reduce_mean", "reshape", "reshape"]


@pytest.mark.parametrize(("taken", "made"), [(3, 6), (6, 3), (1, 4), (5, 7), (9, 3)])
def test_channels_that_fill_no_block(taken: int, made: int) -> None:
    graph = built(lambda g, x: g.add("tanh", [conv(g, g.add("relu", [conv(g, x, 6)]), made)]), taken, SHORT)
    found = ops(apply_pass(graph, layouts))
    first = "reshape"  # they fill no vectors, and are read one at a time
    assert found == [first, "conv2d_blocked", "relu", "conv2d_blocked", "tanh", "unpack_channels"]


@pytest.mark.parametrize(
    ("channels", "made", "group", "bias"), [(12, 12, 2, True), (12, 14, 2, False), (18, 21, 3, True)]
)
def test_groups_that_fill_no_block(channels: int, made: int, group: int, bias: bool) -> None:
    graph = built(lambda g, x: g.add("tanh", [conv(g, x, made, group=group, bias=bias)]), channels, SHORT)
    assert ops(apply_pass(graph, layouts)) == ["reshape", "conv2d_blocked", "unpack_groups", "reshape", "tanh"]


def test_a_group_reads_the_blocks_that_are_there() -> None:
    graph = built(lambda g, x: conv(g, conv(g, x, 16), 10, group=2), width=SHORT)
    found = ops(apply_pass(graph, layouts))
    assert found == ["pack_channels", "conv2d_blocked", "conv2d_blocked", "unpack_groups", "reshape"]


def test_padding_channels_never_meet_what_is_not_finite_at_zero() -> None:
    graph = built(
        lambda g, x: conv(g, g.add("exp", [g.add("log", [g.add("square", [conv(g, x, 6)])])]), 4), width=SHORT
    )
    found = ops(apply_pass(graph, layouts))
    assert found == [
        "pack_channels",
        "conv2d_blocked",
        "square",
        "unpack_channels",
        "log",
        "exp",
        "reshape",
        "conv2d_blocked",
        "unpack_channels",
    ]


def test_without_padding_any_map_stays_in_blocks() -> None:
    graph = built(lambda g, x: g.add("exp", [g.add("log", [g.add("square", [conv(g, x, 8)])])]))
    assert ops(apply_pass(graph, layouts))[1:-1] == ["conv2d_blocked", "square", "log", "exp"]


def test_what_depends_on_the_order_of_channels_reads_them_in_order() -> None:
    def build(g: Graph, x: Value) -> Value:
        y = g.add("softmax", [conv(g, x, 8)], axis=1)
        return g.add("reshape", [g.add("expand", [y], shape=(3, 8, 6, 6))], shape=(3, 288))

    assert ops(apply_pass(built(build), layouts))[2:] == ["unpack_channels", "softmax", "expand", "reshape"]


UNBLOCKED: dict[str, Callable[[Graph, Value], Value]] = {
    "depthwise alone": lambda g, x: g.add("relu", [conv(g, conv(g, x, 8, group=8), 8, group=8)]),
    "small groups": lambda g, x: conv(g, x, 4, group=4),
    "depth multiplier": lambda g, x: conv(g, x, 16, group=8),
    "weights that are not known": lambda g, x: g.add("conv2d", [x, g.input("w", (8, 8, 1, 1), f32)]),
    "a softmax over channels": lambda g, x: g.add("softmax", [x], axis=1),
    "channels that are padded": lambda g, x: g.add("pad", [x], pads=(0, 2, 0, 0, 0, 0, 0, 0)),
    "dilated transposed": lambda g, x: g.add("conv_transpose2d", [x, constant(g, 8, 4, 2, 2)], dilations=(2, 2)),
}


@pytest.mark.parametrize("what", UNBLOCKED)
def test_what_has_no_blocked_form_is_kept(what: str) -> None:
    g = built(UNBLOCKED[what])
    assert choose_layouts(g, Choosing(FOUR)) is g


def test_few_channels_are_computed_along_rows() -> None:
    """One channel of four fills a quarter of a vector; rows of six fill three quarters."""
    assert ops(apply_pass(built(lambda g, x: conv(g, x, 1)), layouts)) == ["conv2d"]


def test_depthwise_alone_is_blocked_where_rows_are_narrow() -> None:
    g = Graph()
    x = g.input("x", (1, 8, 6, 3), f32)
    made = apply_pass(one_output(g, conv(g, x, 8, group=8)), layouts)
    assert ops(made) == ["pack_channels", "depthwise_conv2d_blocked", "unpack_channels"]


def test_other_ranks_are_kept() -> None:
    g = Graph()
    one_output(
        g,
        g.add(
            "conv2d", [g.input("x", (1, 8, 6), f32), constant(g, 8, 8, 3)], strides=(1,), pads=(0, 0), dilations=(1,)
        ),
    )
    assert choose_layouts(g, Choosing(FOUR)) is g


def test_batch_and_places_may_be_symbolic() -> None:
    g = Graph()
    x = g.input("x", (g.dim("n"), 8, g.dim("h"), 6), f32)
    made = apply_pass(one_output(g, g.add("relu", [conv(g, x, 8)])), layouts)
    assert ops(made) == ["pack_channels", "conv2d_blocked", "relu", "unpack_channels"]


def test_a_plain_operand_is_packed_if_it_is_no_larger() -> None:
    def build(g: Graph, x: Value) -> Value:
        return g.add("add", [conv(g, x, 8), x])

    assert ops(apply_pass(built(build), layouts)) == ["pack_channels", "conv2d_blocked", "add", "unpack_channels"]


def test_weights_that_are_inputs_are_packed_in_each_call() -> None:
    """Where the convolution takes longer than packing its weight; a pointwise one of few places is a product instead."""
    g = Graph()
    x, w = g.input("x", (1, 8, 12, 12), f32), g.input("w", (8, 8, 3, 3), f32)
    one_output(g, g.add("relu", [g.add("conv2d", [x, w, None], strides=(2, 2), pads=(1, 1, 1, 1))]))
    made = apply_pass(g, layouts)
    assert ops(made) == ["pack_conv_weight", "pack_channels", "conv2d_blocked", "relu", "unpack_channels"]


def test_a_weight_that_is_long_to_pack_stays_as_it_is() -> None:
    g = Graph()
    x, w = g.input("x", (1, 64, 1, 1), f32), g.input("w", (64, 64, 1, 1), f32)
    one_output(g, g.add("conv2d", [x, w, None]))
    assert "pack_conv_weight" not in ops(apply_pass(g, layouts))
