"""The model of a core that tiles, windows and programs share."""

from __future__ import annotations

import pytest

from weft.cost import Demand


def test_the_busiest_unit_counts_in_full_and_loads_show() -> None:
    assert Demand(arithmetic=8, loads=0).cycles == 8
    assert Demand(arithmetic=8, loads=4).cycles == 9
    assert Demand(arithmetic=1, loads=4, chain=20).cycles == 21


def test_what_comes_from_afar_costs_more() -> None:
    near, far = Demand(8, 4, l2=4), Demand(8, 4, far=4)
    assert Demand(8, 4).cycles < near.cycles < far.cycles
    assert Demand(8, 4, far=100).cycles > 100


def test_many_pieces_take_as_many_times_as_long() -> None:
    piece = Demand(3, 4, 1, 2, 5, 6, 7)
    assert piece.times(10).cycles == pytest.approx(10 * piece.cycles)
