"""Which plans of Winograd's method are cheaper than a direct convolution, by what they move and multiply."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.graph.checks import constant
from tests.graph.machines import WIDE

from weft.cost import MOST_OPEN_TILES, Layer, Winograd, winograd_cycles
from weft.cost.graph.winograd import SKIPPED
from weft.cost.sizes import PICTURE_SIDES
from weft.graph import Graph, Node
from weft.graph.layout.winograd_plans import Channels, layer_of, part_of_whole, tile_sizes, tiling_of, winograd_plans
from weft.ir import INDEX, Var, index
from weft.support.dtypes import f32
from weft.targets import Grid, Target


def best(layer: Layer, target: Target, others: int = 0) -> Winograd | None:
    """The cheapest plan; None for the direct computation."""
    found = winograd_plans(layer, target, others)[0].decision
    return None if found.is_direct else found


def layer(size: int, inputs: int, outputs: int) -> Layer:
    """A layer of 3 x 3 taps."""
    return Layer(1, size, size, inputs, outputs, 3, 9 * inputs, (1, 1), 16)


def test_weights_that_come_from_memory_count() -> None:
    large = Layer(1, 14, 14, 512, 256, 2, 128 * 9, (2, 2), 16)  # 13 MB of transformed weights for 49 tiles
    small = Layer(1, 28, 28, 256, 128, 2, 64 * 9, (2, 2), 16)
    assert best(small, WIDE) == Winograd(4, (1, 7, 7))
    assert best(large, WIDE, others=40 << 20) is None


def test_patches_fit_the_second_level_cache() -> None:
    rows = {}
    for megabytes in (1, 2, 16):
        plan = best(layer(112, 64, 64), WIDE.having(l2=megabytes << 20))
        assert plan is not None
        rows[megabytes] = plan.patch[1]
    assert 4 * 36 * rows[1] * 28 * 128 < 1 << 20
    assert rows[1] < rows[2] < rows[16]


def test_large_weights_are_read_once() -> None:
    plan = best(layer(14, 256, 256), WIDE)
    assert plan is not None
    assert (plan.tile, plan.patch) == (4, (1, 4, 4))


def test_tiles_are_mixed_where_they_would_overhang() -> None:
    def sizes(n: int, channels: int) -> set[tuple[int, int]]:
        plan = best(layer(n, channels, channels), WIDE.having(l3=256 << 20))
        assert plan is not None
        return tile_sizes(plan, layer(n, channels, channels))

    assert sizes(14, 256) == {(4, 4), (4, 3), (3, 4), (3, 3)}
    assert sizes(16, 256) == {(4, 4)}
    assert sizes(8, 16) == {(4, 4)}
    mixed = [c.decision for n in range(3, 40) for c in winograd_plans(layer(n, 128, 128), WIDE) if c.decision.mixed]
    assert mixed
    assert all(
        min(n for size in tile_sizes(p, layer(p.patch[1] * p.tile - 1, 128, 128)) for n in size) > 1 for p in mixed
    )


def test_tiles_are_not_mixed_where_each_size_is_launched_by_itself() -> None:
    cores = WIDE.having(kind="grid", grid=Grid(), l3=256 << 20)
    assert not cores.has_threads
    assert not any(c.decision.mixed for c in winograd_plans(layer(14, 256, 256), cores))
    assert best(layer(14, 256, 256), cores) == Winograd(4, (1, 4, 4))


def test_products_that_wait_for_weights_gain_nothing_from_fewer_tiles() -> None:
    near, far = WIDE.having(l3=256 << 20), WIDE.having(l3=1 << 20, memory_speed=0.5)
    whole, shape = Winograd(4, (1, 4, 4)), layer(14, 256, 256)
    plans = (replace(whole, mixed=True), whole)
    cycles = [[winograd_cycles(shape, tiling_of(p, shape), t) for p in plans] for t in (near, far)]
    ratios = [mixed / even for mixed, even in cycles]
    assert ratios[0] < 0.95 < ratios[1]


def test_first_layers_are_gathered() -> None:
    first = Layer(1, 112, 112, 12, 64, 4, 147, (2, 2), 16, gathered=True)
    plan = best(first, WIDE)
    assert plan is not None
    assert plan.tile == 4
    assert best(replace(first, inputs=3, outputs=16, multiplications=27, taps=3, strides=(1, 1)), WIDE) is None


def convolution(size: int, taps: int = 3, **how: Any) -> Node:
    g = Graph()
    x = g.input("x", (1, 4, size, size), f32)
    node = g.add("conv2d", [x, constant(g, 8, 4, taps, taps, name="w")], **how).producer
    assert node is not None
    return node


@pytest.mark.parametrize(
    ("size", "how", "inside"),
    [
        (7, {"pads": (1, 1, 1, 1)}, (19 / 21) ** 2),
        (7, {}, 1.0),
        (8, {"pads": (1, 1, 1, 1), "strides": (2, 2)}, (11 / 12) ** 2),
        (5, {"pads": (0, 2, 0, 0)}, 1 - 3 / 15),
        (9, {"pads": (9, 9, 9, 9), "dilations": (9, 9)}, 1 / 9),
        (1 << 20, {}, 1.0),
    ],
)
def test_a_direct_convolution_costs_less_where_it_reads_padding(size: int, how: dict[str, Any], inside: float) -> None:
    node = convolution(size, **how)
    assert node.output.static_shape is not None
    part = part_of_whole(node, (size, size), node.output.static_shape[2:], (3, 3))
    assert part == pytest.approx(inside + SKIPPED * (1 - inside))


def test_layers_with_much_padding_are_left_direct() -> None:
    whole = layer(8, 256, 256)
    assert best(whole, WIDE) is not None
    assert best(replace(whole, direct=0.2), WIDE) is None


def picture(channels: int, scale: int, sides: tuple[str, str] | tuple[int, str] = ("h", "w")) -> Layer | None:
    """A layer of 3 x 3 taps in blocks of 16 channels, on every *scale*-th place of a picture."""
    g = Graph()
    height, width = ((Var(s, INDEX) + (scale - 1)) // scale if isinstance(s, str) else index(s) for s in sides)
    x = g.input("x", (1, channels // 16, height, width, 16), f32)
    w = g.add("pack_conv_weight", [constant(g, channels, channels, 3, 3, name="w")], in_block=16, out_block=16)
    node = g.add("conv2d_blocked", [x, w], pads=(1, 1, 1, 1)).producer
    assert node is not None
    return layer_of(node, Channels((channels, channels, 3, 3), 16, 16))


def test_pictures_of_symbolic_sides_are_cut_into_small_patches() -> None:
    for scale in (1, 8):
        found = picture(64, scale)
        assert found is not None
        assert [(p.height, p.width) for p in found.pictures] == [(-(-s // scale),) * 2 for s in PICTURE_SIDES]
        plan = best(found, WIDE)
        assert plan is not None
        assert not plan.mixed
        assert plan.patch[1] * plan.patch[2] <= MOST_OPEN_TILES
    few = picture(16, 64)
    assert few is not None
    assert best(few, WIDE) is None  # most of a patch would overhang


def test_known_sides_are_cut_evenly() -> None:
    found = picture(64, 1, (40, "w"))
    assert found is not None
    rows = {c.decision.patch[1] for c in winograd_plans(found, WIDE) if c.decision.tile == 4}
    assert rows == {10, 5, 4, 3, 2, 1}
