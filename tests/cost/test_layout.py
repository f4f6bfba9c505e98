"""What a convolution costs in either layout: which way each fact of a machine pulls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.graph.machines import WIDE

from weft.cost.graph.arithmetic import filled_part, multiply_cycles
from weft.cost.graph.layout import Convolution, Form, blocked_cycles, depthwise_cycles, plain_cycles

IMAGE = Convolution(Form.ROWS, 1 << 20, 32, 28 * 28, 28, (3, 3), 1)
WORK = multiply_cycles(IMAGE.products, 32, WIDE)


def test_multiply_adds_take_as_long_as_there_are_vectors_of_them() -> None:
    assert multiply_cycles(1600, 32, WIDE) == 100
    assert multiply_cycles(1600, 64, WIDE) == 200
    assert multiply_cycles(1600, 32, WIDE.having(fma_per_cycle=2)) == 50


def test_lanes_that_are_filled() -> None:
    assert [filled_part(n, 16) for n in (16, 8, 24, 32)] == [1.0, 0.5, 0.75, 1.0]


def test_blocks_that_channels_fill_take_the_multiply_adds() -> None:
    assert blocked_cycles(IMAGE, (32, 16), 64, WIDE) == WORK
    assert blocked_cycles(IMAGE, (24, 16), 64, WIDE) == pytest.approx(WORK / 0.75)


def test_one_block_of_outputs_waits_for_broadcasts_where_they_are_not_free() -> None:
    slow = WIDE.having(broadcast_slowdown=1.5)
    assert blocked_cycles(IMAGE, (32, 16), 16, slow) == 1.5 * blocked_cycles(IMAGE, (32, 16), 16, WIDE)
    assert blocked_cycles(IMAGE, (32, 16), 32, slow) == blocked_cycles(IMAGE, (32, 16), 32, WIDE)


@pytest.mark.parametrize(("halves", "part"), [(True, 1.0), (False, 0.5)])
def test_short_rows_fill_the_halves_of_a_vector(halves: bool, part: float) -> None:
    short, full = (plain_cycles(replace(IMAGE, width=n), WIDE.having(half_rate_wide=halves)) for n in (8, 16))
    assert full / short == pytest.approx(part)


def test_masks_take_the_remainder_of_a_row_in_shorter_vectors() -> None:
    masked = plain_cycles(replace(IMAGE, width=17), WIDE)
    assert masked < plain_cycles(replace(IMAGE, width=17), WIDE.having(mask_registers=False))


def test_elements_that_lie_apart_are_read_one_by_one() -> None:
    assert plain_cycles(replace(IMAGE, form=Form.STRIDED, stride=2), WIDE) > 8 * plain_cycles(IMAGE, WIDE)


def test_depthwise_windows_use_each_element_once() -> None:
    assert depthwise_cycles(IMAGE, 32, 16, WIDE) > WORK
    plain = plain_cycles(replace(IMAGE, form=Form.DEPTHWISE), WIDE)
    assert plain < plain_cycles(replace(IMAGE, form=Form.DEPTHWISE, stride=2), WIDE)
    assert plain < plain_cycles(replace(IMAGE, form=Form.DEPTHWISE, stride=3), WIDE)
