"""Convolutions on channels in blocks, as products in matrix registers: of bf16, and of bytes (docs/design/0050)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Final

from weft.cost.graph.arithmetic import multiply_cycles
from weft.cost.graph.layout import packing_cycles
from weft.cost.graph.low_precision import NarrowFactors
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import best_of_each, by_cost
from weft.cost.rules.matrix_tiles import MatrixTileProblem, matrix_tile_plans
from weft.support.dtypes import DType, bf16, f32, i8, i32, u8
from weft.targets import Target
from weft.targets.instructions import ROW_BYTES, TILE_LANES, group_of

NARROW_BLOCK: Final = ROW_BYTES // bf16.bytes
"""Channels of bf16 in a block: those of a row of a tile."""

WINOGRAD_PART: Final = 0.4
"""The part of its products that a convolution of 3 x 3 taps is taken to have by Winograd's method, transforms included."""


@dataclass(frozen=True)
class BlockedConvolution:
    """A convolution on channels in blocks: *width* places in each of so many *lines*, of *read* channels to *made* in a *window*.

    It reads *image* elements. Where *by_winograd*, float32 may have fewer products. The places of a *pointwise* one are read in
    order, so that those of all lines may be one line.
    """

    lines: int
    width: int
    read: int
    made: int
    window: int
    image: int = 0
    by_winograd: bool = False
    pointwise: bool = False


@dataclass(frozen=True)
class ByteBlock(Decision):
    """The *channels* in a block of bytes: as many as a vector has sums, or a row of a matrix register has bytes."""

    question = "the channels of a block of bytes"
    channels: int


@dataclass(frozen=True)
class BytePanel(Decision):
    """The *columns* in a panel of a convolution's weights in bytes: those of an output block, or of a tile of sums."""

    question = "the columns of a panel of bytes"
    columns: int


def narrow_convolution_plans(p: BlockedConvolution, target: Target) -> list[Candidate[NarrowFactors]]:
    """Returns the forms of a convolution whose factors may be rounded to bf16, by cycles; bf16 is in matrix registers."""
    lanes = target.lanes(f32.bits)
    products = float(p.lines * p.width * p.read * p.made * p.window)
    wide = multiply_cycles(products, f32.bits, target) * (WINOGRAD_PART if p.by_winograd else 1.0)
    found = [Candidate(NarrowFactors(), wide)]
    tiles = as_product(p, (bf16, bf16, f32), NARROW_BLOCK, lanes)
    work = min([c.cycles for c in matrix_tile_plans(tiles, target) if c.decision.rows], default=None)
    if work is not None:
        moving = packing_cycles(p.image, f32.bits, target)
        found.append(Candidate(NarrowFactors(lanes), work + moving))
    return by_cost(found)


def byte_block_plans(p: BlockedConvolution, target: Target) -> list[Candidate[ByteBlock]]:
    """Returns the blocks of a convolution's output channels in bytes, by the cycles of a consumer that reads as many channels.

    Blocks as long as a row of a matrix register are a choice where the target multiplies bytes in those, and channels fill them.
    """
    lanes, kinds, p = target.lanes(i32.bits), (u8, i8, i32), replace(p, read=p.made)
    in_vectors = matrix_tile_plans(as_product(p, kinds, lanes, lanes), target)
    found = [Candidate(ByteBlock(lanes), min([c.cycles for c in in_vectors]))]
    if p.made % ROW_BYTES == 0:
        in_tiles = matrix_tile_plans(as_product(p, kinds, ROW_BYTES, ROW_BYTES), target)
        found += [Candidate(ByteBlock(ROW_BYTES), c.cycles) for c in in_tiles if c.decision.rows]
    return best_of_each(found)


def byte_panel_plans(p: BlockedConvolution, read: int, made: int, target: Target) -> list[Candidate[BytePanel]]:
    """Returns the panels of the weights of a convolution of bytes by cycles, given the blocks of channels *read* and *made*.

    Panels of a tile's columns are read in order by tiles; vectors take all columns of a block at once.
    """
    found = [Candidate(BytePanel(made), inf)]
    if made % TILE_LANES == 0:
        plans = matrix_tile_plans(replace(as_product(p, (u8, i8, i32), read, made), panel=TILE_LANES), target)
        found += [Candidate(BytePanel(TILE_LANES if c.decision.rows else made), c.cycles) for c in plans]
    return best_of_each(found)


def as_product(p: BlockedConvolution, kinds: tuple[DType, DType, DType], read: int, made: int) -> MatrixTileProblem:
    """Returns a convolution as an implicit product, with input channels in blocks of *read* and output channels of *made*."""
    group = group_of(kinds[0])
    return MatrixTileProblem(
        *kinds,
        rows=p.width,
        columns=-(-p.made // made),
        width=made,
        groups=-(-p.read // group) * p.window,
        inner=-(-min(read, p.read) // group),
        others=p.lines,
        lines=p.lines,
    )
