"""Fused attention (FlashAttention): a thread block streams over the keys, and the scores are never in global memory.

    for i, j, d: S[i, j] += Q[i, d] * K[j, d]              for blocks of rows:
    for i, j:    P[i, j] = softmax(S[i, :])[j]      ->         for blocks of keys: the part of S, and its products with V
    for i, c, j: Y[i, c] += P[i, j] * V[j, c]                  Y[...] = the sum of these, by the sum of each row

All that is between the three is inlined first (`legality.attention_form`); the loops are those of
`rewriting.attention_loops`. A program that is not such an attention is left as it is, to the other rules.
"""

from __future__ import annotations

from math import prod

from weft.cost import WHOLE_SOFTMAX, AttentionSizes, AttentionTile, Planner, attention_tile_plans, size_of
from weft.ir import Const
from weft.schedule.cursors.state import BlockRef
from weft.schedule.legality.attention_form import PARTS, Attention, attention_of
from weft.schedule.legality.trust import proving
from weft.schedule.rewriting.attention_fragments import narrow_attention
from weft.schedule.rewriting.attention_groups import has_groups
from weft.schedule.rules.block_facts import block_of, is_reduction
from weft.schedule.rules.grid.trying import Trials
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def schedule_streamed_attention(s: Schedule, p: Planner) -> bool:
    """Computes an attention in one kernel, if the program is nothing else and it pays; tells whether it did."""
    reductions = [ref for ref in s.blocks() if is_reduction(block_of(s, ref))]
    if len(reductions) != len(PARTS):
        return False
    found = _attention(s)
    if found is None or not all(isinstance(found.extents[v], Const) for v in (found.depth, found.column)):
        return False
    row, key, depth, column = (size_of(found.extents[v]) for v in (found.row, found.key, found.depth, found.column))
    batch = prod([size_of(found.extents[v]) for v in found.batch])
    narrow = narrow_attention(found)
    trials = Trials[AttentionTile](s, p, lambda trial, tile: _stream(trial, reductions[0], tile))

    def is_legal(tile: AttentionTile) -> bool:
        if tile.warps and tile.copies and not (narrow is not None and has_groups(narrow, tile)):
            return False
        return tile == WHOLE_SOFTMAX or trials.can_take(tile)

    sizes = AttentionSizes(batch, row, key, depth, column, narrow=narrow is not None)
    tile = p.decide(reductions[0].name, AttentionTile, lambda m: attention_tile_plans(sizes, m), is_legal)
    if tile == WHOLE_SOFTMAX:
        return False
    trials.carry_out(tile)
    return True


def _stream(s: Schedule, scores: BlockRef, tile: AttentionTile) -> None:
    inline_all(s)
    s.stream_attention(scores, tile.y, tile.x, tile.rows, tile.keys, tile.warps, tile.copies, tile.splits)


def _attention(s: Schedule) -> Attention | None:
    """Returns the attention that the program of *s* computes, once all else is inlined."""
    trial = Schedule(s.program)
    try:
        with proving():
            inline_all(trial)
            return attention_of(trial.function)
    except ScheduleError:
        return None


def inline_all(s: Schedule) -> None:
    """Inlines all elementwise formulas into the reductions that need them, and into the epilogues."""
    outputs = set(s.function.params)
    for ref in s.blocks():
        block = block_of(s, ref)
        if not is_reduction(block) and outputs.isdisjoint(r.buffer for r in block.writes):
            s.compute_inline(ref)
