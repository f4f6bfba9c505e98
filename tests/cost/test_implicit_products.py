"""Which convolutions are products of rounded factors, and in which tiles."""

from __future__ import annotations

import pytest

from weft.cost import (
    FragmentProduct,
    FragmentTile,
    ImplicitProduct,
    cheapest,
    filled_terms,
    fragment_tile_plans,
    implicit_product_plans,
)
from weft.support.dtypes import bf16, f32, u32
from weft.targets.cuda_machines import cuda

H200 = cuda("sm_90")


def best_tile(channels: int, places: int, terms: int) -> FragmentTile:
    p = FragmentProduct(channels, places, 1, terms, terms, patches=True)
    found = cheapest(list(fragment_tile_plans(p, H200))).decision
    assert isinstance(found, FragmentTile)
    return found


@pytest.mark.parametrize("images", [1, 32])
def test_many_channels_of_few_places_are_rounded(images: int) -> None:
    found = cheapest(implicit_product_plans(512, 49, images, 4608, H200, bf16)).decision
    assert found == ImplicitProduct(product=True, merged=images > 1, rounded=True)


def test_few_tiles_split_their_terms() -> None:
    tile = best_tile(512, 49 * 32, 4608)
    assert tile.parts > 1
    assert tile.filled  # no multiple of 8 x 8 columns divides the places
    assert 4608 // tile.parts % (tile.steps * 16) == 0


def test_many_tiles_do_not() -> None:
    tile = best_tile(64, 56 * 56 * 32, 576)
    assert (tile.parts, tile.filled) == (1, False)


def test_products_without_patches_are_not_filled_up() -> None:
    p = FragmentProduct(512, 49, 1, 4608, 4608)
    assert not any(c.decision.filled for c in fragment_tile_plans(p, H200))


def test_taps_are_filled_up_where_factors_are_rounded() -> None:
    assert filled_terms(147, 3, bf16) == 256  # 49 taps of 4 channels, and rows of 64 terms
    assert filled_terms(147, 3, u32) == 224  # rows of 32 terms
    assert filled_terms(147, 3, f32) == 160
    assert filled_terms(144, 16, bf16) == 144
    for factors in (bf16, u32):
        assert cheapest(implicit_product_plans(64, 112 * 112, 32, 147, H200, factors, 3)).decision.rounded


def test_tf32_takes_longer_than_bf16_and_less_than_float32() -> None:
    found = [cheapest(implicit_product_plans(256, 14 * 14, 32, 2304, H200, t)) for t in (bf16, u32, f32)]
    assert [c.decision.rounded for c in found] == [True, True, False]
    assert found[0].cycles < found[1].cycles < found[2].cycles


def test_few_channels_of_few_terms_stay_in_float32() -> None:
    assert not cheapest(implicit_product_plans(32, 112 * 112, 32, 27, H200, bf16, 3)).decision.rounded
