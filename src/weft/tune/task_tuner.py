"""Tunes one kernel: proposes points, has them measured beside the incumbent, and learns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import numpy as np

from weft.cost import Plan, Step, parse_plan
from weft.records import Measurement
from weft.support.errors import ParseError
from weft.tune.explore import History, Stopping, Verdict
from weft.tune.features import Doubles, Features, Ints
from weft.tune.measure import IN_FLIGHT, Limits, Measurer, Outcome
from weft.tune.models import Samples
from weft.tune.space import PlanSpace
from weft.tune.strategies import Strategy
from weft.tune.tasks import Task

VERIFIED: Final = Limits(seconds=0.2, width=0.005, fewest=7, most=1000)
"""How long a winner is measured beside the incumbent, in each of several places, before it replaces it."""

BATCH: Final = 16
"""The points that are proposed at once."""

MOST_REFUSED: Final = 16
"""The fastest candidates that may be refused when they are measured again, before a search counts as one without a winner."""


@dataclass(frozen=True)
class Trial:
    """One measured candidate: the open plan that was proposed, its outcome, and the time since the tuner of its task began.

    `score` is the throughput relative to the incumbent's, 0 for a failed one.
    """

    point: Ints
    plan: str
    outcome: Outcome
    score: float
    second: float


class TaskTuner:
    """Searches the plans of *task*.

    `begun` are the candidates that were handed out, `refused` those that were fast until all checks were made. *fixed* are
    decisions that all plans are to have. *known* are measurements of before: points that are not measured again. *history* are
    samples of other tasks, which models learn from as well. *hints* are plans to begin with, such as those that were fast for
    like kernels. At most *in_flight* candidates are on their way at once; with one, proposals depend on times alone.
    """

    def __init__(
        self,
        task: Task,
        strategy: Strategy,
        builder: Executor,
        runner: Executor,
        *,
        seed: int = 0,
        threads: int = 1,
        limits: Limits | None = None,
        fixed: Sequence[Step] = (),
        known: Sequence[Measurement] = (),
        history: Sequence[Samples] = (),
        hints: Sequence[Plan] = (),
        in_flight: int = IN_FLIGHT,
    ) -> None:
        self.task = task
        self.space = PlanSpace(task.program, task.target, fixed, task.carry_out)
        others = [h for h in history if len(h)]
        self.explorer, self.model = strategy.begin(self.space, seed, Samples.joined(others) if others else None)
        self.history = History(len(self.space.sizes), self.space.keys)
        within = task.caches.within(limits or Limits())
        self.measurer = Measurer(
            task.job, builder, runner, limits=within, threads=threads, seed=seed, in_flight=in_flight, has_gaps=True
        )
        self.trials: list[Trial] = []
        self.begun = 0
        self.refused: list[Outcome] = []
        self._faster: dict[str, float] = {}
        self.stopping = Stopping(NOISE, horizon=PATIENCE, first=PATIENCE)
        self._others = others
        self._hints = [self.space.nearest_point(plan) for plan in hints]
        self._features: list[Features] = []
        self._pending: list[Ints] = []  # measured points whose features are still to be computed
        self._scores: list[float] = []
        self._begin = perf_counter()
        self._resume(known)

    @property
    def verdict(self) -> Verdict:
        """Whether the search is to stop, and why."""
        if len(self.history) >= self.space.count:
            return Verdict("all plans were measured", stops=True)
        return self.stopping.verdict()

    @property
    def best(self) -> tuple[str, float] | None:
        """The fastest candidate with its score; None where none is faster than the incumbent."""
        return max(self._faster.items(), key=lambda found: found[1], default=None)

    @property
    def speedup(self) -> float:
        """How much faster the best candidate is than the incumbent; 1 where none is."""
        return max(self._faster.values(), default=1.0)

    def run(self, go_on: Callable[[], bool]) -> Iterator[Trial]:
        """Measures candidates while *go_on* says so; yields each as it comes."""
        proposed: dict[str, Ints] = {}
        for outcome in self.measurer.submit(self._stream(go_on, proposed)):
            trial = self._trial(proposed[outcome.plan], outcome)
            self.trials.append(trial)
            yield trial

    def verified(self, limits: Limits) -> Outcome | None:
        """Returns the fastest candidate that passes all checks, measured again within *limits*; None if there is none.

        Candidates are trusted while they are searched: one that is illegal, or wrong for other inputs, is `refused` here, and
        the next fastest takes its place.
        """
        for plan in sorted(self._faster, key=self._faster.__getitem__, reverse=True)[:MOST_REFUSED]:
            outcome = self.measurer.again(plan, self.task.caches.within(limits))
            if outcome.measured is not None:
                return outcome
            self.refused.append(outcome)
            del self._faster[plan]
        return None

    def _stream(self, go_on: Callable[[], bool], proposed: dict[str, Ints]) -> Iterator[str]:
        """Yields plans, a batch after another: each batch is chosen by the measurements until then."""
        while go_on():
            points = self._next_points()
            if not len(points):
                return
            for point in points:
                if not go_on():
                    return
                self.history.add(point[None, :], np.zeros(1))  # so that it is not proposed again while it is on its way
                text = str(self.space.open_plan(point))
                proposed[text] = point
                self.begun += 1
                yield text
            self._learn()

    def _next_points(self) -> Ints:
        """Returns the points of the hints, then those that the explorer proposes."""
        if self._hints:
            hints = self.history.unseen(np.stack(self._hints))
            self._hints = []
            if len(hints):
                return hints
        return self.explorer.propose(BATCH, self.history)

    def _trial(self, point: Ints, outcome: Outcome) -> Trial:
        score = 0.0 if outcome.measured is None else 1.0 / outcome.measured.ratio.middle
        self._note(point, outcome.plan, score)
        return Trial(point, outcome.plan, outcome, score, perf_counter() - self._begin)

    def _note(self, point: Ints, plan: str, score: float) -> None:
        if score > 1:
            self._faster[plan] = score
        self.history.set_score(point, score)
        self.explorer.observe(point[None, :], np.array([score]))
        self._scores.append(score)
        if self.model is not None:
            self._pending.append(point)

    def _learn(self) -> None:
        """Fits the model to all that was measured."""
        if self._scores:
            self.stopping.observe(np.array(self._scores[-BATCH:]))
        if self.model is not None and self._scores:
            self.model.fit(self.samples.with_history(self._others, HISTORY_WEIGHT))

    @property
    def samples(self) -> Samples:
        """The measured plans, for models of this task and of others."""
        if self._pending:  # all at once: a batch takes little more time than a point
            self._features.append(self.space.features(np.stack(self._pending)))
            self._pending = []
        scores: Doubles = np.array(self._scores)
        seconds = np.where(scores > 0, 1.0 / np.maximum(scores, TINY), np.inf)
        return Samples.of_times(Features.joined(self._features), seconds)

    def _resume(self, known: Sequence[Measurement]) -> None:
        """Takes over earlier measurements, where the incumbent was measured beside them.

        A candidate is compared with the incumbent of the same moment: a machine's speed differs from one session to the next.
        Where that one is not known, the fastest takes its place. A failure that may be the machine's doesn't count until it
        happens again: the candidate may be proposed once more.
        """
        own = str(self.task.plan)
        incumbent = [(m.time, m.seconds) for m in known if m.plan == own and m.seconds is not None]
        beside, least = dict(incumbent), min([s for _, s in incumbent], default=0.0)
        last = {m.plan: m for m in known}  # a winner may have been refused after it was found fast
        failures = Counter(m.plan for m in known if m.failure)
        counted = [m for m in last.values() if not m.is_worth_a_retry or failures[m.plan] > 1]
        for m in counted if beside else ():
            try:
                point = self.space.point_of(parse_plan(m.plan))
            except ParseError:
                continue  # by another version of Weft
            if m.plan != own and not self.history.contains(point[None, :])[0]:
                self.history.add(point[None, :], np.zeros(1))
                self._note(point, m.plan, beside.get(m.time, least) / m.seconds if m.seconds else 0.0)
        self._learn()


NOISE: Final = 0.01
"""The relative deviation of a measurement: gains below it are none."""

PATIENCE: Final = 12
"""Batches for which a search goes on without a gain, and that are measured in any case."""

HISTORY_WEIGHT: Final = 0.3
"""How much the samples of other tasks count beside those of a task itself."""

TINY: Final = 1e-9
