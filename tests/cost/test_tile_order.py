"""The order of tiles that are turned in registers: which rows are gone along."""

from __future__ import annotations

import pytest

from weft.cost import TileOrder, cheapest, tile_order_plans
from weft.targets import cpu


@pytest.mark.parametrize("isa", ["sse4", "avx2", "avx512"])
@pytest.mark.parametrize(
    ("read", "written", "inside"),
    [
        (2048, 2048, "written"),
        (16384, 256, "read"),
        (256, 16384, "written"),
        (16384, 16384, "rest"),
        (240, 14400, "read"),
        (14400, 240, "written"),
        (240, 240, "written"),
        (0, 240, "written"),
    ],
)
def test_rows_that_compete_for_a_set_are_gone_along(isa: str, read: int, written: int, inside: str) -> None:
    assert cheapest(list(tile_order_plans(read, written, cpu(isa)))).decision == TileOrder(inside)
