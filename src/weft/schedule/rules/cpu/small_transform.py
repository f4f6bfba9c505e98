"""The rule for small transforms: blocks whose formula selects on an index, as `te` writes a product with a constant matrix.

    V[i, j, t, c] = (i == 0) ? d0 - d2 : (i == 1) ? d1 + d2 : ...

The indices selected on are unrolled, so that no select is left at run time and common subexpressions are computed once; producers
that are such blocks too are computed just before, in registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from weft.cost import MOST_UNROLLED_CHOICES, Planner, size_of
from weft.ir import SELECTS, Const, Eq, Expr, FloorDiv, FloorMod, Lt, Select, Var, free_vars, nodes_with, post_order
from weft.loop import Block, Store
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.placement import sole_reader
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import block_of, inputs_of, is_reduction, reads_along, split_index
from weft.schedule.rules.cpu.cache_set_padding import pad_cache_sets
from weft.schedule.rules.cpu.parallel import parallelize
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


@dataclass(frozen=True)
class RadixDigit:
    """The digit of an axis on which a formula selects, `v // unit % size`: all of it where *unit* is 1 and *size* its extent."""

    size: int
    unit: int = 1


Choices = dict[Var, RadixDigit]
"""The axes on which a formula selects."""


def schedule_transforms(s: Schedule, p: Planner, placed: set[BlockRef]) -> set[BlockRef]:
    """Schedules every block that selects on an index and is not *placed*, with the blocks of that kind that it alone reads."""
    found: set[BlockRef] = set()
    for ref in reversed(s.blocks()):
        if ref not in placed | found and choices_of(block_of(s, ref)):
            for part in _by_cases(s, ref):
                found |= schedule_transform(s, part, p).placed
    return found


def _by_cases(s: Schedule, ref: BlockRef) -> list[BlockRef]:
    """Partitions the loops of a block where its formula changes to another transform; returns the blocks of all parts."""
    parts = [ref]
    for position, points in enumerate(_cases(block_of(s, ref))):
        if points:
            parts = [cut for part in parts for cut in _cut_apart(s, part, position, points)]
    return parts


def _cut_apart(s: Schedule, ref: BlockRef, position: int, points: list[int]) -> list[BlockRef]:
    """Gives each part of a block's axis a nest and a formula of its own."""
    loop = own_loops(s, ref, 0)[block_of(s, ref).axes[position].var]
    s.reorder([loop, *[f for f in s.loops(ref) if f != loop]])
    made = set(s.partition(loop, points))
    parts = [r for r in s.blocks() if not made.isdisjoint(s.loops(r))]
    for part in parts:
        s.narrow(part)
    return parts


def _cases(block: Block) -> list[list[int]]:
    """Returns, for each axis of an assignment, the values at which a condition on it switches to another transform."""
    found: dict[Expr, set[int]] = {a.var: set() for a in block.axes}
    for n in nodes_with(SELECTS, block.body):
        if isinstance(n, Select) and isinstance(n.cond, Lt) and n.cond.a in found and isinstance(n.cond.b, Const):
            if all(any(isinstance(k, Eq) for k in post_order(x)) for x in (n.then, n.other)):
                found[n.cond.a].add(int(n.cond.b.value))
    sizes = [size_of(a.extent) for a in block.axes]
    return [sorted(p for p in points if 0 < p < n) for n, points in zip(sizes, found.values(), strict=True)]


def choices_of(block: Block) -> Choices:
    """Returns the axes on which an assignment selects; none for a block of another kind."""
    if is_reduction(block) or not isinstance(block.body, Store):
        return {}
    extents = {a.var: size_of(a.extent) for a in block.axes}
    found: Choices = {}
    for n in nodes_with(SELECTS, block.body.value):
        if isinstance(n, Select) and isinstance(n.cond, Eq) and isinstance(n.cond.b, Const):
            chosen = _chosen(n.cond.a, extents)
            if chosen is not None:
                found[chosen[0]] = chosen[1]
    return {v: digit for v, digit in found.items() if digit.size <= MOST_UNROLLED_CHOICES}


def _chosen(e: Expr, extents: dict[Var, int]) -> tuple[Var, RadixDigit] | None:
    if isinstance(e, Var) and e in extents:
        return e, RadixDigit(extents[e])
    if not isinstance(e, FloorMod) or not isinstance(e.b, Const):
        return None
    if isinstance(e.a, FloorDiv) and isinstance(e.a.b, Const):
        v, unit = e.a.a, int(e.a.b.value)
    else:
        v, unit = e.a, 1
    return (v, RadixDigit(int(e.b.value), unit)) if isinstance(v, Var) and v in extents else None


@dataclass(frozen=True)
class TransformNest:
    """A scheduled transform: the blocks placed, the loops over its patches, and those inside a patch."""

    placed: set[BlockRef]
    patches: list[LoopRef]
    outer: list[LoopRef]


def schedule_transform(
    s: Schedule, ref: BlockRef, planner: Planner, patches: Mapping[Var, int] | None = None, around: int = 0
) -> TransformNest:
    """Schedules one block and the producers computed in it, inside *around* loops that stay as they are.

    *patches* has the number of values of an axis in a patch; loops over patches come first. Without them, the outer loops run in
    parallel.
    """
    block = block_of(s, ref)
    producers = [p for p in _producers(s, block) if choices_of(block_of(s, p))]
    chosen = {**_inherited(s, block, producers), **choices_of(block)}
    lanes = _run(s, [ref, *producers], planner.lanes(block.writes[0].buffer.dtype.bits))
    nest, inner = TransformNest({ref, *producers}, [], []), list[LoopRef]()
    loops = own_loops(s, ref, around)
    last = loops.pop(block.axes[-1].var, None) or s.add_unit_loop(ref)  # blocks of one channel have no loop
    for axis in block.axes[:-1]:
        if axis.var in loops:
            unit = None if patches is None else patches.get(axis.var)
            _cut(s, loops[axis.var], size_of(axis.extent), chosen.get(axis.var), unit, nest, inner)
    extent = s.extent(last)
    if extent is None or extent > lanes:
        rest, last = s.split(last, [None, lanes])
        nest.outer.append(rest)
    s.reorder([*nest.patches, *nest.outer, *inner, last])
    depth = s.loops(ref).index([*inner, last][0])
    for p in producers:
        s.compute_at(p, s.loops(ref)[depth - 1], align=lanes if _is_read_along(s, p, block) else 1)
        s.set_scope(p, "register")
        _unroll(s, list(s.loops(p))[depth:])
    _unroll(s, [*inner, last])
    pad_cache_sets(s, ref, producers, [v for r in (ref, *producers) for v in choices_of(block_of(s, r))], planner)
    if patches is None:
        parallelize(s, ref, nest.outer, planner)
    return nest


def _run(s: Schedule, refs: Sequence[BlockRef], lanes: int) -> int:
    """Returns how many of *lanes* consecutive elements along the last axis of all blocks are read side by side, at least.

    Blocks of fewer channels than a vector of narrow elements are read one by one: across their ends vectors would be gathered.
    """
    for block in [block_of(s, r) for r in refs]:
        last = block.axes[-1]
        found = [split_index(i) for x in inputs_of(block) for i in x.indices]
        lanes = gcd(lanes, *[c[1] for c in found if c is not None and c[0] is last.var])
        extent = size_of(last.extent)
        lanes = gcd(lanes, extent) if extent < lanes else lanes
    return lanes


def own_loops(s: Schedule, ref: BlockRef, around: int) -> dict[Var, LoopRef]:
    """Returns a block's own loops inside *around* others, by the axis that each runs through."""
    block, loops = block_of(s, ref), list(s.loops(ref))[around:]
    bound = [(a.var, free_vars(b)) for a, b in zip(block.axes, block.bindings, strict=True)]
    return {v: f for v, used in bound for f in loops if f.var in used}


def _cut(
    s: Schedule,
    loop: LoopRef,
    extent: int,
    digit: RadixDigit | None,
    unit: int | None,
    nest: TransformNest,
    inner: list[LoopRef],
) -> None:
    """Splits the loop of an axis: over its patches of *unit* values, inside a patch, and over the digit selected on."""
    each = 1 if digit is None else digit.size * digit.unit
    pieces: list[tuple[list[LoopRef], int | None]] = [(nest.outer, None if unit is None else unit // each)]
    if unit is not None:
        pieces.insert(0, (nest.patches, None))
    if digit is not None:
        pieces = pieces if each < extent else pieces[1:]
        pieces += [(inner, digit.size), (nest.outer, digit.unit)]
    pieces = [p for p in pieces if p[1] != 1]
    made = s.split(loop, [None, *[n for _, n in pieces[1:]]]) if len(pieces) > 1 else [loop]
    for (place, _), piece in zip(pieces, made, strict=True):
        place.append(piece)


def _producers(s: Schedule, block: Block) -> list[BlockRef]:
    """Returns the blocks that compute an intermediate result for *block* alone."""
    wanted = {x.buffer for x in inputs_of(block)}
    found = [r for r in s.blocks() if block_of(s, r).writes[0].buffer in wanted]
    return [r for r in found if sole_reader(s.function, block_of(s, r)) is block]


def _is_read_along(s: Schedule, ref: BlockRef, user: Block) -> bool:
    """Tells whether the last axis of *user*, its vector, runs through consecutive elements of a producer's result."""
    written = block_of(s, ref).writes[0].buffer
    return all(reads_along(x, user.axes[-1].var) for x in inputs_of(user) if x.buffer is written)


def _inherited(s: Schedule, block: Block, producers: list[BlockRef]) -> Choices:
    """Returns the axes of *block* that index a producer in the dimensions on which the producer selects."""
    extents = {a.var: size_of(a.extent) for a in block.axes}
    found: Choices = {}
    for ref in producers:
        producer = block_of(s, ref)
        where = [a.var in choices_of(producer) for a in producer.axes]
        for load in inputs_of(block):
            if load.buffer is producer.writes[0].buffer:
                chosen = [_chosen(i, extents) for i, c in zip(load.indices, where, strict=True) if c]
                found.update(c for c in chosen if c is not None)
    return found


def _unroll(s: Schedule, loops: list[LoopRef]) -> None:
    for loop in loops[:-1]:
        s.unroll(loop)
    try:
        with proving():
            s.vectorize(loops[-1])
    except ScheduleError:  # it is short, or its values depend on each other
        s.unroll(loops[-1])
