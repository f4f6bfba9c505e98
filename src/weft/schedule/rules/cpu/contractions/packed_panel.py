"""Panels of a B operand that lies in memory as it is: each is packed before it is multiplied by all rows.

for p in panels:                                           for p in panels:
    for t in tiles of rows: a tile of products     ->          panel = B[:, p]
                                                               for t in tiles of rows: a tile of products

(Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, section 4.2.)
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import PackPanel, Planner, TileProblem, pack_panel_plans
from weft.ir import Const, Var
from weft.loop import Block
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import alloc_of
from weft.schedule.rules.block_facts import block_of, contraction_of
from weft.schedule.rules.cpu.contractions.computed_panel import panel_loop, place_panel
from weft.schedule.rules.cpu.contractions.tile_roles import Part, Roles
from weft.schedule.schedule import Schedule


def is_packed(
    s: Schedule, ref: BlockRef, parts: Sequence[Part], roles: Roles, problem: TileProblem, p: Planner
) -> bool:
    """Decides whether the panels of B are packed: those of an input whose rows they are pieces of, used for several rows."""
    block = block_of(s, ref)
    if not problem.reuses or not _lies_in_rows(s, block, parts, roles):
        return False
    return p.decide(ref.name, PackPanel, lambda m: pack_panel_plans(problem, m)).pack


def _lies_in_rows(s: Schedule, block: Block, parts: Sequence[Part], roles: Roles) -> bool:
    found = contraction_of(block)
    if found is None or roles.row is None or alloc_of(s.function.body, found.right.buffer) is not None:
        return False
    if roles.column is not None and roles.column > roles.row:
        return False  # panel by panel in memory
    indices, shape = found.right.indices, found.right.buffer.shape
    known = all(isinstance(i, Var) for i in indices) and all(isinstance(n, Const) for n in shape)
    return known and bool(indices) and indices[-1] is parts[-1].axis.var


def pack_panel(s: Schedule, ref: BlockRef, outer: Sequence[LoopRef], lanes: int) -> tuple[list[LoopRef], set[BlockRef]]:
    """Packs a panel of the right factor of *ref* in the last loop of *outer* from one panel to the next.

    Returns the loops around the copy, and its block; *outer* and no block where there is only one panel.
    """
    found, at = contraction_of(block_of(s, ref)), panel_loop(s, ref, outer)
    if found is None or at is None:
        return list(outer), set()
    return place_panel(s, s.cache_read(ref, found.right.buffer.name, "local"), outer, at, lanes)
