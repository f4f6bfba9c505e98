"""The costs of a graph's alternatives in seconds: measured, or estimated from those that were.

An alternative that was never measured costs its estimate, times the seconds that a cycle has taken where alternatives of
the same question were measured, and less by *hope*: of those that may be the best, one a question is then tried in each plan, and
once it is measured it is believed. That is optimism in the face of uncertainty (Lai and Robbins, "Asymptotically efficient
adaptive allocation rules", 1985), for each question of a graph at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf, isfinite
from statistics import median
from typing import Final, TypeAlias

from weft.cost import Candidate, CostSource, D, Decision, Layout, Winograd, by_cost
from weft.tune.graph.kernel_times import Attributed, Priced, plain_subject

Asked: TypeAlias = tuple[str, type[Decision]]
"""A question: its subject, and the kind of decision."""

ABSOLUTE: Final = (Layout, Winograd)
"""The decisions whose estimates are cycles; those of others compare within their question alone."""

NEVER: Final = -1e6
"""The optimism factor at which an unmeasured alternative is never preferred to a measured one."""


class MeasuredCosts(CostSource):
    """A table of times by subject and decision, and of the times of moving values to another layout.

    *hope* is the part of its time that an alternative is hoped to take less than is estimated. It holds for the *open* subjects
    alone, which may be None for all of them.
    """

    def __init__(self, hope: float = 0.0, open_subjects: Collection[str] | None = None) -> None:
        self.hope = hope
        self.open = open_subjects
        self._times: dict[Asked, dict[Decision, list[float]]] = {}
        self._moved: dict[str, list[float]] = {}
        self._estimates: dict[Priced, float] = {}
        self._overall: float | None = None

    def learn(self, found: Attributed) -> None:
        """Learns the kernel times of one plan."""
        for (subject, decision), seconds in found.seconds.items():
            self._note(subject, decision, seconds)
        for subject, seconds in found.moved.items():
            self._moved.setdefault(subject, []).append(seconds)

    def give_up(self, untried: Iterable[Priced]) -> None:
        """Takes alternatives for infinitely slow: they can't be built, or compute something else."""
        for subject, decision in untried:
            self._note(subject, decision, inf)

    def settle(self, subject: str, decision: Decision) -> None:
        """Falls back to the estimate for tried decisions to which no kernel time could be attributed."""
        estimate = self._estimates.get((subject, decision), 0.0)
        self._note(subject, decision, estimate * self._rate(subject, type(decision))[0])

    def known(self, subject: str, decision: Decision) -> float | None:
        """Returns the measured seconds of a decision, None where there are none.

        Those of a layout are of the fastest algorithm that was measured in it, those of anything else medians.
        """
        times = self._times.get((subject, type(decision)), {}).get(decision)
        if times is None:
            return None
        return min(times) if isinstance(decision, Layout) else median(times)

    def hoped(self, subject: str, decision: Decision) -> float:
        """Returns the cost of a decision that was a candidate: measured, or hoped for."""
        return self.cycles(subject, decision, self._estimates.get((subject, decision), inf))

    def alternatives(self) -> dict[Asked, dict[Decision, float]]:
        """Returns the measured seconds of each question's alternatives."""
        return {
            (subject, kind): {d: self.known(subject, d) or 0.0 for d in measured}
            for (subject, kind), measured in self._times.items()
        }

    @property
    def least(self) -> float:
        """The sum of the fastest alternatives of all subjects, by known times; alternatives that only failed do not count."""
        found: dict[str, float] = {}
        for (subject, _), alternatives in self.alternatives().items():
            name, seconds = plain_subject(subject), min(alternatives.values())
            found[name] = min(found.get(name, inf), seconds)
        return sum(s for s in found.values() if isfinite(s))

    def cycles(self, subject: str, decision: Decision, estimate: float) -> float:
        """Returns the seconds of *decision*, as they were measured or as they are hoped to be."""
        if not isfinite(estimate):
            return estimate
        self._estimate(subject, decision, estimate)
        known = self.known(subject, decision)
        if known is not None:
            return known
        rate, is_tried = self._rate(subject, type(decision))
        return estimate * rate * (1 - self._hope(subject) if is_tried else 1.0)

    def moving(self, subject: str, estimate: float) -> float:
        """Returns the seconds of moving a value, as they were measured, else as a cycle takes them elsewhere."""
        measured = self._moved.get(plain_subject(subject))
        return median(measured) if measured else estimate * self.rate

    def ranked(self, subject: str, candidates: Iterable[Candidate[D]]) -> tuple[Candidate[D], ...]:
        """Returns the candidates by their seconds."""
        given = list(candidates)
        for c in given:  # so that the rate of one that is not measured is known
            self._estimate(subject, c.decision, c.cycles)
        return tuple(by_cost([Candidate(c.decision, self.cycles(subject, c.decision, c.cycles)) for c in given]))

    @property
    def rate(self) -> float:
        """The seconds that an estimated cycle has taken, over all nodes; 1 where nothing was measured."""
        if self._overall is None:
            pairs = [p for asked in self._times if issubclass(asked[1], ABSOLUTE) for p in self._pairs(asked)]
            cycles = sum(e for _, e in pairs)
            self._overall = sum(s for s, _ in pairs) / cycles if cycles else 1.0
        return self._overall

    def _rate(self, subject: str, kind: type[Decision]) -> tuple[float, bool]:
        """Returns the seconds of a cycle for a question, and whether an alternative of it was measured."""
        rates = [seconds / estimate for seconds, estimate in self._pairs((subject, kind))]
        if not issubclass(kind, ABSOLUTE):
            return min(rates, default=1.0), bool(rates)
        # one slower than its estimate says nothing about its alternatives
        return min([*rates, self.rate]), bool(rates)

    def _pairs(self, asked: Asked) -> list[tuple[float, float]]:
        """Returns the seconds and the estimates of a question's measured alternatives."""
        subject, _ = asked
        pairs = [
            (min(times), self._estimates.get((subject, d), 0.0)) for d, times in self._times.get(asked, {}).items()
        ]
        return [(s, e) for s, e in pairs if e > 0 and isfinite(s)]

    def _note(self, subject: str, decision: Decision, seconds: float) -> None:
        self._times.setdefault((subject, type(decision)), {}).setdefault(decision, []).append(seconds)
        self._overall = None

    def _estimate(self, subject: str, decision: Decision, cycles: float) -> None:
        if self._estimates.get((subject, decision)) != cycles:
            self._estimates[subject, decision] = cycles
            self._overall = None

    def _hope(self, subject: str) -> float:
        return self.hope if self.open is None or plain_subject(subject) in self.open else NEVER
