"""Convolutions on channels in blocks, as products in matrix registers: of bf16, and of bytes (docs/design/0050)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Final

from weft.cost.graph.arithmetic import multiply_cycles
from weft.cost.graph.layout import packing_cycles
from weft.cost.graph.low_precision import NarrowFactors
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
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

    It reads *image* elements. Where *by_winograd*, float32 may have fewer products.
    """

    lines: int
    width: int
    read: int
    made: int
    window: int
    image: int = 0
    by_winograd: bool = False


@dataclass(frozen=True)
class ByteBlock(Decision):
    """How many *channels* of bytes stand side by side: those of a vector of sums, or of a row of a matrix register."""

    question = "the channels of a block of bytes"
    channels: int


@dataclass(frozen=True)
class BytePanel(Decision):
    """How many *columns* of the weights of a convolution of bytes lie side by side: those of a block, or of a tile of sums."""

    question = "the columns of a panel of bytes"
    columns: int


def narrow_convolution_plans(p: BlockedConvolution, target: Target) -> list[Candidate[NarrowFactors]]:
    """Returns the forms of a convolution whose factors may be rounded to bf16, by cycles; bf16 is in matrix registers."""
    lanes = target.lanes(f32.bits)
    products = float(p.lines * p.width * p.read * p.made * p.window)
    wide = multiply_cycles(products, f32.bits, target) * (WINOGRAD_PART if p.by_winograd else 1.0)
    found = [Candidate(NarrowFactors(), wide)]
    tiles = _as_product(p, (bf16, bf16, f32), NARROW_BLOCK, lanes)
    work = min([c.cycles for c in matrix_tile_plans(tiles, target) if c.decision.rows], default=None)
    if work is not None:
        moving = packing_cycles(p.image, f32.bits, target)
        found.append(Candidate(NarrowFactors(lanes), work + moving))
    return by_cost(found)


def byte_block_plans(p: BlockedConvolution, target: Target) -> list[Candidate[ByteBlock]]:
    """Returns the blocks of channels for what a convolution of bytes computes, by the cycles of one that reads as many of them.

    Blocks of a row of a matrix register are a choice where it has instructions for bytes, and channels fill them.
    """
    lanes, kinds, p = target.lanes(i32.bits), (u8, i8, i32), replace(p, read=p.made)
    in_vectors = matrix_tile_plans(_as_product(p, kinds, lanes, lanes), target)
    found = [Candidate(ByteBlock(lanes), min([c.cycles for c in in_vectors]))]
    if p.made % ROW_BYTES == 0:
        in_tiles = matrix_tile_plans(_as_product(p, kinds, ROW_BYTES, ROW_BYTES), target)
        found += [Candidate(ByteBlock(ROW_BYTES), c.cycles) for c in in_tiles if c.decision.rows]
    return list({c.decision: c for c in reversed(by_cost(found))}.values())[::-1]


def byte_panel_plans(p: BlockedConvolution, read: int, made: int, target: Target) -> list[Candidate[BytePanel]]:
    """Returns the panels of the weights of a convolution of bytes by cycles, given the blocks of channels *read* and *made*.

    Tiles of a panel of their own are read in order; vectors take all columns of a block at once.
    """
    found = [Candidate(BytePanel(made), inf)]
    if made % TILE_LANES == 0:
        plans = matrix_tile_plans(replace(_as_product(p, (u8, i8, i32), read, made), panel=TILE_LANES), target)
        found += [Candidate(BytePanel(TILE_LANES if c.decision.rows else made), c.cycles) for c in plans]
    return list({c.decision: c for c in reversed(by_cost(found))}.values())[::-1]


def _as_product(p: BlockedConvolution, kinds: tuple[DType, DType, DType], read: int, made: int) -> MatrixTileProblem:
    """Returns a convolution as a product of its places, in blocks of so many channels that are *read* and *made*."""
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
