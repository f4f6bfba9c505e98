"""Nests of scheduled programs as a batch: the batch's bytes and cycles are those that `cost` finds in the program itself."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.machines import SERVER
from tests.tune.schedules import FAMILIES, convolution, fused_schedules, matmul, register_schedules

from weft.cost import LoopNest, cost_of, nests, ranges_of
from weft.loop import Program
from weft.support.errors import ScheduleError
from weft.tune.features import NestBatch, NestGeometry, StraightCode, nests_of_programs
from weft.tune.features.estimate import cache_traffic, cycles_of


def main_nest(program: Program) -> LoopNest:
    return max(nests(program.entry.body), key=lambda n: float(np.prod([x.extent for x in n.levels])))


def level_of(batch: NestBatch, plan: int, count: int, nest: LoopNest) -> int:
    """Returns the level of the batch's geometry whose inner part is that of the nest's innermost *count* levels."""
    repeating = sum(x.extent > 1 for x in nest.levels[len(nest.levels) - count :])
    return int(batch.axis.shape[1]) - repeating


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_bytes_touched_are_those_of_the_footprint(family: str) -> None:
    programs = list(FAMILIES[family]())
    batch = nests_of_programs(programs)
    geometry = NestGeometry(batch, SERVER.caches.line)
    compared = 0
    for i, p in enumerate(programs):
        nest = main_nest(p)
        for a, g in zip((nest.written, *nest.read), geometry.accesses, strict=True):
            for count in range(len(nest.levels) + 1):
                level = level_of(batch, i, count, nest)
                inside = nest.levels[len(nest.levels) - count :]
                assert g.nbytes[i, level] == a.nbytes(ranges_of(inside), SERVER.caches.line)
                if count and inside[0].extent > 1:
                    assert g.stride[i, level] == a.stride(inside[0])
                    assert g.uses[i, level] == a.uses(inside[0])
                compared += 1
    assert compared > 50


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_cycles_are_those_of_the_scheduled_program(family: str) -> None:
    programs = list(FAMILIES[family]())
    geometry = NestGeometry(nests_of_programs(programs), SERVER.caches.line)
    caches = SERVER.caches
    traffic = [cache_traffic(geometry, c) for c in (caches.l1, caches.l2, caches.l3)]
    estimated = cycles_of(StraightCode(geometry, SERVER), (traffic[0], traffic[1], traffic[2]))
    assert estimated == pytest.approx([cost_of(main_nest(p), SERVER).cycles for p in programs])


def test_fused_loops_are_levels_of_their_own() -> None:
    programs = list(fused_schedules())
    batch = nests_of_programs(programs)
    assert [batch.extent[i].prod() for i in range(2)] == [64 * 96 * 80] * 2
    assert set(batch.axis.ravel()) <= {-1, 0, 1, 2}


def test_programs_of_other_blocks_are_refused() -> None:
    with pytest.raises(ScheduleError, match="not schedules of one program"):
        nests_of_programs([matmul(), convolution()])


def test_a_block_may_be_named() -> None:
    program = next(register_schedules())
    assert nests_of_programs([program]).is_reduction == (False, False, True, False)
    names = [n.block.name for n in nests(program.entry.body)]
    copy = next(n for n in names if n != main_nest(program).block.name)
    assert len(nests_of_programs([program], copy).is_reduction) == 3
    with pytest.raises(ScheduleError, match="no block 'nothing'"):
        nests_of_programs([program], "nothing")
