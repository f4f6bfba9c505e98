"""The sizes and orders of a sketch: multi-level tiling of any reduction, with every number left to a search.

After the sketches of Ansor (Zheng et al., "Ansor: generating high-performance tensor programs for deep learning", 2020,
section 4.1), of which this is the structure S S R R S: loops over cache tiles, over register tiles, the reduction in two levels,
a register tile. The estimates only rank candidates within a question; rules are chosen before sketches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, product
from math import inf, prod

from weft.cost.budget import MOST_UNROLLED_SUMS, STEPS_UNROLLED
from weft.cost.demand import Demand, fma_cycles, l2_cycles, l3_cycles, load_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

WASTE = 0.5
"""The most that register tiles may compute beyond the end of an axis, as a part of it."""

REGISTER_FILES = 2
"""The most accumulators of a register tile, in register files: where they need more than one, some are spilled."""

NARROWEST = 4
"""The narrowest register tile has the lanes of a vector divided by this."""

WIDEST = 6
"""Vectors along the last axis of a register tile."""

MOST_INNER_STEPS = 16
"""Steps of a reduction that are unrolled."""

MOST_UNROLLED = 256
"""Vector multiply-adds of a register tile times its unrolled steps; where there are more, the steps stay a loop."""

MOST_WRITTEN = 1400
"""Vector multiply-adds of all versions of a register tile: those for remainders and for padding multiply unrolled steps.

Each takes about three instructions with its loads; beyond that, code leaves the cache of decoded ones, and takes as long to
compile as that of tens of other plans: the best 15 of 640 measured for C6 (docs/design/0036) have 1152 at most.
"""

MOST_ORDERED = 4
"""Axes whose loops are put in any order; more stay in the order of the longest."""

MOST_CACHE_TILES = 4096
"""Cache tiles that a question offers."""


@dataclass(frozen=True)
class RegisterTile(Decision):
    """The elements of a register tile along each spatial axis; those along the last are vectors."""

    question = "the register tile of a sketch"
    is_free = True
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class CacheTile(Decision):
    """The register tiles of a cache tile along each spatial axis; an axis has the largest divisor of its tiles up to that."""

    question = "the cache tile of a sketch"
    is_free = True
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class ReduceTile(Decision):
    """The inner steps of the reduction along each of its axes, and whether they are unrolled."""

    question = "the inner steps of the reduction of a sketch"
    is_free = True
    sizes: tuple[int, ...]
    unroll: bool


@dataclass(frozen=True)
class OuterOrder(Decision):
    """The order of the loops over cache tiles, by the numbers of spatial axes, outermost first."""

    question = "the order of loops over cache tiles"
    is_free = True
    axes: tuple[int, ...]


@dataclass(frozen=True)
class InnerOrder(Decision):
    """The order of the loops over the register tiles of a cache tile, by the numbers of spatial axes, outermost first."""

    question = "the order of loops over register tiles"
    is_free = True
    axes: tuple[int, ...]


@dataclass(frozen=True)
class ReduceOrder(Decision):
    """The order of the loops of the reduction, by the numbers of its axes, outermost first."""

    question = "the order of loops of the reduction"
    is_free = True
    axes: tuple[int, ...]


@dataclass(frozen=True)
class PadInput(Decision):
    """How a sketch pads an input: inline, without a copy, or by a copy, made before all tiles or for each cache tile."""

    question = "how a sketch pads its input"
    is_free = True
    inline: bool
    by_tile: bool


@dataclass(frozen=True)
class SketchProblem:
    """A reduction of *depth* terms: the sizes of its spatial axes, of which the last is written contiguously.

    `uses[i][a]` tells whether input i moves along spatial axis a; elements have *element_bytes*. Where `is_part[a]`, the epilogue
    takes the axis for a digit of one of its own, so that only tiles that divide it have a region that can be proven.
    """

    spatial: tuple[int, ...]
    depth: int
    uses: tuple[tuple[bool, ...], ...]
    element_bytes: int
    is_part: tuple[bool, ...]


def register_tile_plans(p: SketchProblem, target: Target) -> Iterator[Candidate[RegisterTile]]:
    """Yields the tiles whose accumulators fit `REGISTER_FILES`, some of them narrower than a vector."""
    lanes = target.lanes(p.element_bytes * 8)
    most = target.isa.vector_registers * REGISTER_FILES
    parts = [lanes // n for n in range(NARROWEST, 1, -1) if lanes % n == 0]
    widths = dict.fromkeys([min(p.spatial[-1], w) for w in (*parts, *[lanes * v for v in range(1, WIDEST + 1)])])
    sizes = [_tiles_of(e, most, whole=whole) for e, whole in zip(p.spatial[:-1], p.is_part, strict=False)]
    for width in [w for w in widths if not p.is_part[-1] or p.spatial[-1] % w == 0] or [min(p.spatial[-1], lanes)]:
        vectors = -(-width // lanes)
        for rows in _products(sizes, most // vectors):
            tile = RegisterTile((*rows, width))
            yield Candidate(tile, _register_cycles(p, tile, target))


def _tiles_of(extent: int, most: int, *, whole: bool) -> list[int]:
    """Returns the sizes of tiles along an axis: one, and those that waste little at its end, nothing where tiles are *whole*."""
    sizes, waste = range(2, min(extent, most) + 1), 0.0 if whole else WASTE
    return [1, *[s for s in sizes if -(-extent // s) * s <= extent * (1 + waste)]]


def _products(choices: Sequence[Sequence[int]], most: int) -> Iterator[tuple[int, ...]]:
    """Yields a number from each of *choices*, in ascending order, such that their product is at most *most*."""
    if not choices:
        yield ()
        return
    for first in choices[0]:
        if first > most:
            return
        for rest in _products(choices[1:], most // first):
            yield (first, *rest)


def _register_cycles(p: SketchProblem, tile: RegisterTile, target: Target) -> float:
    """Returns the cycles of all tiles, without the waits for memory."""
    lanes = target.lanes(p.element_bytes * 8)
    sizes = (*tile.sizes[:-1], -(-tile.sizes[-1] // lanes))
    loads = sum(prod([n for n, used in zip(sizes, use, strict=True) if used]) for use in p.uses)
    step = Demand(
        arithmetic=fma_cycles(prod(sizes), target), loads=load_cycles(loads, target), chain=target.core.fma_latency
    )
    tiles = prod([-(-e // s) for e, s in zip(p.spatial, tile.sizes, strict=True)])
    return step.cycles * tiles * p.depth


def cache_tile_plans(p: SketchProblem, tile: RegisterTile, target: Target) -> Iterator[Candidate[CacheTile]]:
    """Yields cache tiles of powers of two register tiles along each axis.

    The candidates are the same whatever the register tile is; their costs are not.
    """
    lanes = target.lanes(p.element_bytes * 8)
    counts = (*p.spatial[:-1], -(-p.spatial[-1] // lanes))
    choices = [[1 << n for n in range(max(1, (count - 1).bit_length()))] for count in counts]
    for sizes in islice(product(*choices), MOST_CACHE_TILES):
        yield Candidate(CacheTile(sizes), _cache_cycles(p, tile, sizes, target))


def _cache_cycles(p: SketchProblem, tile: RegisterTile, sizes: Sequence[int], target: Target) -> float:
    """Returns the cycles of filling cache tiles of *sizes*, from the second level if the inputs' parts fit there."""
    elements = [min(e, t * c) for e, t, c in zip(p.spatial, tile.sizes, sizes, strict=True)]
    depth = p.depth
    brought = (
        p.element_bytes
        * depth
        * sum(prod([n for n, used in zip(elements, use, strict=True) if used]) for use in p.uses)
    )
    tiles = prod([-(-e // n) for e, n in zip(p.spatial, elements, strict=True)])
    reading = l2_cycles if brought <= target.caches.l2 else l3_cycles
    return reading(brought * tiles, target)


def tiles_held(count: int, wanted: int) -> int:
    """Returns how many of *count* register tiles a cache tile holds: a divisor, so that no cache tile is smaller than others.

    Borders of register tiles are cut out of loops and written out; borders of cache tiles beside them would multiply the code.
    """
    return max(d for d in range(1, min(wanted, count) + 1) if count % d == 0)


def remainder_versions(extents: Sequence[int], tile: Sequence[int]) -> int:
    """Returns how many versions of a register tile there are: two for each axis that its size does not divide."""
    return 1 << sum(e % min(n, e) != 0 for e, n in zip(extents, tile, strict=True))


def may_unroll(steps: int, sums: int, versions: int) -> bool:
    """Tells whether *steps* of a reduction are unrolled in each of *versions* copies of a tile of *sums* vectors."""
    return steps * sums <= MOST_UNROLLED and may_write(steps * sums, versions)


def may_write(sums: int, versions: int) -> bool:
    """Tells whether *versions* copies of a loop over *sums* vector multiply-adds are written out.

    Lowering unrolls short loops further (`budget.unrolled_steps`).
    """
    return max(sums, min(sums * STEPS_UNROLLED[0], MOST_UNROLLED_SUMS)) * versions <= MOST_WRITTEN


def padded_parts(*, loops: bool) -> int:
    """Returns the parts of a padded axis that have code of their own: its interior, and both ends, where a window reads padding.

    Where taps are *loops*, those that read padding are apart from the others at each end.
    """
    return 5 if loops else 3


def reduce_tile_plans(extents: Sequence[int]) -> Iterator[Candidate[ReduceTile]]:
    """Yields divisors of each of *extents*, those of the reduction, unrolled or not; all are taken to cost the same."""
    yield Candidate(ReduceTile((1,) * len(extents), unroll=False), 0.0)
    choices = [[s for s in range(1, min(e, MOST_INNER_STEPS) + 1) if e % s == 0] for e in extents]
    for sizes in _products(choices, MOST_INNER_STEPS):
        if prod(sizes) > 1:
            yield Candidate(ReduceTile(sizes, unroll=False), 0.0)
            yield Candidate(ReduceTile(sizes, unroll=True), 0.0)


def outer_order_plans(extents: Sequence[int]) -> Iterator[Candidate[OuterOrder]]:
    """Yields the orders of loops of *extents*, that of the axes first; all are taken to cost the same."""
    for axes in _orders(extents):
        yield Candidate(OuterOrder(axes), 0.0)


def inner_order_plans(extents: Sequence[int]) -> Iterator[Candidate[InnerOrder]]:
    """Yields the orders of loops of *extents*, as `outer_order_plans` does."""
    for axes in _orders(extents):
        yield Candidate(InnerOrder(axes), 0.0)


def reduce_order_plans(extents: Sequence[int]) -> Iterator[Candidate[ReduceOrder]]:
    """Yields the orders of loops of *extents*, as `outer_order_plans` does."""
    for axes in _orders(extents):
        yield Candidate(ReduceOrder(axes), 0.0)


def _orders(extents: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yields permutations of the axes in which those of one iteration, and the shortest beyond `MOST_ORDERED`, stay first."""
    longest = sorted(range(len(extents)), key=lambda a: -extents[a])[:MOST_ORDERED]
    moved = sorted(a for a in longest if extents[a] > 1)
    fixed = [a for a in range(len(extents)) if a not in moved]
    for order in permutations(moved):
        yield (*fixed, *order)


def pad_input_plans() -> Iterator[Candidate[PadInput]]:
    """Yields the ways to pad an input; all are taken to cost the same."""
    yield Candidate(PadInput(inline=False, by_tile=False), 0.0)
    yield Candidate(PadInput(inline=False, by_tile=True), 0.0)
    yield Candidate(PadInput(inline=True, by_tile=False), 0.0)


SKETCHED = inf
"""The cost of a sketch where a rule is chosen: a rule knows more, until a search has measured."""
