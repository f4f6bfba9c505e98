"""Convolutions on grids as products: of which shapes, with the maps behind them, and that they mean the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops
from tests.graph.oracle import Oracle

from weft.cost import Choosing
from weft.graph import Graph, Value, optimize, print_graph
from weft.graph.passes.convolutions.choose_implicit_products import choose_implicit_products
from weft.support.dtypes import f32
from weft.targets import Target, cpu
from weft.targets.cuda_machines import cuda
from weft.targets.grid_machines import GENERIC_THREADS, OPENCL

MAPS: dict[str, Callable[[Graph, Value], Value]] = {
    "a number": lambda g, y: g.add("mul", [y, constant(g)]),
    "a number for each channel": lambda g, y: g.add("add", [constant(g, 32, 1, 1), y]),
    "another convolution": lambda g, y: g.add("add", [y, conv(g, g.add("relu", [y]), "v", 32, 32, 1, 1)]),
    "an image": lambda g, y: g.add("relu", [g.add("add", [y, g.input("z", tuple(y.shape), f32)])]),
}
WINDOWS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "stride": ((2, 32, 13, 12), (3, 3), {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
    "padding of one side": ((1, 32, 9, 9), (2, 3), {"pads": (1, 0, 0, 2)}),
    "dilation": ((1, 32, 12, 12), (3, 3), {"dilations": (2, 3)}),
    "one tap at a stride": ((1, 192, 12, 12), (1, 1), {"strides": (2, 2)}),
    "sequence": ((2, 64, 40), (3,), {"strides": (1,), "pads": (1, 1), "dilations": (1,)}),
    "volume": ((1, 32, 5, 6, 7), (3, 1, 2), {"strides": (1, 2, 1), "pads": (1, 0, 0, 1, 0, 1), "dilations": (1, 1, 1)}),
}


def conv(g: Graph, x: Value, name: str, made: int, read: int, *kernel: int, **attributes: Any) -> Value:
    return g.add("conv2d", [x, constant(g, made, read, *kernel, name=name), constant(g, made)], **attributes)


def convolution(shape: tuple[int, ...], kernel: tuple[int, ...], made: int = 32, **attributes: Any) -> Graph:
    g = Graph()
    read = shape[1] // attributes.get("group", 1)
    return one_output(g, conv(g, g.input("x", shape, f32), "w", made, read, *kernel, **attributes))


def chosen(graph: Graph) -> Graph:
    return choose_implicit_products(graph, Choosing(GENERIC_THREADS))


def test_text_before_and_after() -> None:
    g = Graph()
    y = g.add("conv2d", [g.input("x", (1, 35, 9, 9), f32), constant(g, 32, 35, 3, 3, name="w")], pads=(1, 1, 1, 1))
    made = apply_pass(one_output(g, g.add("relu", [y])), chosen)
    assert print_graph(made) == (
        "graph main(x: f32[1, 35, 9, 9]) -> (y):\n"
        "  w = constant f32[32, 35, 3, 3]\n"
        "  transpose: f32[3, 3, 35, 32] = transpose(w, perm=(2, 3, 1, 0))\n"
        "  w_matrix: f32[315, 32] = reshape(transpose, shape=(315, 32))\n"
        "  w_steps: f32[320, 32] = pad(w_matrix, pads=(0, 0, 5, 0))\n"
        "  conv2d_implicit: f32[1, 32, 81] = "
        "conv2d_implicit(x, w_steps, dilations=(1, 1), kernel=(3, 3), pads=(1, 1, 1, 1), strides=(1, 1))\n"
        "  relu_1: f32[1, 32, 81] = relu(conv2d_implicit)\n"
        "  relu: f32[1, 32, 9, 9] = reshape(relu_1, shape=(1, 32, 9, 9))\n"
        "  return y=relu\n"
    )


def test_taps_of_three_channels_are_filled_up_where_factors_are_rounded() -> None:
    graph = convolution((32, 3, 224, 224), (7, 7), 64, pads=(3, 3, 3, 3), strides=(2, 2))

    found = choose_implicit_products(graph, Choosing(cuda("sm_90")), "bf16")
    (made,) = [n for n in found.nodes if n.op == "conv2d_implicit"]
    assert made.attribute("channels") == 4
    assert [str(v.shape) for v in made.inputs if v is not None][1:2] == ["(64, 256)"]


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str) -> None:
    shape, kernel, attributes = WINDOWS[name]
    assert "conv2d_implicit" in ops(apply_pass(convolution(shape, kernel, **attributes), chosen))


def test_images_of_few_places_are_columns_of_one_product() -> None:
    made = apply_pass(convolution((32, 64, 7, 7), (3, 3), 64, pads=(1, 1, 1, 1)), chosen)
    assert [n.attribute("merged") for n in made.nodes if n.op == "conv2d_implicit"] == [True]


@pytest.mark.parametrize("behind", MAPS.values(), ids=MAPS)
def test_maps_follow(behind: Callable[[Graph, Value], Value]) -> None:
    g = Graph()
    y = conv(g, g.input("x", (2, 32, 9, 9), f32), "w", 32, 32, 3, 3, pads=(1, 1, 1, 1))
    made = apply_pass(one_output(g, behind(g, y)), chosen)
    assert all(n.output.rank == 3 for n in made.nodes if n.op in ("add", "mul", "relu"))
    assert "conv2d" not in ops(made)


def test_a_map_that_reads_along_a_row_does_not_follow() -> None:
    g = Graph()
    y = conv(g, g.input("x", (1, 32, 9, 9), f32), "w", 32, 32, 3, 3, pads=(1, 1, 1, 1))
    made = apply_pass(one_output(g, g.add("add", [y, constant(g, 9)])), chosen)
    assert next(n for n in made.nodes if n.op == "add").output.rank == 4


@pytest.mark.parametrize(
    ("shape", "kernel", "attributes"),
    [((1, 8, 9, 9), (3, 3), {"group": 8, "made": 8}), ((4, 8, 1, 1), (1, 1), {})],
    ids=["channels alone", "one place"],
)
def test_others_stay(shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]) -> None:
    assert "conv2d_implicit" not in ops(apply_pass(convolution(shape, kernel, **attributes), chosen))


@pytest.mark.parametrize(
    "target",
    [cpu("avx2"), OPENCL.having(vector_bits=256, scopes=OPENCL.scopes[:1])],
    ids=["processor", "device of cores"],
)
def test_cores_with_vectors_compute_as_before(target: Target) -> None:
    graph = convolution((1, 16, 14, 14), (3, 3), pads=(1, 1, 1, 1))
    assert not target.has_threads
    assert "conv2d_implicit" not in ops(optimize(graph, target, Oracle()))


def test_threads_have_no_blocks_of_channels_phases_or_transforms() -> None:
    g = Graph()
    x = g.input("x", (1, 64, 14, 14), f32)
    y = g.add("relu", [conv(g, x, "a", 64, 64, 3, 3, pads=(1, 1, 1, 1))])
    y = g.add("relu", [conv(g, y, "b", 64, 1, 3, 3, group=64, pads=(1, 1, 1, 1), strides=(2, 2))])
    y = conv(g, y, "c", 64, 64, 3, 3, pads=(2, 2, 2, 2), dilations=(2, 2))
    y = g.add("conv_transpose2d", [y, constant(g, 64, 32, 4, 4)], strides=(2, 2), pads=(1, 1, 1, 1))
    made = ops(optimize(one_output(g, y), GENERIC_THREADS, Oracle()))
    assert [op for op in made if op != "reshape"] == [
        *["conv2d_implicit", "relu", "conv2d", "relu", "conv2d_implicit", "conv2d_implicit", "interleave_phases"]
    ]
