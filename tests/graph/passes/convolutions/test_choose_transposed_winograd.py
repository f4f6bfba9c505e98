"""Which transposed convolutions are computed by Winograd's method, and that these compute the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops
from tests.graph.oracle import Oracle

from weft.cost import Choosing, Layer, Tiling, winograd_cycles
from weft.graph import Constant, Graph, optimize
from weft.graph.layout.winograd_plans import winograd_plans
from weft.graph.passes.choose_layouts import choose_layouts
from weft.graph.passes.convolutions.choose_transposed_winograd import choose_transposed_winograd, phase_error
from weft.support.dtypes import f32
from weft.support.knobs import Switches
from weft.targets import Target, cpu

FOUR = cpu("sse4").having(l2=1 << 20, l3=32 << 20, l3_speed=24.0, memory_speed=8.0)
"""A machine with vectors of four floats."""

WIDE = Layer(
    images=1,
    height=16,
    width=16,
    inputs=128,
    outputs=64,
    taps=2,
    multiplications=4 * 2 * 2 * 128,
    strides=(1, 1),
    block=4,
    output_phases=4,
    beginnings=4,
    padded=False,
)


def of_size(size: int, inputs: int, outputs: int) -> Layer:
    """The layer with other sizes."""
    return replace(WIDE, height=size, width=size, inputs=inputs, outputs=outputs, multiplications=4 * 2 * 2 * inputs)


def best_tile(layer: Layer, target: Target, others: int = 0) -> int | None:
    best = winograd_plans(layer, target, others)[0].decision
    return None if best.is_direct else best.tile


def transposed(
    channels: int = 32, kernel: int = 4, stride: int = 2, pad: int = 1, size: int = 8, weight: Constant | None = None
) -> Graph:
    g = Graph()
    x = g.input("x", (1, channels, size, size), f32)
    w = weight or constant(g, channels, channels, kernel, kernel, name="w")
    attributes: dict[str, Any] = {"strides": (stride, stride), "pads": (pad,) * 4}
    y = g.add("conv_transpose2d", [x, w, constant(g, channels, name="b")], **attributes)
    return one_output(g, g.add("relu", [y]))


def choose(graph: Graph) -> Graph:
    return choose_transposed_winograd(choose_layouts(graph, Choosing(FOUR)), Choosing(FOUR))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kernel", "stride", "pad"), [(4, 2, 1), (3, 2, 1), (5, 2, 2), (6, 3, 0)])
def test_where_there_is_work_enough(kernel: int, stride: int, pad: int) -> None:
    found = ops(apply_pass(transposed(kernel=kernel, stride=stride, pad=pad), choose))
    assert found == [
        "pack_vector",
        "pack_channels",
        "pack_transposed_winograd_weight",
        "conv_transpose2d_winograd",
        "relu",
        "unpack_channels",
    ]


@pytest.mark.parametrize(
    "graph",
    [transposed(channels=6), transposed(kernel=2), transposed(kernel=8), transposed(size=1)],
    ids=["channels that fill no vector", "one tap", "many taps", "one position"],
)
def test_others_are_kept(graph: Graph) -> None:
    assert "conv_transpose2d_blocked" in ops(choose(graph))


def test_layers_that_it_would_cost_accuracy_are_kept() -> None:
    blocked = choose_layouts(transposed(), Choosing(FOUR))
    assert "conv_transpose2d_blocked" in ops(choose_transposed_winograd(blocked, Choosing(FOUR), largest_error=1e-8))


def test_errors_of_all_phases_count() -> None:
    w = constant(Graph(), 16, 16, 4, 4).array.copy()
    errors = [phase_error(w, (2, 2), 2, m) for m in (2, 4)]
    assert 0 < errors[0] < errors[1] < 2e-5


def test_strict_precision_forbids_it() -> None:
    found = {p: ops(optimize(transposed(), FOUR, Oracle(), Switches(precision=p))) for p in ("model", "strict")}
    assert "conv_transpose2d_winograd" in found["model"]
    assert "conv_transpose2d_blocked" in found["strict"]


def test_weights_from_memory_make_larger_tiles_cost_more() -> None:
    deep = of_size(8, 256, 128)
    machine = FOUR.having(vector_bits=512, fma_per_cycle=2)
    assert best_tile(deep, machine) == 4
    assert best_tile(deep, machine, others=14 << 20) == 2
    assert best_tile(of_size(4, 512, 256), machine, others=14 << 20) is None


def test_phases_that_begin_at_one_place_share_a_transform() -> None:
    tiles = Tiling(4, (1, 4, 4), ((25, 16),))
    machine = FOUR.having(vector_bits=512, fma_per_cycle=2)
    assert winograd_cycles(replace(WIDE, beginnings=1), tiles, machine) < winograd_cycles(WIDE, tiles, machine)
