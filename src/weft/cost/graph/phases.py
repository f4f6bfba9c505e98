"""The cost of a convolution computed phase by phase: polyphase forms of dilated and transposed ones.

The phases of a dilation are images of their own, whose taps are neighbours; those of a transposed convolution's stride are
channels, which are then interleaved, or convolutions of their own in channel blocks. The cycles were fitted on one core of a
server of Intel's Emerald Rapids kind, 2026-11-21 (docs/design/0022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Final

from weft.cost.demand import fma_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.targets import Target

SCATTER_CYCLES: Final = 7.5
"""Cycles for each element that is moved to the image of its phase, or back: neighbours go to different images."""

PHASES_GAIN: Final = 0.9
"""The largest cost of phases, as a part of that of the direct convolution: small images cost more than is estimated."""

INTERLEAVE_CYCLES: Final = 2.0
"""Cycles for each element that is interleaved with those of the other phases."""


@dataclass(frozen=True)
class DilationPhases(Decision):
    """Whether the phases of a dilated convolution are made images of their own."""

    question = "the phases of a dilation"
    apart: bool


def dilation_plans(direct: float, phases: float, moved: int) -> list[Candidate[DilationPhases]]:
    """Returns both choices for a convolution of *direct* cycles that moving *moved* elements makes one of *phases* cycles.

    Phases that are computed directly as well take no less than the whole.
    """
    apart = min(phases, direct) + moved * SCATTER_CYCLES
    return by_cost(
        [Candidate(DilationPhases(apart=False), PHASES_GAIN * direct), Candidate(DilationPhases(apart=True), apart)]
    )


@dataclass(frozen=True)
class TransposedPhases(Decision):
    """Whether the phases of a transposed convolution are computed apart, in channel blocks, or as channels of one convolution."""

    question = "the phases of a transposed convolution"
    apart: bool


def transposed_plans(
    sizes: Sequence[int], strides: Sequence[int], channels: int, depth: int, bits: int, target: Target
) -> list[Candidate[TransposedPhases]]:
    """Returns both choices: phases that are computed apart, in channel blocks, and such as are interleaved.

    *sizes* are those of its output, *strides* the number of phases in each dimension; each output is a sum of *depth* products.
    Together, phases are computed of positions, too, that only some of them have; but their *channels* fill vectors together. On a
    grid of threads, which has no use for channels in blocks, one product computes them together.
    """
    lanes, phases = target.lanes(bits), prod(strides)
    apart = prod(-(-n // s) for n, s in zip(sizes, strides, strict=True)) * phases * -(-channels // lanes)
    together = prod(-(-n // s) + 1 for n, s in zip(sizes, strides, strict=True)) * -(-channels * phases // lanes)
    step = fma_cycles(depth, target)
    interleaved = together * step + prod(sizes) * channels * INTERLEAVE_CYCLES
    return by_cost(
        [
            Candidate(TransposedPhases(apart=True), inf if target.has_threads else apart * step),
            Candidate(TransposedPhases(apart=False), interleaved),
        ]
    )
