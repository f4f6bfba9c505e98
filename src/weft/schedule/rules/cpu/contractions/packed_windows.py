"""Panels of an image whose windows are multiplied: the part that a panel's windows access is packed, its padding included.

for p in panels:                                           for p in panels:
    for t in tiles of rows: windows of the image   ->          part = image[windows of p], padded
                                                               for t in tiles of rows: windows of the part

No padded copy of the whole image is made then: each part is padded where it is packed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from weft.cost import (
    Candidate,
    PackPanel,
    Planner,
    Tile,
    WindowPanelProblem,
    bytes_of,
    bytes_touched,
    enough_tasks,
    pack_window_plans,
    size_of,
    step_along,
)
from weft.ir import Const, Var, free_vars
from weft.loop import Block, Load
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import alloc_of
from weft.schedule.rules.block_facts import block_of, contraction_of, reduce_axes, spatial_axes
from weft.schedule.rules.cpu.contractions.computed_panel import panel_loop, place_panel
from weft.schedule.rules.cpu.contractions.packed_panel import pack_panel
from weft.schedule.rules.cpu.contractions.tile_roles import Part, Roles
from weft.schedule.rules.cpu.parallel import sizes
from weft.schedule.rules.sliding_window import borders_of
from weft.schedule.schedule import Schedule
from weft.targets import Target


def packs_windows(
    s: Schedule, ref: BlockRef, outer: Sequence[LoopRef], parts: Sequence[Part], roles: Roles, tile: Tile, p: Planner
) -> bool:
    """Decides whether the windows of each panel are packed: contiguous ones, of an image of known size in memory.

    The loops *outer* are those around tiles, which are pieces of *parts*.
    """
    block, at = block_of(s, ref), panel_loop(s, ref, outer)
    found = contraction_of(block)
    if found is None or at is None or not _are_windows(block, found.right):
        return False
    border, image = _border(s, ref, found.right), found.right.buffer
    if border is None and alloc_of(s.function.body, image) is not None:
        return False  # as another block computes it
    walked = {a.var: size_of(a.extent) for a in reduce_axes(block)} | {parts[-1].axis.var: tile.width}
    if roles.column is not None:
        walked[parts[roles.column].axis.var] = tile.columns
    around, inside = sizes(s, outer[: at + 1]), sizes(s, outer[at + 1 :])

    row = {v: n for v, n in walked.items() if v in free_vars(found.right.indices[-1])}

    def plans(m: Target) -> Iterator[Candidate[PackPanel]]:
        def touched(variables: Mapping[Var, int], line: int) -> int:
            return bytes_touched(image, found.right.indices, variables, line)

        element = image.dtype.bytes
        panel = touched(walked, element)
        problem = WindowPanelProblem(
            panels=prod(around),
            tiles=prod(inside),
            lines=touched(walked, m.caches.line),
            panel=panel,
            pieces=panel // touched(row, element),
            image=bytes_of(image),
            is_padded=border is not None,
        )
        return pack_window_plans(problem, m, is_shared_out=enough_tasks(around, m))

    return p.decide(ref.name, PackPanel, plans).pack


def pack_windows(
    s: Schedule, ref: BlockRef, outer: Sequence[LoopRef], lanes: int
) -> tuple[list[LoopRef], set[BlockRef]]:
    """Packs the windows of a panel of *ref* in the last loop of *outer* from one panel to the next: a padded copy moves there.

    Returns the loops around the copy, and its block; *outer* and no block where there is only one panel.
    """
    found, at = contraction_of(block_of(s, ref)), panel_loop(s, ref, outer)
    border = None if found is None else _border(s, ref, found.right)
    return (
        pack_panel(s, ref, outer, lanes) if border is None or at is None else place_panel(s, border, outer, at, lanes)
    )


def _are_windows(block: Block, read: Load) -> bool:
    """Tells whether *read* accesses windows of a buffer of known size that move along axes, and are contiguous along the last."""
    *_, last = spatial_axes(block)
    reduced = {a.var for a in reduce_axes(block)}
    mixed = [v for v in map(free_vars, read.indices) if not reduced.isdisjoint(v) and not reduced.issuperset(v)]
    is_known = all(isinstance(n, Const) for n in read.buffer.shape)
    return is_known and bool(mixed) and step_along(read.buffer, read.indices, last.var) == 1


def _border(s: Schedule, ref: BlockRef, read: Load) -> BlockRef | None:
    """Returns the block that makes the padded copy which *ref* reads by *read*; None if none does."""
    made = [b for b in borders_of(s, ref) if block_of(s, b).writes[0].buffer is read.buffer]
    return made[0] if made else None
