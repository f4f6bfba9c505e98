"""Code-size budgets of a function: fractions of the instructions that a core's cache of decoded instructions holds.

Lowering copies bodies, to take guards out of the long part of a loop or to specialise the remainder of a tile; a core whose loop
outgrows its cache of decoded instructions waits for the decoder. Sizes are counted in stores, unrolled loops in full, each of
which is about an instruction of a register tile. The fractions were fitted on one core of a server of Intel's Emerald Rapids
kind, 2026-11-21 (docs/design/0021, 0025 and 0027).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.targets import Target

SMALL_PART: Final = 32
"""A body is not copied for the sake of less than 1 / `SMALL_PART` of its stores."""

LONG_BORDER: Final = 16
"""A border of at least 1 / `LONG_BORDER` of a loop's iterations is worth cutting again."""

SHORTEST_CUT_VECTOR: Final = 32
"""Elements; vectorised loops up to this length keep their guards as masks."""

MOST_REMAINDERS: Final = 8
"""Rows of a tile that may end early out of which one body for each number of rows is made."""

MOST_UNSWITCHED: Final = 2
"""Conditions taken out of a loop, one after another: each doubles its code."""

UNROLLED_VECTORS: Final = 8
"""Vectors that a vectorised loop may be written out as; a longer run stays a loop."""

MOST_LOOP_VECTORS: Final = 4
"""Vectors that one vectorised loop may span; it is written out in full."""

MOST_UNROLLED_CHOICES: Final = 8
"""The values of a digit that selects among formulas for each of which the body may be written out."""

STEPS_UNROLLED: Final = (4, 3, 2, 7, 5)
"""Steps of a register tile's reduction that may be one iteration of its loop, the best first: 8 are no faster than 4."""

STRIDED_STEPS_UNROLLED: Final = (4, 2)
"""Those of tiles that read *strided* vectors, or have more sums than there are registers."""

FEWEST_UNEVEN_STEPS: Final = 32
"""Steps from which on some may be left over, which follow the loop."""

MOST_UNROLLED_SUMS: Final = 64
"""Multiply-adds of vectors in such an iteration."""

LATE_LOADS: Final = 1
"""Elements kept from step to step that need no register yet while sums of the first ones are added to."""

FEW_REGISTERS: Final = 16
"""Vector registers of machines whose tiles have so few multiply-adds in a step that a loop's own instructions show."""

MOST_STREAMS: Final = 8
"""Runs of memory that one step prefetches side by side."""

SMALLEST_PLANNED_BUFFER: Final = 4096
"""Bytes from which on a working buffer is planned by the caller; smaller ones are left to the function's frame."""

LARGEST_ON_STACK: Final = 64 << 10
"""Bytes of a buffer that a block of a grid, which a core runs, keeps on the stack of that core."""


@dataclass(frozen=True)
class CodeBudget:
    """The stores of code that passes of lowering may make.

    A loop is cut, or *partitioned*, if its body has no more than `partitioned_body`, and cuts may add `partition_growth` to a
    function; where the sizes of borders are not known, those with bodies of `border_body` are cut again. Tiles written out for
    each number of rows may add `remainder_growth`. A loop is unswitched if its body has no more than `unswitched_body`.
    """

    partitioned_body: int
    partition_growth: int
    border_body: int
    remainder_growth: int
    unswitched_body: int


def code_budget(target: Target) -> CodeBudget:
    """Returns the budget of a function on *target*."""
    decoded = target.core.decoded_instructions
    return CodeBudget(
        partitioned_body=decoded * 5 // 8,
        partition_growth=decoded * 13 // 20,
        border_body=decoded * 2 // 125,
        remainder_growth=decoded * 3 // 10,
        unswitched_body=decoded * 2 // 125,
    )


@dataclass(frozen=True, order=True)
class Reuse:
    """The elements that a tile keeps in registers because it reads them again *after* so many steps of its reduction."""

    kept: int
    after: int


NO_REUSE: Final = Reuse(0, 1)


def unrolled_steps(length: int, sums: int, reuse: Reuse, target: Target, *, strided: bool = False) -> int:
    """Returns how many steps, *sums* multiply-adds of vectors each, a reduction of *length* steps does in one iteration.

    Of a long reduction some may be left over. Elements that a step reads again are kept in registers, if the one that read them
    before is in the same iteration. Where there is no room for them beside the sums and the vectors they are multiplied with,
    sums go through memory: 3 channels of 29 x 28 places to 45 by 4 x 4 taps, in tiles of 4 places by three vectors, take 0.5 of
    the time one by one (Zen 4 held to AVX2, 2026-11-28); and 7 channels of 676 places to 69 by 9 taps with a stride of two, where
    the step after the next reads elements again, 0.5 of that of three at once (Zen 3, 2026-11-30).

    Where vectors are *strided*, LLVM shuffles those of several steps out of the same loads, for which there are no registers. Nor
    are there for all sums of depthwise tiles of 18 to 21, whose three taps at once took 0.86 to 1.4 of the time.

    On a core that another thread shares, which gives it every other cycle of the decoder, 4 steps of 10 take 0.84 of the time of
    one by one; on a core of its own 0.97 (EPYC 7003, 2026-11-25; docs/design/0014). Loops of so few steps that none is left pay
    the most: 42 of 150 random operators, whose taps are 2 to 4, take 0.92 of the time (geometric mean; 0.71 to 1.06), and 53
    channels of 20 x 20 places by 1 x 3 taps, whose tiles of 5 places by two vectors keep 5 elements, 0.7. Products of 69 to 743
    terms, numbers that 4 does not divide, take 0.85 to 0.98 (Zen 3, 2026-11-30).
    """
    if target.isa.vector_registers > FEW_REGISTERS or sums < 2:
        return 1
    kept, room = reuse.kept, target.isa.vector_registers + LATE_LOADS
    most = reuse.after if kept and sums + kept + max(1, sums * reuse.after // kept) > room else length
    short = [n for n in STEPS_UNROLLED if n * sums <= MOST_UNROLLED_SUMS and n <= most]
    if strided or sums > target.isa.vector_registers:
        return next((n for n in short if n in STRIDED_STEPS_UNROLLED and n < length and length % n == 0), 1)
    usual = short[0] if short and length >= FEWEST_UNEVEN_STEPS else 1
    return next((n for n in short if length % n == 0), usual)
