"""The rule for a batched product between two small transforms: all stages run patch by patch, while the patch is in cache.

    V[g, p, t, k] = transform(X)                          for b, y_0:
    M[g, p, t, j] = sum(V[g, p, t, k] * U[p, k, j])  ->       V[...] = transform(X)
    Y[b, y, j] = transform(M[b * r + y // c, ...])            M[...] = sum(V * U)
                                                              Y[b, y_0 * c + ...] = transform(M)

The leading axis of such a product, which does not index its right factor, counts patches: buffers between stages shrink to one
patch. Where there are enough patches for all cores, patches run in parallel, each with private buffers; else the loops of each
stage do. For a batch of unknown size, which is often one, each stage is computed for all of it, unless an image has enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from weft.cost import Planner, SharePatches, patch_plans, size_of
from weft.ir import Const, Expr, FloorDiv, Var, free_vars, poly_of, post_order
from weft.loop import Block, Load
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.placement import readers, sole_reader, writers
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import (
    block_of,
    contraction_of,
    inputs_of,
    is_reduction,
    spatial_axes,
    split_index,
    uses_axis,
)
from weft.schedule.rules.cpu.contractions.contraction import tile_nest
from weft.schedule.rules.cpu.contractions.dot_product import dot_instruction
from weft.schedule.rules.cpu.parallel import parallelize
from weft.schedule.rules.cpu.small_transform import choices_of, own_loops, schedule_transform
from weft.schedule.rules.cpu.vectorize_axis import vectorize_last
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


@dataclass(frozen=True)
class Chain:
    """A product by patches, the transform of its left factor, and the last transform, with its numbering of patches."""

    product: BlockRef
    before: BlockRef
    after: BlockRef
    units: dict[Var, int]


def schedule_winograd_batch(s: Schedule, p: Planner) -> set[BlockRef]:
    """Schedules every chain of several patches; returns the blocks that are now placed."""
    placed: set[BlockRef] = set()
    for ref in s.blocks():
        chain = _chain(s, ref)
        if chain is None:
            continue
        patches = spatial_axes(block_of(s, ref))[0].extent
        tasks = _certain_tasks(patches)
        share = not p.decide(ref.name, SharePatches, partial(patch_plans, tasks)).patches
        if isinstance(patches, Const) or not share:
            placed |= _schedule(s, chain, p, share=share)
    return placed


def _certain_tasks(patches: Expr) -> list[int]:
    """Returns how many patches there are, by factors: those that are sizes by themselves, as that of a batch, may be one."""
    terms = poly_of(patches)
    if isinstance(patches, Const) or len(terms) > 1:
        return [size_of(patches)]
    [(m, k)] = terms.items()
    return [k, *[1 if isinstance(a, Var) else size_of(a) for a in m]]


def _chain(s: Schedule, ref: BlockRef) -> Chain | None:
    """Returns the chain that a product is in, None where it is in none, or all of it is one patch."""
    product = block_of(s, ref)
    axes = spatial_axes(product)
    found = contraction_of(product) if axes else None
    if found is None or size_of(axes[0].extent) < 2:
        return None
    axis = axes[0]
    before = next(iter(writers(s.function, found.left.buffer)), None)
    if before is None or uses_axis(found.right, axis.var) or found.left.indices[0] is not axis.var:
        return None
    last = _last_transform(s, product)
    if last is None or not choices_of(before) or sole_reader(s.function, before) is None:
        return None
    units = _units(last[1], block_of(s, last[0]))
    return Chain(ref, BlockRef(before.name), last[0], units) if units else None


def _last_transform(s: Schedule, product: Block) -> tuple[BlockRef, Expr] | None:
    """Returns the last transform of those that read *product*, and its index expression for the product's leading axis."""
    block, index = product, None
    while True:
        users = readers(s.function, block)
        if len(users) != 1 or not choices_of(users[0]):
            break
        read = [x for x in inputs_of(users[0]) if x.buffer is block.writes[0].buffer]
        counts = {_leading(x, block, index) for x in read}
        if len(counts) != 1:
            return None
        block, [index] = users[0], counts
    return None if index is None else (BlockRef(block.name), index)


def _leading(read: Load, made: Block, index: Expr | None) -> Expr:
    """Returns the index of a read that is the patch's number, given that *index* is in the block that *made* the buffer."""
    position = 0 if index is None else next((n for n, a in enumerate(made.axes) if a.var is index), 0)
    return read.indices[position]


def _units(index: Expr, block: Block) -> dict[Var, int]:
    """Returns, for each axis of *index*, how many of its values are in a patch."""
    axes = {a.var for a in block.axes}
    cut = dict(p for n in post_order(index) if isinstance(n, FloorDiv) and (p := split_index(n)) is not None)
    return {v: cut.get(v) or 1 for v in axes if v in free_vars(index)}


def _schedule(s: Schedule, chain: Chain, p: Planner, *, share: bool) -> set[BlockRef]:
    """Moves all stages of a chain into the loops over its patches, and schedules each there; threads *share* them, or patches."""
    copy = s.cache_write(chain.product, "register")
    nest = schedule_transform(s, chain.after, p, chain.units)
    patch, around = nest.patches[-1], len(nest.patches)
    s.compute_at(copy, patch)
    own = own_loops(s, copy, around)
    loops = [own.get(a.var) for a in block_of(s, copy).axes]
    instruction = dot_instruction(chain.product, block_of(s, chain.product), p)
    placed = tile_nest(s, chain.product, copy, loops, p, share, instruction)
    s.compute_at(chain.before, patch, align=_lanes(s, chain.before, p))
    first = schedule_transform(s, chain.before, p, None if share else {}, around)
    padding = _place_padding(s, first.placed, patch, around, p)
    parallelize(s, chain.after, nest.outer if share else nest.patches, p)
    return placed | nest.placed | first.placed | padding


def _place_padding(s: Schedule, users: set[BlockRef], patch: LoopRef, around: int, p: Planner) -> set[BlockRef]:
    """Moves element-wise blocks that only *users* read into the loop over patches too; returns those blocks."""
    read = {x.buffer for r in users for x in inputs_of(block_of(s, r))}
    found = {r for r in s.blocks() if r not in users and block_of(s, r).writes[0].buffer in read}
    found = {r for r in found if not is_reduction(b := block_of(s, r)) and sole_reader(s.function, b) is not None}
    return {r for r in found if _is_placed(s, r, patch, around, p)}


def _is_placed(s: Schedule, ref: BlockRef, patch: LoopRef, around: int, p: Planner) -> bool:
    lanes = _lanes(s, ref, p)
    try:
        with proving():
            s.compute_at(ref, patch, align=lanes)
    except ScheduleError:  # patches do not need boxes of it
        return False
    vectorize_last(s, list(s.loops(ref))[around:], lanes)
    return True


def _lanes(s: Schedule, ref: BlockRef, p: Planner) -> int:
    """Returns the number of lanes of a vector of a block's result type."""
    return p.lanes(block_of(s, ref).writes[0].buffer.dtype.bits)
