"""Whether a convolution on a grid is a product of matrices, or each thread computes a place of it by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.cost.rules.fragment_tile import FragmentProduct, fragment_tile_plans
from weft.cost.rules.shared_tile import NO_TILE, SharedTile, plain_product, shared_tile_plans
from weft.support.dtypes import DType, f32
from weft.targets import Target
from weft.targets.instructions import FRAGMENT, SWIZZLED_BYTES

WHOLE_STEP: Final = 16
"""Terms of a product that are computed between two fetches: of steps that are not whole, each term would have a condition."""

DIVISION: Final = 1.03
"""The time of a product whose columns are places of several images, over that of one without divisions by the number of them."""


@dataclass(frozen=True)
class ImplicitProduct(Decision):
    """Whether a convolution is a *product* of its weights and of patches of the image, which are computed as they are fetched.

    That is one product for each image, or one whose columns are the places of all images, *merged*. Factors
    may be *rounded*, to be multiplied in fragments.
    """

    question = "a convolution's form on a grid: a product of matrices, or place by place"
    of_grids = True
    product: bool
    merged: bool = False
    rounded: bool = False


def filled_channels(channels: int, factors: DType) -> int:
    """Returns the terms of a tap: of factors rounded to other types than float32, threads fetch vectors of so many channels."""
    return channels if factors is f32 else -(-channels // FRAGMENT.quads) * FRAGMENT.quads


def filled_terms(terms: int, channels: int, factors: DType) -> int:
    """Returns the terms of an implicit product of so many, with those of zeros: taps of filled channels, and whole steps.

    Where taps are filled up, all terms are whole rows of swizzled memory.
    """
    filled = terms // channels * filled_channels(channels, factors)
    row = SWIZZLED_BYTES // factors.bytes
    return whole_steps(terms) if filled == terms else -(-filled // row) * row


def whole_steps(terms: int) -> int:
    """Returns the terms of an implicit product that has so many, with those of zeros that make its steps whole."""
    return terms if terms < WHOLE_STEP else -(-terms // WHOLE_STEP) * WHOLE_STEP


def implicit_product_plans(
    channels: int,
    places: int,
    images: int,
    terms: int,
    target: Target,
    factors: DType = f32,
    read: int = FRAGMENT.quads,
) -> list[Candidate[ImplicitProduct]]:
    """Returns the choices for *channels* of so many *places* of each of the *images*, each a sum of so many *terms*, of taps of
    the channels that are *read*.

    The cycles of a product are those of its best tile; place by place, each thread reads both factors of each of its terms.
    *factors* other than of float32 are those of products in fragments, if these are faster.
    """
    rounded, terms = filled_terms(terms, read, factors), whole_steps(terms)
    plans = list(shared_tile_plans(plain_product(channels, places, images, terms), target))
    alone = min([c.cycles for c in plans if c.decision == NO_TILE], default=inf)
    found = [
        Candidate(ImplicitProduct(product=True), _best_tile(plans)),
        Candidate(ImplicitProduct(product=False), alone),
    ]
    if images > 1:
        whole = shared_tile_plans(plain_product(channels, places * images, 1, terms), target)
        found.append(Candidate(ImplicitProduct(product=True, merged=True), _best_tile(whole) * DIVISION))
    for merged in (False, True) if factors is not f32 else ():
        columns, batch = (places * images, 1) if merged else (places, images)
        tiles = fragment_tile_plans(
            FragmentProduct(channels, columns, batch, rounded, rounded, factors, patches=True), target
        )
        best = min([c.cycles for c in tiles if c.decision.warps], default=None)
        if best is not None and (images > 1 or not merged):
            found.append(Candidate(ImplicitProduct(product=True, merged=merged, rounded=True), best))
    return by_cost(found)


def _best_tile(plans: Iterable[Candidate[SharedTile]]) -> float:
    return min([c.cycles for c in plans if c.decision != NO_TILE], default=inf)
