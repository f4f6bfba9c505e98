"""The rule for attention: one kernel where it pays, by any of its plans; all else is left to the other rules."""

from __future__ import annotations

import pytest
from tests.schedule.attentions import Shape, attention, check_attention
from tests.schedule.programs import rows

from weft.cost import (
    WHOLE_SOFTMAX,
    AttentionSizes,
    AttentionTile,
    Plan,
    attention_tile_plans,
    join_attention_plans,
    parse_plan,
)
from weft.ir import Var
from weft.schedule import apply_plan, plans, schedule_program
from weft.support.dtypes import f16
from weft.targets import Target
from weft.targets.cuda_machines import cuda
from weft.targets.grid_machines import OPENCL, WEBGPU

CUDA = cuda("sm_90")


def tile_of(plan: Plan) -> AttentionTile | None:
    found = [s.decision for s in plan.steps if isinstance(s.decision, AttentionTile)]
    return found[0] if found else None


@pytest.mark.parametrize("target", [OPENCL, WEBGPU, CUDA], ids=lambda t: t.name)
def test_the_cheapest_plan_is_one_kernel(target: Target) -> None:
    a = Shape(heads=1, rows=20, keys=70)
    made = schedule_program(attention(a, joined=True), target)
    assert "stream_attention" in str(made.trace)
    check_attention(a, made.program, target, joined=True)


def test_plans_read_back() -> None:
    a = Shape(rows=20, keys=40)
    program = attention(a)
    first, other = list(plans(program, OPENCL))[:20:19]
    assert tile_of(first) != tile_of(other) != WHOLE_SOFTMAX
    for plan in (first, other):
        check_attention(a, apply_plan(program, parse_plan(str(plan))).program, OPENCL)


def test_several_kernels_are_a_plan_too() -> None:
    a = Shape(rows=5, keys=6)
    program = attention(a)
    apart = next(p for p in plans(program, OPENCL) if tile_of(p) == WHOLE_SOFTMAX)
    made = apply_plan(program, apart)
    assert "stream_attention" not in str(made.trace)
    check_attention(a, made.program, OPENCL)


def test_other_programs_are_left_alone() -> None:
    assert tile_of(next(plans(rows().program, OPENCL))) is None


def test_sizes_that_a_call_tells() -> None:
    a = Shape(heads=1, rows=20, keys=40)
    made = schedule_program(attention(a, rows=Var("m"), keys=Var("n")), OPENCL)
    assert "stream_attention" in str(made.trace)
    check_attention(a, made.program, OPENCL)


def test_fragments_where_a_machine_has_them_and_is_full() -> None:
    many = AttentionSizes(12, 2048, 2048, 64, 64, narrow=True)
    for target, has_them in ((CUDA, True), (OPENCL, False)):
        best = min(attention_tile_plans(many, target), key=lambda c: c.cycles).decision
        assert bool(best.warps) == has_them
    odd = AttentionSizes(12, 2048, 2048, 60, 64, narrow=True)
    assert not any(c.decision.warps for c in attention_tile_plans(odd, CUDA))


def test_memory_that_a_launch_asks_for_is_for_groups_of_warps() -> None:
    """Others have it by a plan that is written out: no candidate is refused by the rule, nor any such plan."""
    for narrow in (False, True):
        found = [c.decision for c in attention_tile_plans(AttentionSizes(12, 2048, 2048, 64, 64, narrow=narrow), CUDA)]
        assert {t.warps > 0 for t in found if t.copies} == ({True} if narrow else set())
    a = Shape(rows=20, keys=40)
    program = attention(a)
    first = next(iter(plans(program, CUDA)))
    tile = tile_of(first)
    asked = parse_plan(str(first).replace(str(tile), str(AttentionTile(4, 8, 2, 2, copies=1))))
    check_attention(a, apply_plan(program, asked).program, CUDA)


def test_large_heads_are_not_joined() -> None:
    """No block of threads has room for a few of their keys."""
    assert join_attention_plans(AttentionSizes(8, 512, 512, 64, 64), OPENCL)[0].decision.join
    assert not join_attention_plans(AttentionSizes(8, 512, 512, 4096, 4096), OPENCL)[0].decision.join


def test_halves_in_global_memory_are_read_as_they_are() -> None:
    a = Shape(heads=1, rows=20, keys=40, depth=16)
    made = schedule_program(attention(a, dtype=f16, joined=True), CUDA)
    check_attention(a, made.program, CUDA, dtype=f16, joined=True)
