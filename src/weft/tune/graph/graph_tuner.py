"""Searches the plans of a graph: its layouts and algorithms, the packing of its matrices, and recomputation by fusion.

    plan  <- solved with measured times, and hopes for the rest
    times <- its kernels, in turns with those of the incumbent
    each question learns the cost of its alternative; again, until nothing untried may be better

All questions try an alternative in each plan, so that few plans measure many. A plan whose kernels were all measured is known
without running it. The fastest plan is the one whose whole run was, not the one that is the sum of the fastest parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, time
from typing import Any, Final

import numpy as np

import weft
from weft.cost import Choosing, Following, Plan, parse_plan
from weft.driver.build import Compilation
from weft.driver.cache.code_cache import Cache
from weft.driver.options import CompileOptions
from weft.driver.recorded.workloads import graph_workload
from weft.records import Hardware, Measurement, Store
from weft.support.errors import LoweringError, ParseError, RuntimeFailure, ScheduleError, WeftError
from weft.tune.graph.call_times import ORIGIN, CallTimes
from weft.tune.graph.graph_forms import GraphForms
from weft.tune.graph.kernel_times import Attributed, attribute, plain_subject
from weft.tune.graph.measured_costs import NEVER, MeasuredCosts
from weft.tune.graph.profile_beside import ModelTimer, differs, profile_alone, profile_beside
from weft.tune.measure import Interval

HOPE: Final = 0.25
"""The part of its time that an untried alternative may take less than is estimated."""

LEAST_SHARE: Final = 0.005
"""The part of a run that the kernels of a question take at least if its alternatives are tried."""

TIMED: Final = 0.6
"""Seconds for which a plan and the incumbent run in turns."""

NOISE: Final = 0.005
"""Parts of a run that make no difference."""

PRIOR: Final = 0.05
"""The part of a run whose hopes are taken to have come true before any plan was measured."""

TYPICAL: Final = 4.0
"""Seconds that a plan is taken to need before one was tried."""

MOST_RESUMED: Final = 40
"""Plans of sessions before that are learned from, the latest: each takes as long as the passes over the graph."""

MOST_KNOWN: Final = 20
"""Plans that are put together from measured kernels before one with a new kernel is to be measured."""


TINY: Final = 1e-12


@dataclass(frozen=True)
class GraphTrial:
    """A plan that was measured: the *ratio* of a run by it to one by the incumbent, None for one that failed, and why.

    *kernels* are those that no plan before it had; *second* is the time since the search began.
    """

    plan: Plan
    ratio: Interval | None
    failure: str
    kernels: int
    second: float


@dataclass(frozen=True)
class _Proposal:
    """A plan to be measured, and the part of a run that it is hoped to save."""

    plan: Plan
    hoped: float


class GraphTuner:
    """Searches plans for the graph of *incumbent*, a compiled model, that are faster than its own.

    *inputs* are the inputs that the model is run with. Kernels are made by the records in *options*, and by the rules where it
    has none. Measurements are kept in *store*; those there for *hardware* are not repeated. *hope* is the part of its time that
    an untried alternative may take less than is estimated.
    """

    def __init__(
        self,
        incumbent: Compilation,
        options: CompileOptions,
        inputs: Mapping[str, np.ndarray[Any, Any]],
        store: Store,
        hardware: Hardware,
        *,
        threads: int = 1,
        cache: Cache | None = None,
        hope: float = HOPE,
    ) -> None:
        self.incumbent, self.inputs, self.threads = incumbent, inputs, threads
        self.store, self.hardware, self.hope = store, hardware, hope
        self.forms = GraphForms(incumbent.source, incumbent.target, options, cache)
        self.workload = graph_workload(incumbent.source, options)
        self.times = CallTimes(store, hardware)
        self.costs = MeasuredCosts()
        self.trials: list[GraphTrial] = []
        self.forms.decided(Choosing(incumbent.target, costs=self.costs))  # which tells it the estimates
        self._seen = {str(incumbent.graph_plan)}
        self._begin = perf_counter()
        self._hoped = self._found = 0.0
        self._next: _Proposal | None = None
        self._base = ModelTimer(incumbent, inputs, threads)
        self._calls = [incumbent.requests[g.key] for g in incumbent.fused.calls]
        self._taken = self._measured_alone()
        self._resume()

    @property
    def faster(self) -> list[GraphTrial]:
        """The plans whose runs took less than the incumbent's, the fastest first."""
        found = [(t.ratio.middle, n) for n, t in enumerate(self.trials) if t.ratio is not None and t.ratio.middle < 1]
        return [self.trials[n] for _, n in sorted(found)]

    @property
    def best(self) -> GraphTrial | None:
        """The plan whose run took least, None if none took less than the incumbent's."""
        return next(iter(self.faster), None)

    def finalists(self, most: int) -> list[GraphTrial]:
        """Returns the plans to measure longer: the best by the known times of kernels, then those whose runs took least."""
        self.costs.hope = NEVER
        planner = Choosing(self.incumbent.target, costs=self.costs)
        self.forms.decided(planner)
        solved = [t for t in self.trials if t.ratio is not None and t.plan == planner.plan]
        return list({id(t): t for t in (*solved, *self.faster)}.values())[:most]

    @property
    def seconds(self) -> float:
        """The seconds of a run by the incumbent, in its kernels."""
        return sum(self._taken)

    @property
    def expected_gain(self) -> float:
        """The part of a run that the next plan is expected to save; 0 where there is none to try.

        That is the hoped gain, times the part of such hopes that came true so far.
        """
        proposal = self._proposal()
        return 0.0 if proposal is None else proposal.hoped * (self._found + PRIOR) / (self._hoped + PRIOR)

    @property
    def step_seconds(self) -> float:
        """The seconds that a plan has taken to try, about."""
        tried = [t.second for t in self.trials if t.second > 0]
        return tried[-1] / len(tried) if tried else TYPICAL

    def step(self) -> GraphTrial | None:
        """Measures the next plan; returns its outcome, or None if no plan is left to try."""
        return self._measure(self._proposal())

    def conclude(self) -> GraphTrial | None:
        """Measures the plan that is best by known kernel times; None if it is the incumbent, or was measured already."""
        return self._measure(self._propose(NEVER))

    def _proposal(self) -> _Proposal | None:
        """Returns the plan to measure next, the same until one is measured."""
        if self._next is None:
            self._next = self._propose(self.hope) or self._propose(NEVER)
        return self._next

    def _measure(self, proposal: _Proposal | None) -> GraphTrial | None:
        self._next = None
        if proposal is None:
            return None
        self._seen.add(str(proposal.plan))
        before = self.costs.least
        self.trials.append(self._trial(proposal))
        self._hoped += proposal.hoped
        self._found += max(0.0, before - self.costs.least) / max(self.seconds, TINY)
        return self.trials[-1]

    def _propose(self, hope: float) -> _Proposal | None:
        """Returns the unmeasured plan that is best by known and optimistically estimated times; None if there is none."""
        self.costs.hope, self.costs.open = hope, self._open_subjects()
        for _ in range(MOST_KNOWN):
            planner = Choosing(self.incumbent.target, costs=self.costs)
            fused, plan = self.forms.decided(planner), planner.plan
            if str(plan) in self._seen:
                break
            known = [self.times.known(r) for r in self.forms.requests_of(fused)]
            seconds = [s for s in known if s is not None]
            if len(seconds) < len(known):
                return _Proposal(plan, self._hoped_of(plan))
            bar = self.seconds if hope == NEVER else self._best_seconds
            if sum(seconds) < (1 - NOISE) * bar:
                return _Proposal(plan, 1 - sum(seconds) / bar)
            self._seen.add(str(plan))
            self._learn(plan, attribute(fused, plan, seconds))
        return None

    @property
    def _best_seconds(self) -> float:
        best = self.best
        return self.seconds * (best.ratio.middle if best is not None and best.ratio is not None else 1.0)

    def _open_subjects(self) -> set[str]:
        """Returns the subjects whose kernels take enough of a run for their alternatives to be tried."""
        taken: dict[str, float] = {}
        for (subject, _), alternatives in self.costs.alternatives().items():
            name = plain_subject(subject)
            taken[name] = max(taken.get(name, 0.0), min(alternatives.values(), default=0.0))
        return {s for s, seconds in taken.items() if seconds >= LEAST_SHARE * self.seconds}

    def _hoped_of(self, plan: Plan) -> float:
        """Returns the part of a run that the untried decisions of *plan* save if they take as little as is hoped."""
        saved, alternatives = dict[str, float](), self.costs.alternatives()
        for s in plan.steps:
            known = alternatives.get((s.subject, type(s.decision)), {})
            if known and s.decision not in known:
                hoped = self.costs.hoped(s.subject, s.decision)
                name = plain_subject(s.subject)
                saved[name] = max(saved.get(name, 0.0), min(known.values()) - hoped)
        return min(1.0, max(0.0, sum(saved.values())) / self.seconds)

    def _trial(self, proposal: _Proposal) -> GraphTrial:
        """Builds a plan and runs it in turns with the incumbent."""
        plan = proposal.plan
        try:
            made = self.forms.build(plan)
            timer = ModelTimer(made, self.inputs, self.threads)
            beside = profile_beside(timer, self._base, TIMED)
            wrong = differs(timer.outputs, self._base.outputs)
        except WeftError as error:
            return self._failed(proposal, "error", error.message)
        if wrong is not None:
            return self._failed(proposal, "wrong", wrong)
        drift = self.seconds / sum(beside.second)
        seconds = [s * drift for s in beside.first]
        new = self.times.add([made.requests[g.key] for g in made.fused.calls], seconds)
        self._learn(plan, attribute(made.fused, plan, seconds))
        self._learn_incumbent([s * drift for s in beside.second])
        self._keep(plan, self.seconds * beside.ratio.middle)
        return GraphTrial(plan, beside.ratio, "", new, perf_counter() - self._begin)

    def _failed(self, proposal: _Proposal, kind: str, message: str) -> GraphTrial:
        """Keeps that a plan failed; its untried decisions are not tried again."""
        self._give_up(proposal.plan)
        self._keep(proposal.plan, None, kind)
        return GraphTrial(proposal.plan, None, message, 0, perf_counter() - self._begin)

    def _give_up(self, plan: Plan) -> None:
        untried = [(s.subject, s.decision) for s in plan.steps if self.costs.known(s.subject, s.decision) is None]
        self.costs.give_up(untried)

    def _keep(self, plan: Plan, seconds: float | None, failure: str = "") -> None:
        found = Measurement(
            self.workload.digest, self.hardware.digest, weft.__version__, str(plan), seconds, failure, time(), ORIGIN
        )
        self.store.add(self.hardware, self.workload, found)

    def _learn(self, plan: Plan, found: Attributed) -> None:
        """Learns the costs of a plan's decisions; where no kernel is left of one, the estimate is taken for its cost."""
        self.costs.learn(found)
        for s in plan.steps:
            if self.costs.known(s.subject, s.decision) is None:
                self.costs.settle(s.subject, s.decision)

    def _measured_alone(self) -> list[float]:
        """Returns the seconds of the incumbent's calls: those of another session, so that all are of one time, or of now."""
        known = [self.times.known(r) for r in self._calls]
        before = [s for s in known if s is not None]
        now = profile_alone(self._base, TIMED)
        if len(before) < len(known):
            self.times.add(self._calls, now)
            before = list(now)
        self._learn_incumbent(before)
        return before

    def _learn_incumbent(self, seconds: Sequence[float]) -> None:
        plan = self.incumbent.graph_plan
        self._learn(plan, attribute(self.incumbent.fused, plan, seconds))

    def _resume(self) -> None:
        """Learns from the plans that were measured before, by the times that are kept of their kernels; from failures at last."""
        kept = {m.plan: m for m in self.store.measurements(self.workload.digest, self.hardware.digest)}
        new = [m for m in kept.values() if m.weft == weft.__version__ and m.plan not in self._seen]
        self._seen.update(m.plan for m in new[:-MOST_RESUMED])
        failed: list[Plan] = []
        for m in new[-MOST_RESUMED:]:
            try:
                plan = parse_plan(m.plan)
                fused = self.forms.decided(Following(plan))
                known = [self.times.known(r) for r in self.forms.requests_of(fused)]
            except (LoweringError, ParseError, RuntimeFailure, ScheduleError):
                continue  # by other passes
            seconds = [s for s in known if s is not None]
            if m.seconds is None:
                self._seen.add(m.plan)
                failed.append(plan)
            elif len(seconds) == len(known):
                self._seen.add(m.plan)
                self._learn(plan, attribute(fused, plan, seconds))
                ratio = m.seconds / self.seconds
                self.trials.append(GraphTrial(plan, Interval(ratio, ratio, ratio), "", 0, 0.0))
        for plan in failed:
            self._give_up(plan)
