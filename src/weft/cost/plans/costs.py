"""Where the costs of a graph's alternatives come from: the estimates, unless somebody has measured them.

Choosing(target)                     chooses by the estimates
Choosing(target, costs=measured)     by the answers of a subclass of `CostSource`, the estimates where it knows no better
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from weft.cost.plans.plan import Candidate, D, Decision


class CostSource:
    """The costs of decisions as they are estimated; subclasses answer by measurements or bounds of their own."""

    def cycles(self, subject: str, decision: Decision, estimate: float) -> float:
        """Returns the cycles of *decision* about *subject*, which is estimated to take *estimate*."""
        return estimate

    def moving(self, subject: str, estimate: float) -> float:
        """Returns the cycles of bringing the value *subject* to another layout."""
        return estimate

    def ranked(self, subject: str, candidates: Iterable[Candidate[D]]) -> tuple[Candidate[D], ...]:
        """Returns the candidates of a question about *subject*, the cheapest first, where it is asked by itself."""
        return tuple(candidates)


ESTIMATED: Final = CostSource()
"""The estimates of this layer."""
