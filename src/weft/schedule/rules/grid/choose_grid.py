"""The choice of rules for grids: reductions first, since they place their epilogues; then one thread per element.

Contractions with rows and columns have tiles; other reductions, and all around them, are computed row by row.
"""

from __future__ import annotations

from weft.cost import PROGRAM, Planner, ThreadBlock, elements, thread_block_plans
from weft.schedule.rules.block_facts import block_of, is_reduction, spatial_axes
from weft.schedule.rules.cpu.inline import inline_blocks
from weft.schedule.rules.grid.fragment_tiles import schedule_fragment_tiles
from weft.schedule.rules.grid.inline_fetches import inline_fetches
from weft.schedule.rules.grid.row_blocks import is_free, schedule_rows
from weft.schedule.rules.grid.shared_tiles import schedule_shared_tiles
from weft.schedule.rules.grid.streamed_attention import schedule_streamed_attention
from weft.schedule.rules.grid.thread_elements import bind_elements
from weft.schedule.rules.grid.thread_reduction import reduce_in_threads
from weft.schedule.rules.grid.window_strips import reduce_in_strips
from weft.schedule.schedule import Schedule


def _inline_all(s: Schedule, p: Planner) -> None:
    """Inlines blocks that cost nothing to recompute, also once their readers have become one, as those of a value in a GELU."""
    before = None
    while before is not s.program:
        before = s.program
        inline_blocks(s, p)


def schedule_grid(s: Schedule, p: Planner) -> None:
    """Schedules all blocks of *s* for a grid of threads by the decisions of *p*."""
    if schedule_streamed_attention(s, p):
        return
    _inline_all(s, p)
    most = max([elements(spatial_axes(block_of(s, ref))) for ref in s.blocks()], default=1)
    block = p.decide(PROGRAM, ThreadBlock, lambda m: thread_block_plans(most, m))
    for ref in s.blocks():
        if is_reduction(block_of(s, ref)):
            _ = schedule_fragment_tiles(s, ref, p, block.threads) or schedule_shared_tiles(s, ref, p, block.threads)
    schedule_rows(s, p)
    for ref in s.blocks():
        if is_free(s, ref) and is_reduction(block_of(s, ref)):
            _ = reduce_in_strips(s, ref, block.threads, p) or reduce_in_threads(s, ref, block.threads)
    inline_fetches(s, p)
    for ref in s.blocks():
        bind_elements(s, ref, block.threads, block.lanes)
