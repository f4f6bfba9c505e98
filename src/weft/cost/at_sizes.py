"""The cost of a scheduled program with symbolic sizes, for a call with given sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from weft.cost.footprint import Level, LoopNest, filled_levels, nests
from weft.cost.program import nests_cycles
from weft.cost.sizes import given_sizes
from weft.ir import Var
from weft.loop import LoopKind, Program
from weft.targets import Target


def cycles_at(program: Program, sizes: Mapping[Var, int], target: Target) -> float:
    """Returns the cycles that a scheduled *program* takes on one core of *target* where its symbolic sizes are *sizes*.

    A tile that is larger than its axis is lowered to a version of the rows and vectors that there are.
    """
    with given_sizes(sizes):
        return nests_cycles([_cut_tiles(n, target) for n in nests(program.entry.body)], target)


def _cut_tiles(nest: LoopNest, target: Target) -> LoopNest:
    """Returns *nest* with unrolled and vectorised loops that reach beyond the end of their axis cut to it."""
    lanes, cut = target.lanes(nest.written.buffer.dtype.bits), dict[Level, Level]()
    for levels, extent in filled_levels(nest):
        tile = [x for x in nest.levels[::-1] if x in levels and x.kind in (LoopKind.VECTORIZED, LoopKind.UNROLLED)]
        left = extent if prod([x.extent for x in levels if x not in tile]) == 1 else prod([x.extent for x in tile])
        for x in tile:
            whole = -(-left // lanes) * lanes if x.kind is LoopKind.VECTORIZED else left
            cut[x] = replace(x, extent=min(x.extent, whole))
            left = -(-left // x.extent)
    return replace(nest, levels=tuple([cut.get(x, x) for x in nest.levels])) if cut else nest
