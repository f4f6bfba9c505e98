"""Reductions in two stages: blocks of the grid reduce parts of long rows, another kernel combines the parts of each row.

    for r: C[i] += X[i, r]       for p, i, q: T[p, i] += X[i, p * 4096 + q]
                           ->    for i, p:    C[i] += T[p, i]

A row by the threads of one block occupies one multiprocessor: few rows leave the device idle. After Harris, "Optimizing parallel
reduction in CUDA" (2007); the partial results are made by `rfactor`.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import Planner, ReductionParts, most_parts, reduction_part_plans
from weft.schedule.cursors.state import BlockRef
from weft.schedule.rules.block_facts import block_of, is_reduction
from weft.schedule.rules.grid.partial_sums import reductions_first
from weft.schedule.rules.grid.row_group import group_facts, rows_of
from weft.schedule.rules.grid.trying import Trials
from weft.schedule.schedule import Schedule


def reduce_in_stages(s: Schedule, refs: Sequence[BlockRef], p: Planner) -> None:
    """Splits the reductions of *refs*, which may share rows, into partial results and their combination, where that pays."""
    rows = rows_of(s, refs)
    if rows is None:
        return
    long = [ref for ref in refs if is_reduction(block_of(s, ref))]
    alone = [rows_of(s, [ref]) for ref in long]
    facts = [group_facts(s, found) for found in alone if found is not None]
    if len(facts) != len(long):
        return
    whole = group_facts(s, rows)
    if most_parts(whole) == 1:
        return

    trials = Trials[ReductionParts](s, p, lambda trial, choice: _split(trial, long, choice.parts))

    def is_legal(choice: ReductionParts) -> bool:
        return choice.parts == 1 or trials.can_take(choice)

    choice = p.decide(refs[-1].name, ReductionParts, lambda m: reduction_part_plans(whole, facts, m), is_legal)
    if choice.parts > 1:
        trials.carry_out(choice)


def _split(s: Schedule, refs: Sequence[BlockRef], parts: int) -> None:
    """Makes each reduction the combination of *parts* partial results, whose terms are neighbours."""
    for ref in refs:
        reduced = reductions_first(s, ref)
        whole = s.fuse(reduced) if len(reduced) > 1 else reduced[0]
        s.rfactor(ref, s.split(whole, [parts, None])[0], 0)
