"""Whether a convolution on a grid is a product of matrices, or each thread computes a place of it by itself."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.cost.rules.shared_tile import NO_TILE, plain_product, shared_tile_plans
from weft.targets import Target

WHOLE_STEP: Final = 16
"""Terms of a product that are computed between two fetches: of steps that are not whole, each term would have a condition."""


@dataclass(frozen=True)
class ImplicitProduct(Decision):
    """Whether a convolution is a *product* of its weights and of patches of the image, which are computed as they are fetched."""

    question = "a convolution's form on a grid: a product of matrices, or place by place"
    of_grids = True
    product: bool


def whole_steps(terms: int) -> int:
    """Returns the terms of an implicit product that has so many, with those of zeros that make its steps whole."""
    return terms if terms < WHOLE_STEP else -(-terms // WHOLE_STEP) * WHOLE_STEP


def implicit_product_plans(
    channels: int, places: int, images: int, terms: int, target: Target
) -> list[Candidate[ImplicitProduct]]:
    """Returns both choices for *channels* of so many *places* of each of the *images*, each a sum of so many *terms*.

    The cycles of a product are those of its best tile; place by place, each thread reads both factors of each of its terms.
    """
    plans = list(shared_tile_plans(plain_product(channels, places, images, whole_steps(terms)), target))
    tiled = min([c.cycles for c in plans if c.decision != NO_TILE], default=inf)
    alone = min([c.cycles for c in plans if c.decision == NO_TILE], default=inf)
    return by_cost([Candidate(ImplicitProduct(product=True), tiled), Candidate(ImplicitProduct(product=False), alone)])
