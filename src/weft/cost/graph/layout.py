"""The cost of a convolution in either layout of its image: plain [N, C, H, W], or with channels in blocks [N, C/b, H, W, b].

In blocks, vectors are filled with channels; in the plain layout with elements of a row, where those can be read. The figures were
fitted on one core of a server of Intel's Emerald Rapids kind and on one of AMD's Zen 4, 2026-11-22 (docs/design/0021).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from math import inf
from typing import Final

from weft.cost.graph.arithmetic import filled_part, multiply_cycles
from weft.cost.plans.plan import Decision
from weft.support.dtypes import i32
from weft.targets import Target
from weft.targets.instructions import dot_products

PACKING_CYCLES: Final = 8.0
"""Cycles for each vector that is packed or unpacked: its part of a transposition in registers, loads, and stores."""

UNFUSED_PART: Final = 0.05
"""The cost of an element-wise node in the plain layout, as a part of packing its output: in blocks it may be the epilogue of a
convolution."""

SCALAR_TIMES: Final = 4.0
"""The time of a plain convolution that reads no vectors, as a multiple of one in blocks: the ends of rows fill no vector."""

ROWS_TIMES: Final = 1.05
"""The same of one that reads rows in vectors."""

DEPTHWISE_TIMES: Final = 1.25
"""The time of a depthwise convolution in blocks, as a multiple of its multiply-adds: it uses each weight and element once."""

TAKEN: Final = 1.0
"""Cycles, in multiply-adds, for each vector that windows take from a row, again for each of their places in it."""

PICKED: Final = 5.0
"""The same where every other element is picked from two vectors, under masks."""

REMAINDER_POWER: Final = 0.5
"""The exponent with which a row's time grows with the filled part of its vectors, where masks are free: shorter vectors compute
the remainder."""

LONGEST_STRIDE: Final = 2
"""The longest stride at which elements of a row are picked from vectors as fast as channels are packed."""


@dataclass(frozen=True)
class Layout(Decision):
    """Whether a node computes on channels in blocks."""

    question = "the layout that a node computes in"
    blocks: bool


class Form(Enum):
    """How a plain convolution reads its image."""

    POINTWISE = auto()
    """One tap: a matrix product over all places."""
    DEPTHWISE = auto()
    """Each channel is convolved alone."""
    ROWS = auto()
    """Vectors along rows: at stride one, of a known width."""
    STRIDED = auto()
    """Elements one by one, every so many of a row, which are put together."""
    OTHER = auto()


@dataclass(frozen=True)
class Convolution:
    """A convolution by its sizes, those that are not known being one.

    *products* are its multiply-adds; *places* those of an image, in rows of *width*; *window* the rows and columns of the kernel;
    *stride* that along a row. Where the width is not known, *open_width*, rows are taken to be as long as a vector.
    """

    form: Form
    products: float
    bits: int
    places: int
    width: int
    window: tuple[int, int]
    stride: int
    open_width: bool = False


def packing_cycles(elements: int, bits: int, target: Target) -> float:
    """Returns the cycles of packing *elements* of *bits* bits in blocks of channels, or of unpacking them."""
    return PACKING_CYCLES * elements / target.lanes(bits)


def unfused_cycles(elements: int, bits: int, target: Target) -> float:
    """Returns the cycles that a node in the plain layout costs more than one in blocks, beside its arithmetic."""
    return UNFUSED_PART * packing_cycles(elements, bits, target)


def plain_cycles(c: Convolution, target: Target) -> float:
    """Returns the cycles of a convolution in the plain layout on one core."""
    lanes, masks = target.lanes(c.bits), target.isa.mask_registers
    work = multiply_cycles(c.products, c.bits, target)
    if c.form is Form.POINTWISE:
        return work / (filled_part(c.places, lanes) if c.places > 1 else 1.0)
    fills = c.open_width or c.width >= lanes
    if c.form is Form.DEPTHWISE and c.stride <= LONGEST_STRIDE and (masks or fills):
        return work * _window_times(c, target) / (_filled_rows(c.width, lanes, target) if masks else 1.0)
    if c.form is Form.ROWS:
        return work * ROWS_TIMES / _filled_rows(c.width, lanes, target)
    if c.stride > 1 and c.form in (Form.STRIDED, Form.DEPTHWISE):
        return work * 2 * lanes
    return work * SCALAR_TIMES / (filled_part(c.width, lanes) if 1 < c.width < lanes else 1.0)


def depthwise_cycles(c: Convolution, channels: int, block: int, target: Target) -> float:
    """Returns the cycles of a depthwise convolution of *channels* in blocks of *block*."""
    return multiply_cycles(c.products, c.bits, target) * DEPTHWISE_TIMES / filled_part(channels, block)


def grouped_cycles(c: Convolution, made: int, block: int, target: Target) -> float:
    """Returns the cycles of a convolution in groups that compute *made* channels each, in blocks of *block*."""
    return multiply_cycles(c.products, c.bits, target) / filled_part(made, block)


def blocked_cycles(c: Convolution, read: tuple[int, int], made: int, target: Target) -> float:
    """Returns the cycles of a direct convolution of one group in blocks.

    *read* are the channels of its input and their block, *made* those of its output. One block of these reads an element of the
    image for each product.
    """
    lanes = target.lanes(c.bits)
    used = filled_part(*read) * filled_part(made, lanes)
    return (
        multiply_cycles(c.products, c.bits, target) / used * (target.core.broadcast_slowdown if made <= lanes else 1.0)
    )


def dot_product_cycles(c: Convolution, made: int, target: Target) -> float:
    """Returns the cycles of a convolution of bytes that computes *made* channels, by dot products on channels in blocks.

    Infinite where the target has no such instruction.
    """
    shapes = [s for s in dot_products(target).values() if s.sums is i32 and s.b.bytes == 1]
    work = multiply_cycles(c.products, c.bits, target) / filled_part(made, target.lanes(c.bits))
    return min([work * s.cycles / s.group for s in shapes], default=inf)


def _filled_rows(width: int, lanes: int, target: Target) -> float:
    """Returns the part of their time that rows of *width* need as many vectors as they take."""
    if width > lanes:
        return float(filled_part(width, lanes) ** (REMAINDER_POWER if target.isa.mask_registers else 1.0))
    return filled_part(width, lanes // 2 if target.core.half_rate_wide else lanes)


def _window_times(c: Convolution, target: Target) -> float:
    """Returns how many times as long a depthwise convolution on vectors along rows takes as its multiply-adds."""
    rows, along = c.window
    taken = PICKED if target.isa.mask_registers and c.stride > 1 else TAKEN
    return 1 + taken / rows + TAKEN / (rows * along)
