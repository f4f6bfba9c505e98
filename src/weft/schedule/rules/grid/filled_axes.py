"""Contractions whose axes are filled up with zeros to multiples of a tile's.

    for i, j, r in (16, 49, 64): C[i, j] += A[i, r] * B[r, j]
    becomes
    for i, j, r in (16, 64, 64): C_pad[i, j] += A[i, r] * (B[r, j] if j < 49 else 0.0)

The copies with zeros are computed by the threads that fetch from them (`inline_fetches`).
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir import Var
from weft.schedule.cursors.state import BlockRef
from weft.schedule.legality.placement import readers
from weft.schedule.rules.block_facts import block_of
from weft.schedule.rules.grid.tile_axes import TileAxes, tile_axes
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def fill_up(s: Schedule, ref: BlockRef, sizes: Mapping[Var, int]) -> TileAxes:
    """Fills axes of a contraction up to multiples of *sizes*; returns the axes then.

    Raises `ScheduleError` where the contraction has other axes then.
    """
    result = block_of(s, ref).writes[0].buffer
    copies = s.pad_einsum(ref, [sizes.get(a.var, 1) for a in block_of(s, ref).axes])
    if block_of(s, ref).writes[0].buffer is not result and readers(s.function, block_of(s, copies[-1])):
        s.compute_inline(copies[-1])
    found = tile_axes(s, ref)
    if found is None:
        raise ScheduleError(f"{ref.name} has other axes once it is filled up")
    return found
