"""K blocking: where a panel of B leaves the cache, and where A lies in more planes than prefetchers follow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weft.cost import (
    ColumnBlock,
    DepthProblem,
    KBlocks,
    Rule,
    TileProblem,
    cheapest,
    column_block_plans,
    depth_plans,
    k_block_plans,
)
from weft.targets import Target, cpu

MACHINE = cpu("avx2").having(l1=32 << 10, l2=512 << 10, l2_speed=32.0, l3=32 << 20, l3_speed=24.0, memory_speed=6.0)
POINTWISE = DepthProblem(panel=64, depth=512, rows=196, axis=0, planes=64, apart=6272, image=196 * 512 * 4)
"""A 1 x 1 convolution of 512 channels in blocks of 8, on images of 14 x 14."""


def rule(p: DepthProblem) -> str:
    decision = cheapest(list(depth_plans(p, MACHINE))).decision
    assert isinstance(decision, Rule)
    return decision.name


def blocks(p: DepthProblem, sizes: list[int]) -> KBlocks:
    decision = cheapest(list(k_block_plans(p, sizes, MACHINE))).decision
    assert isinstance(decision, KBlocks)
    return decision


def test_channels_in_many_planes_are_cut() -> None:
    assert rule(POINTWISE) == "k_blocked"
    assert blocks(POINTWISE, [64, 8]) == KBlocks(axis=0, blocks=8)


@pytest.mark.parametrize(
    "near",
    [
        replace(POINTWISE, planes=16, depth=128),
        replace(POINTWISE, image=100 << 10),
        replace(POINTWISE, apart=256),
        replace(POINTWISE, planes=512, axis=0),
    ],
    ids=["few planes", "an image that stays in cache", "planes next to one another", "one step in each"],
)
def test_others_are_not(near: DepthProblem) -> None:
    assert rule(near) == "tiled"


def test_a_panel_that_leaves_the_cache_is_cut_by_its_bytes() -> None:
    deep = DepthProblem(panel=64, depth=8192, rows=196, apart=4)
    assert rule(deep) == "k_blocked"
    assert blocks(deep, [8192]) == KBlocks(axis=0, blocks=4)
    assert rule(replace(deep, rows=4)) == "tiled", "too few rows to read it again"


def test_a_window_with_much_padding_is_left_whole() -> None:
    """A block of the reduction computes the products with padding, which tiles of the whole leave out."""
    tile = TileProblem(row=14, column=16, last=8, depth=8192, element_bytes=4, right_bytes=4 * 8192 * 128, outer_row=14)
    window = DepthProblem(panel=128, depth=8192, rows=196, apart=4, inside=0.5, tile=tile)
    assert rule(window) == "tiled"
    assert rule(replace(window, inside=0.99)) == "k_blocked"
    planes = replace(POINTWISE, places=196)
    assert rule(planes) == "k_blocked"
    assert rule(replace(planes, inside=0.75)) == "tiled"


def test_small_planes_are_scattered_too() -> None:
    """2048 channels of 7 x 7 places: a tile reads a few vectors of each plane of 1568 bytes."""
    assert (
        rule(DepthProblem(panel=128, depth=2048, rows=49, planes=256, apart=1568, image=49 * 2048 * 4)) == "k_blocked"
    )


def test_fewer_planes_are_scattered_where_no_cache_holds_the_image() -> None:
    """128 channels of 147 x 147 places are 16 planes, as many as prefetchers follow if the last cache holds them, 64 are 8."""
    large = DepthProblem(panel=64, depth=128, rows=21609, planes=16, apart=691_488, image=16 * 691_488, places=21609)
    near, far = MACHINE.having(l3=32 << 20), MACHINE.having(l3=8 << 20)

    def on(machine: Target, p: DepthProblem) -> str:
        decision = cheapest(list(depth_plans(p, machine))).decision
        assert isinstance(decision, Rule)
        return decision.name

    assert on(near, large) == "tiled"
    assert on(far, large) == "k_blocked"
    assert on(far, replace(large, depth=64, planes=8)) == "tiled"


def test_a_block_has_as_many_columns_as_tiles_leave_least_of() -> None:
    """Of 7 rows a tile has 4 by 3, so that of blocks of four columns one is left over; of 196 it has 6 by 2."""
    seven = TileProblem(row=7, column=48, last=8, depth=512, element_bytes=4, right_bytes=4 * 512 * 384)
    many = replace(seven, row=198)

    def columns(p: TileProblem) -> int:
        decision = cheapest(list(column_block_plans(p, 4, MACHINE))).decision
        assert isinstance(decision, ColumnBlock)
        return decision.columns

    assert columns(seven) % 3 == 0
    assert columns(replace(many, column=16)) == 4, "48 leave no rest of three, 16 do"
