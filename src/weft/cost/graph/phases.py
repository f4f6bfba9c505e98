"""What a convolution costs that is computed phase by phase: the polyphase forms of dilated and of transposed convolutions.

The phases of a dilation are images of their own, whose taps are neighbours; those of a transposed convolution's stride are
channels, which are then interleaved, or convolutions of their own in channel blocks. The cycles were fitted on one core of a
server of Intel's Emerald Rapids kind, 2026-11-21 (docs/design/0022).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from weft.targets import Target

SCATTER_CYCLES: Final = 7.5
"""Cycles for each element that is moved to the image of its phase, or back: neighbours go to different images."""

PHASES_GAIN: Final = 0.9
"""What phases may cost of the convolution as it is: images of a few places cost more than is reckoned."""

INTERLEAVE_CYCLES: Final = 2.0
"""Cycles for each element that is interleaved with those of the other phases."""


def is_worth_phases(direct: float, phases: float, moved: int) -> bool:
    """Tells whether a convolution of *direct* cycles is better made one of *phases* cycles by moving *moved* elements."""
    return phases + moved * SCATTER_CYCLES < PHASES_GAIN * direct


def are_phases_apart(
    sizes: Sequence[int], strides: Sequence[int], channels: int, depth: int, bits: int, target: Target
) -> bool:
    """Tells whether the phases of a transposed convolution are better computed apart, in channel blocks, than interleaved.

    *sizes* are those of its output, *strides* the number of phases in each dimension; each output is a sum of *depth* products.
    Together, phases are computed of positions, too, that only some of them have; but their *channels* fill vectors together.
    """
    lanes, phases = target.lanes(bits), prod(strides)
    apart = prod(-(-n // s) for n, s in zip(sizes, strides, strict=True)) * phases * -(-channels // lanes)
    together = prod(-(-n // s) + 1 for n, s in zip(sizes, strides, strict=True)) * -(-channels * phases // lanes)
    step = depth / max(1, target.core.fma_per_cycle)
    return apart * step <= together * step + prod(sizes) * channels * INTERLEAVE_CYCLES
