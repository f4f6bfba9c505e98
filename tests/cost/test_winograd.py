"""What Winograd's method costs beside a direct convolution: which way each fact of a machine pulls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.graph.machines import WIDE

from weft.cost.graph.memory import spill_cycles, streaming_cycles
from weft.cost.graph.winograd import (
    FrameWindow,
    Layer,
    Tiling,
    direct_cycles,
    direct_part,
    winograd_cycles,
    winograd_panel,
)

LAYER = Layer(1, 28, 28, 64, 64, 3, 9 * 64, (1, 1), 16)
WHOLE = Tiling(4, (1, 7, 7), ((36, 49),))


def test_a_direct_convolution_takes_its_multiply_adds() -> None:
    assert direct_cycles(LAYER, WIDE) == 28 * 28 * 9 * 64 * 64 / 16
    assert direct_cycles(LAYER, WIDE.having(fma_per_cycle=2)) == direct_cycles(LAYER, WIDE) / 2
    assert direct_cycles(replace(LAYER, direct=0.5), WIDE) == direct_cycles(LAYER, WIDE) / 2


def test_one_that_reads_more_than_it_multiplies_waits_for_its_weights() -> None:
    narrow = Layer(1, 1, 1, 512, 512, 3, 9 * 512, (1, 1), 16)
    assert direct_cycles(narrow, WIDE) == 4 * 9 * 512 * 512 / WIDE.caches.l3_speed
    assert direct_cycles(narrow, WIDE, others=64 << 20) == 4 * 9 * 512 * 512 / WIDE.caches.memory_speed


def test_skipped_padding_still_costs() -> None:
    assert direct_part(1.0) == 1.0
    assert 0.5 < direct_part(0.5) < 1.0


def test_more_units_help_the_products_alone() -> None:
    slow, fast = (winograd_cycles(LAYER, WHOLE, WIDE.having(fma_per_cycle=n)) for n in (1, 2))
    assert slow / 2 < fast < slow


def test_an_input_that_is_gathered_or_begins_at_several_places_costs_more() -> None:
    plain = winograd_cycles(LAYER, WHOLE, WIDE)
    assert winograd_cycles(replace(LAYER, padded=False), WHOLE, WIDE) < plain
    assert winograd_cycles(replace(LAYER, gathered=True), WHOLE, WIDE) > plain
    assert winograd_cycles(replace(LAYER, beginnings=4), WHOLE, WIDE) > plain


def test_a_second_group_of_points_costs_its_loops() -> None:
    cut = Tiling(4, (1, 7, 7), ((18, 49), (18, 49)))
    assert winograd_cycles(LAYER, cut, WIDE) > winograd_cycles(LAYER, WHOLE, WIDE)


def test_what_fits_the_second_level_streams_from_nowhere() -> None:
    half = WIDE.caches.l2 // 2
    assert streaming_cycles(half, WIDE) == 0
    assert streaming_cycles(half + 64, WIDE) == (half + 64) / WIDE.caches.l3_speed
    assert spill_cycles(half, WIDE) == 0
    assert spill_cycles(2 * WIDE.caches.l2, WIDE) > 0


def test_what_no_cache_holds_goes_to_memory_and_back() -> None:
    caches = WIDE.caches
    more = spill_cycles(caches.l3 + caches.line, WIDE) - spill_cycles(caches.l3, WIDE)
    assert more == pytest.approx(2 * caches.line / caches.memory_speed)


def test_frames_of_a_patch_share_the_transforms_that_they_read() -> None:
    """Four frames read six, where one reads three; and a step of the frames reads none twice."""
    layer = replace(LAYER, images=8, window=FrameWindow(frames=8, taps=3, stride=1))
    assert [layer.images_read(n) for n in (1, 4)] == [3, 6]
    assert layer.depth == 3 * LAYER.inputs
    one, four = (Tiling(4, (n, 1, 7), ((36, 7 * n),)) for n in (1, 4))
    apart, together = (winograd_cycles(layer, t, WIDE.having(l2=8 << 20)) for t in (one, four))
    assert together < apart
    assert replace(layer, window=FrameWindow(frames=8, taps=3, stride=3)).images_read(4) == 12


def test_panels_of_weights_are_two_vectors_or_all_there_are() -> None:
    assert [winograd_panel(n, WIDE.lanes(32)) for n in (5, 16, 20, 64)] == [16, 16, 32, 32]
