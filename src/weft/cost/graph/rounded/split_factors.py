"""Products of float32 made of products of bf16 (bf16x6) in matrix registers, at float32's accuracy (docs/design/0084)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Final

from weft.cost.demand import l3_cycles
from weft.cost.graph.arithmetic import multiply_cycles
from weft.cost.graph.low_precision import FloatProduct
from weft.cost.graph.matrix_convolutions import WINOGRAD_PART, BlockedConvolution, as_product
from weft.cost.graph.memory import L2_SHARE, streaming_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.cost.rules.matrix_tiles import MatrixTile, MatrixTileProblem, matrix_tile_plans
from weft.support.dtypes import bf16, f32
from weft.targets import Target
from weft.targets.instructions import MOST_ROWS, ROW_BYTES, TILE_LANES, TileOperation, group_of, intrinsics_of

PARTS: Final = 3
"""Numbers of bf16 that have all bits of a float32."""

PAIRS: Final = 6
"""Products of parts that are made for a product of float32."""

STEP_TERMS: Final = ROW_BYTES // bf16.bytes
"""Terms whose parts lie side by side: those of a row of a matrix register."""

SPLIT_CYCLES: Final = 16.0
"""Cycles of splitting a vector of float32 and storing its parts. 128 x 768 elements took 29 us, 14 cycles each, on an Emerald
Rapids virtual machine (2026-12-01)."""

SHARED: Final = 1.15
"""How much longer products in matrix registers are taken to be than alone on a core, whose other hardware thread shares them.
While neighbours were busy on that machine they took 2.4 times as long, and products in vectors 1.4 times."""

STREAMED: Final = 0.6
"""The part of the time of reading weights from memory that products do not hide. On that machine 128 x 768 x 768 took 690 us in
parts with weights in memory, which are read in 220, and 547 with those in the third level of cache; whole 969, 147 and 891."""

SUM_CYCLES: Final = 16.0
"""Cycles of storing a vector of sums, and adding it to those of other terms. Six blocks of 128 terms instead of one of 768 took
867 us on that machine instead of 775."""

FEWEST_OPEN_ROWS: Final = 64
"""Rows that a product of which only a call tells the number has at least, if its factors are split: weights are for all calls,
and few rows take the time of reading them, which are half as large again in parts."""

MOST_TRIED: Final = 64
"""Numbers of blocks that are looked at for one that cuts all terms evenly."""

L2_PART: Final = 0.5
"""The part of the second level of cache that a block of terms of all rows may fill, beside panels and sums. Blocks that fit into
the first level gain nothing: 243 instead of 275 x 10^9 operations a second (128 x 768 x 768, on that machine)."""


@dataclass(frozen=True)
class FactorsInParts(Decision):
    """The form of the factors of a product of float32: whole, or in parts of bf16, whose products are summed.

    In parts, the terms are cut in so many *blocks*, each of which is added to the sums of those before; 0 is whole.
    """

    question = "the factors of a product of float32"
    blocks: int = 0


def multiplies_parts(target: Target) -> bool:
    """Tells whether a machine has matrix registers that multiply bf16."""
    return TileOperation("multiply", MOST_ROWS, f32, bf16, bf16).name in {i.name for i in intrinsics_of(target)}


def factors_in_parts_plans(p: FloatProduct, target: Target) -> list[Candidate[FactorsInParts]]:
    """Returns the forms of a product by a constant matrix, by cycles on one core: those of reading it, and of splitting rows."""
    rows, size = FEWEST_OPEN_ROWS if p.rows is None else p.rows, p.depth * p.columns
    reading = partial(streaming_cycles, target=target, others=target.caches.l3)  # others' weights are read in between
    wide = _with_reading(multiply_cycles(rows * size, f32.bits, target), reading(size * f32.bytes))
    found = [Candidate(FactorsInParts(), wide)]
    steps, group = -(-p.depth // STEP_TERMS), group_of(bf16)
    whole = MatrixTileProblem(
        *(bf16, bf16, f32),
        rows=rows,
        columns=-(-p.columns // TILE_LANES),
        width=TILE_LANES,
        groups=steps * STEP_TERMS // group,
        inner=STEP_TERMS // group,
        others=1,
        left_stride=steps * ROW_BYTES * PARTS,
        open_rows=p.rows is None,
    )
    read, left = reading(size * bf16.bytes * PARTS), rows * p.depth * bf16.bytes * PARTS
    for blocks in sorted({1, _fewest_blocks(steps, left / (L2_PART * target.caches.l2))}):
        block = in_parts(replace(whole, groups=whole.groups // blocks))
        best = _best(matrix_tile_plans(block, target))
        if best is not None:
            passes = rows // (best.decision.rows * best.decision.row_tiles * (best.decision.row_block or rows))
            adding = (blocks - 1) * rows * p.columns / target.lanes(f32.bits) * SUM_CYCLES
            work = _with_reading(blocks * best.cycles * SHARED + adding, max(passes, 1) * read)
            found.append(Candidate(FactorsInParts(blocks), work + _split_cycles(rows * p.depth, target)))
    return by_cost(found)


def _fewest_blocks(steps: int, least: float) -> int:
    """Returns the fewest blocks that *steps* are cut in evenly, *least* of them, or 1 where no number near that does."""
    fewest = max(1, ceil(least))
    return next((b for b in range(fewest, min(fewest + MOST_TRIED, steps) + 1) if steps % b == 0), 1)


def convolution_in_parts_plans(p: BlockedConvolution, target: Target) -> list[Candidate[FactorsInParts]]:
    """Returns both forms of a convolution on channels in blocks, by cycles on one core, those of splitting its image included."""
    products = float(p.lines * p.width * p.read * p.made * p.window)
    weights = partial(streaming_cycles, target=target)
    wide = multiply_cycles(products, f32.bits, target) * (WINOGRAD_PART if p.by_winograd else 1.0)
    found = [Candidate(FactorsInParts(), _with_reading(wide, weights(p.read * p.made * p.window * f32.bytes)))]
    if p.pointwise:
        p = replace(p, lines=1, width=p.lines * p.width)
    problem = in_parts(as_product(p, (bf16, bf16, f32), STEP_TERMS, TILE_LANES))
    if p.pointwise:
        problem = replace(problem, left_stride=ROW_BYTES * PARTS)
    best = _best(matrix_tile_plans(problem, target))
    if best is not None:
        read = weights(p.read * p.made * p.window * bf16.bytes * PARTS)
        work = _with_reading(best.cycles * SHARED, read) + _split_cycles(p.image, target)
        found.append(Candidate(FactorsInParts(1), work + _image_cycles(p, best.decision, target)))
    return by_cost(found)


def _image_cycles(p: BlockedConvolution, tile: MatrixTile, target: Target) -> float:
    """Returns the cycles of reading the parts of an image, for each of some panels or once, and of writing the result.

    What does not stay in the second level of cache is not hidden: 56 x 56 places of 128 channels took 637 us, half for products.
    """
    image, made = p.image * bf16.bytes * PARTS, p.lines * p.width * p.made * f32.bytes
    if image <= L2_SHARE * target.caches.l2:
        return 0.0
    is_once = tile.row_block or tile.rows * tile.row_tiles >= p.width
    panels = -(-p.made // TILE_LANES // tile.columns)
    return (1 if is_once else panels) * l3_cycles(image, target) + l3_cycles(made, target)


def in_parts(p: MatrixTileProblem) -> MatrixTileProblem:
    """Returns a product in matrix registers with both factors in parts."""
    return replace(p, groups=p.groups * PAIRS, pairs=PAIRS, parts=PARTS)


def _with_reading(work: float, reading: float) -> float:
    """Returns the cycles of products while their weights are read."""
    return max(work + reading * STREAMED, reading)


def _best(plans: Iterable[Candidate[MatrixTile]]) -> Candidate[MatrixTile] | None:
    """Returns the best plan in matrix registers; None where there are none."""
    return min([c for c in plans if c.decision.rows], key=lambda c: c.cycles, default=None)


def _split_cycles(elements: int, target: Target) -> float:
    return elements / target.lanes(f32.bits) * SPLIT_CYCLES
