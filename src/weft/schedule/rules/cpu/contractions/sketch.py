"""The sketch: multi-level tiling of a reduction whose last written axis is contiguous in its inputs, with all sizes left open.

    for loops over cache tiles            in any order, shared by threads
        for loops over register tiles     in any order
            for the reduction, outer      in any order
                for the reduction, inner  unrolled or not
                    a register tile       unrolled, its last axis in vectors
            the epilogue of the tile

The padding of an input is inlined, skipped (`skip_padding`), or copied before or for each cache tile. Versions of a tile, for
remainders and padding, times unrolled steps have a bound (`may_write`): where the product is beyond it, steps are not unrolled,
and padding is copied before.

Where the rules know nothing of an operator, a search over these sizes finds a schedule; where they do, it checks them. The
structure is that of Ansor's sketches (Zheng et al., 2020, section 4.1).
"""

from __future__ import annotations

from collections.abc import Container, Sequence, Set
from dataclasses import dataclass
from math import prod

from weft.cost import (
    CacheTile,
    InnerOrder,
    OuterOrder,
    PadInput,
    Planner,
    ReduceOrder,
    ReduceTile,
    RegisterTile,
    SketchProblem,
    cache_tile_plans,
    elements,
    inner_order_plans,
    may_unroll,
    may_write,
    outer_order_plans,
    pad_input_plans,
    padded_parts,
    reduce_order_plans,
    reduce_tile_plans,
    register_tile_plans,
    remainder_versions,
    tiles_held,
)
from weft.ir import Select, Var, free_vars
from weft.loop import AxisKind, Block, Store
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.access_region import at_loops
from weft.schedule.rules.block_facts import block_of, inputs_of, loops_of, reduce_axes, spatial_axes
from weft.schedule.rules.cpu.contractions.contraction import loops_of_axis, split_parts, unroll_tile
from weft.schedule.rules.cpu.contractions.skip_padding import Skipping, skip_padding, skipping
from weft.schedule.rules.cpu.contractions.tile_roles import Part, roles_of
from weft.schedule.rules.cpu.epilogue import epilogue_block
from weft.schedule.rules.cpu.parallel import parallelize
from weft.schedule.rules.cpu.software_prefetch import prefetch_streams
from weft.schedule.rules.cpu.window import copy_borders
from weft.schedule.rules.sliding_window import borders_of
from weft.schedule.schedule import Schedule


def schedule_sketch(s: Schedule, ref: BlockRef, p: Planner) -> set[BlockRef]:
    """Schedules a reduction, with its epilogue block, by the sketch; returns the blocks that are now placed."""
    finish, loops = epilogue_block(s, ref)
    block = block_of(s, ref)
    parts, own = split_parts(s, block, loops)
    problem = _problem(block, parts, _digits(s, finish, block))
    tile = p.decide(ref.name, RegisterTile, lambda m: register_tile_plans(problem, m))
    cache = p.decide(ref.name, CacheTile, lambda m: cache_tile_plans(problem, tile, m))
    outer_order = p.decide(ref.name, OuterOrder, lambda _: outer_order_plans(problem.spatial))
    inner_order = p.decide(ref.name, InnerOrder, lambda _: inner_order_plans(problem.spatial))
    counts = [-(-e // n) for e, n in zip(problem.spatial, tile.sizes, strict=True)]
    held = [tiles_held(c, n) for c, n in zip(counts, cache.sizes, strict=True)]
    lanes = p.lanes(block.writes[0].buffer.dtype.bits)
    sums = prod(tile.sizes[:-1]) * -(-tile.sizes[-1] // lanes)
    levels = _split(s, own, tile.sizes, held)
    outer = [levels[a].outer for a in outer_order.axes]
    middle = [f for a in inner_order.axes if (f := levels[a].middle) is not None]
    s.reorder([*outer, *middle, *[x.inner for x in levels if x.inner is not None]])
    around = [*outer, *middle]
    s.compute_at(ref, around[-1], align=min(lanes, tile.sizes[-1]))
    s.set_scope(ref, "register")
    depth = len(s.loops(finish)) - len([x for x in levels if x.inner is not None])
    versions = remainder_versions(problem.spatial, tile.sizes)
    innermost, unrolled = _schedule_tile(s, ref, depth, parts, (sums, versions), p)
    unroll_tile(s, [x.inner for x in levels if x.inner is not None])
    inside = len(s.loops(ref)) - depth
    found = skipping(s, ref, around, sums, p)
    code = _Code(sums, unrolled, {x.axis.var for x, n in zip(parts, tile.sizes, strict=True) if x.size % n})
    skipped = _fitting(s, found, code)
    for loop in _kept(unrolled, skipped):
        s.unroll(loop)
    placed = _pad_inputs(s, ref, outer, code, p) if found is None else set()
    cut, shared = ([], outer) if skipped is None else (skipped.cut, [f for f in skipped.uncut(around) if f in outer])
    parallelize(s, ref, shared, p)
    prefetch_streams(s, ref, innermost, len(s.loops(ref)) - inside, tile.sizes[-1], p, cut)
    placed |= set() if skipped is None else skip_padding(s, ref, skipped)
    return {ref, finish, *placed}


@dataclass(frozen=True)
class _Code:
    """The code of a register tile: vectors of *sums* for each of the *unrolled* steps, and the axes that it leaves *rests* of."""

    sums: int
    unrolled: Sequence[LoopRef]
    rests: Set[Var]


def _fitting(s: Schedule, found: Skipping | None, code: _Code) -> Skipping | None:
    """Returns how to skip padding, if that is not too much code."""
    return found if found is not None and _may_skip(s, found, code) else None


def _kept(unrolled: Sequence[LoopRef], skipped: Skipping | None) -> list[LoopRef]:
    """Returns those of the loops *unrolled* that skipping does not unroll itself."""
    return [f for f in unrolled if skipped is None or f not in skipped.unrolled]


def _may_skip(s: Schedule, found: Skipping, code: _Code) -> bool:
    """Tells whether a tile may skip padding: whether its copies, with unrolled steps, are not too much code.

    Taps that are unrolled, and would else be loops with bounds, have versions for the parts of their axis.
    """
    steps = [f for f in code.unrolled if f not in found.unrolled and s.extent(f) != 1]
    copies = found.copies * prod([padded_parts(loops=False) for f in steps if f in found.taps])
    return may_write(code.sums * _times(s, steps), copies)


def _times(s: Schedule, steps: Sequence[LoopRef]) -> int:
    return prod([s.extent(f) or 1 for f in steps])


def _pad_inputs(s: Schedule, ref: BlockRef, outer: Sequence[LoopRef], code: _Code, p: Planner) -> set[BlockRef]:
    """Inlines the padded copies of the inputs, or computes each at the loops over cache tiles; returns those that are placed.

    The others are computed before, as blocks of their own: also those that would multiply the code beyond what may be written.
    """
    sums = code.sums * _times(s, code.unrolled)
    placed: set[BlockRef] = set()
    for border in borders_of(s, ref):
        how = p.decide(border.name, PadInput, lambda _: pad_input_plans())
        if how.inline and may_write(sums, _border_versions(s, ref, border, code)):
            s.compute_inline(border)
        elif how.by_tile:
            copy_borders(s, [border], outer, p)
            placed.add(border)
    return placed


def _border_versions(s: Schedule, ref: BlockRef, border: BlockRef, code: _Code) -> int:
    """Returns how many versions of a tile partitioning makes for the padding by *border*, and for the axes that have *rests*.

    The rest of a padded axis is one of its ends.
    """
    made, block = block_of(s, border), block_of(s, ref)
    read = next(x for x in inputs_of(block) if x.buffer is made.writes[0].buffer)
    if not isinstance(made.body, Store) or not isinstance(made.body.value, Select):
        return 1
    padded = set(free_vars(made.body.value.cond))
    taps = [f for f in loops_of(s, ref, s.loops(ref), AxisKind.REDUCE) if f not in code.unrolled and s.extent(f) != 1]
    versions, plain = 1, set(code.rests)
    for place, at in zip(made.body.indices, read.indices, strict=True):
        if not padded.isdisjoint(free_vars(place)):
            moving = set(free_vars(at_loops(block, at)))
            versions *= padded_parts(loops=any(f.var in moving for f in taps))
            plain -= set(free_vars(at))
    return versions << len(plain)


def _problem(block: Block, parts: Sequence[Part], digits: Container[Var]) -> SketchProblem:
    """Returns the sizes of a reduction whose spatial axes have the *parts*; the epilogue takes those of *digits* apart."""
    return SketchProblem(
        spatial=tuple([x.size for x in parts]),
        depth=elements(reduce_axes(block)),
        uses=tuple([tuple([x.moves(load) for x in parts]) for load in inputs_of(block)]),
        element_bytes=block.writes[0].buffer.dtype.bytes,
        is_part=tuple([x.axis.var in digits or x.group > 1 for x in parts]),
    )


def _digits(s: Schedule, finish: BlockRef, block: Block) -> set[Var]:
    """Returns the axes of *block* that its epilogue reads at a quotient or a remainder of an axis of its own."""
    written = block.writes[0].buffer
    found = [x.indices for x in inputs_of(block_of(s, finish)) if x.buffer is written]
    axes = [a.var for a in spatial_axes(block)]
    return {v for indices in found for v, i in zip(axes, indices, strict=True) if not isinstance(i, Var)}


@dataclass(frozen=True)
class _Levels:
    """The loops that the loop over an axis became: over cache tiles, over register tiles in one, and over its elements."""

    outer: LoopRef
    middle: LoopRef | None
    inner: LoopRef | None


def _split(s: Schedule, own: Sequence[LoopRef], tile: Sequence[int], cache: Sequence[int]) -> list[_Levels]:
    """Splits each loop by the sizes of a register tile and of a cache tile; the last one always has an inner loop."""
    made: list[_Levels] = []
    for n, (loop, size, count) in enumerate(zip(own, tile, cache, strict=True)):
        outer, middle, inner = loop, None, None
        if size > 1 or n == len(own) - 1:
            outer, inner = s.split(outer, [None, size])
        if count > 1:
            outer, middle = s.split(outer, [None, count])
        made.append(_Levels(outer, middle, inner))
    return made


def _schedule_tile(
    s: Schedule, ref: BlockRef, depth: int, parts: Sequence[Part], code: tuple[int, int], p: Planner
) -> tuple[LoopRef, Sequence[LoopRef]]:
    """Splits and orders the reduction around a register tile, whose *code* is so many sums in so many versions.

    Returns its innermost loop, and those that are to be unrolled.
    """
    loops = list(s.loops(ref))[depth:]
    reduced = loops_of(s, ref, loops, AxisKind.REDUCE)
    spatial = _columns_last(s, ref, [f for f in loops if f not in reduced], parts)
    reduced = reduced or [s.add_unit_loop(ref)]  # a sum of one term
    sizes = [s.extent(f) or 1 for f in reduced]
    inner = p.decide(ref.name, ReduceTile, lambda _: reduce_tile_plans(sizes))
    order = p.decide(ref.name, ReduceOrder, lambda _: reduce_order_plans(sizes))
    outside, inside = [], []
    for loop, size in zip(reduced, inner.sizes, strict=True):
        rest, steps = s.split(loop, [None, size]) if size > 1 else (loop, None)
        outside.append(rest)
        inside += [steps] if steps is not None else []
    ordered = [outside[a] for a in order.axes]
    s.reorder([*ordered, *inside, *spatial])
    start = s.decompose_reduction(ref, ordered[0])
    unroll_tile(s, list(s.loops(start))[depth:])
    unroll_tile(s, spatial)
    unrolled = inside if inner.unroll and may_unroll(prod(inner.sizes), *code) else []
    return ordered[-1] if unrolled or not inside else inside[-1], unrolled


def _columns_last(s: Schedule, ref: BlockRef, spatial: Sequence[LoopRef], parts: Sequence[Part]) -> list[LoopRef]:
    """Puts the axis that only the right factor moves along beside the vectors: few of its elements are then held as operands."""
    column = roles_of(block_of(s, ref), parts[:-1]).column
    if column is None:
        return list(spatial)
    columns = loops_of_axis(s, ref, spatial[:-1], parts[column].axis.var)
    return [*[f for f in spatial[:-1] if f not in columns], *columns, *spatial[-1:]]
