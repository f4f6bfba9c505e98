"""Whether the products of a convolution with its padding are left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

LEAST_SHARE = 0.04
"""The part of the products that must be with padding for leaving these out to be worth the code."""


@dataclass(frozen=True)
class SkipPadding(Decision):
    """Whether tiles at the border have code of their own, without the products with padding."""

    question = "the products with padding"
    skip: bool


def padding_plans(inside: float, sums: int, target: Target, *, is_shared_out: bool) -> Iterator[Candidate[SkipPadding]]:
    """Yields both choices, for code of so many *sums* if it is written out; *inside* is the part of the products that counts.

    They are left out only where the code stays in the cache of instructions, and the loops left keep all cores busy.
    """
    if sums <= target.core.decoded_instructions and is_shared_out:
        yield Candidate(SkipPadding(skip=True), inside + LEAST_SHARE)
    yield Candidate(SkipPadding(skip=False), 1.0)
