"""The part of a session of tuning that is about the graph: it goes on while it is expected to save more than kernels would.

Whether a plan is kept, the whole model decides: compiled by it, its results are those of the model before, and it is faster
beyond noise, called in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from time import perf_counter, time
from typing import Final, TypeAlias

import weft
from weft.cost import Decision, Layout, Plan
from weft.driver.build import Compilation
from weft.driver.cache.cache_key import compiler_facts
from weft.records import Record
from weft.tune.graph.call_times import ORIGIN
from weft.tune.graph.graph_tuner import GraphTrial, GraphTuner
from weft.tune.measure import Interval

SHARE: Final = 0.4
"""The part of a session that the graph takes at most: its kernels are tuned for whatever plan it has afterwards."""

FINALISTS: Final = 2
"""The plans that the whole model is measured with."""

Compare: TypeAlias = Callable[[Compilation, Compilation], Interval]
"""Returns the time of one compiled model relative to that of another."""

Tell: TypeAlias = Callable[[GraphTuner], object]
"""Is called after each plan that was measured."""


@dataclass(frozen=True)
class Budget:
    """The budget of a search of graph plans: *seconds*, and *trials* where they are bounded.

    It ends, too, when the next plan is expected to save less a second than *promised*, the part of a run that tuning kernels is
    expected to save in a second.
    """

    seconds: float
    trials: int | None
    promised: float


@dataclass(frozen=True)
class Answer:
    """A question about the graph: the seconds per run of each measured alternative, and the one chosen *before*."""

    subject: str
    before: Decision | None
    seconds: Mapping[Decision, float]

    @property
    def regret(self) -> float:
        """How many seconds of a run the choice before takes more than the best that was measured."""
        taken = None if self.before is None else self.seconds.get(self.before)
        return 0.0 if taken is None else taken - min(self.seconds.values())


@dataclass(frozen=True)
class GraphReport:
    """The result of a search of graph plans.

    *kept* is the plan that replaces that *before*, with its *record*, None where it stays; *ratio* is the time of the whole model
    with it. *answers* are the questions of which several alternatives were measured, those that matter most first; *run_seconds*
    is the time of a run in kernels before.
    """

    trials: Sequence[GraphTrial]
    before: Plan
    seconds: float
    reason: str
    kept: Plan | None = None
    record: Record | None = None
    ratio: Interval | None = None
    answers: Sequence[Answer] = field(default_factory=list)
    run_seconds: float = 0.0
    is_interrupted: bool = False

    @property
    def regret(self) -> float:
        """The part of a run that the algorithms and forms before take more than the fastest of each question.

        Alternatives were measured briefly, and the best of several looks better than it is, so it is less rather than more.
        Layouts do not count by themselves: moving values may cost the time that one of them saves.
        """
        alone = [a.regret for a in self.answers if not isinstance(a.before, Layout)]
        return sum(alone) / self.run_seconds if self.run_seconds else 0.0


def tune_graph(tuner: GraphTuner, budget: Budget, compare: Compare, tell: Tell | None = None) -> GraphReport:
    """Searches plans for a graph within *budget*; returns the result, with the record of the winning plan, not yet stored."""
    begin, before, is_interrupted = perf_counter(), len(tuner.trials), False
    try:
        reason = _search(tuner, budget, tell)
    except KeyboardInterrupt:
        reason, is_interrupted = "it was interrupted", True
    kept, ratio = _floor(tuner, compare)
    return GraphReport(
        tuner.trials[before:],
        tuner.incumbent.graph_plan,
        perf_counter() - begin,
        reason,
        kept,
        None if kept is None or ratio is None else _record(tuner, kept, ratio),
        ratio,
        answers_of(tuner),
        tuner.seconds,
        is_interrupted,
    )


def _search(tuner: GraphTuner, budget: Budget, tell: Tell | None) -> str:
    """Measures plan after plan, and finally the best by known times; returns the reason why the search ended."""
    end, tried = perf_counter() + budget.seconds, len(tuner.trials)
    most = inf if budget.trials is None else tried + budget.trials - 1  # and one to conclude with

    def told(step: Callable[[], GraphTrial | None]) -> None:
        if step() is not None and tell is not None:
            tell(tuner)

    while True:
        if perf_counter() >= end or len(tuner.trials) >= most:
            reason = "its share of the session is used up"
            break
        gain = tuner.expected_gain
        if gain < budget.promised * tuner.step_seconds or gain == 0:
            reason = "nothing is left to try" if gain == 0 else "tuning kernels promises more"
            break
        told(tuner.step)
    if budget.trials is None or budget.trials > 0:
        told(tuner.conclude)
    return reason


def _floor(tuner: GraphTuner, compare: Compare) -> tuple[Plan | None, Interval | None]:
    """Returns the plan by which the whole model is fastest, and its time relative to that before; None where none is faster."""
    found: list[tuple[float, Plan, Interval]] = []
    for trial in tuner.finalists(FINALISTS):
        ratio = compare(tuner.forms.build(trial.plan), tuner.incumbent)
        if ratio.high < 1:
            found.append((ratio.middle, trial.plan, ratio))
    if not found:
        return None, None
    _, plan, ratio = min(found, key=lambda f: f[0])
    return plan, ratio


def _record(tuner: GraphTuner, plan: Plan, ratio: Interval) -> Record:
    """Returns the record of a plan; its time is relative to that of the record before, so that the better has the lesser."""
    followed, target = tuner.incumbent.graph_record, tuner.incumbent.target
    beside = tuner.seconds if followed is None else followed.seconds
    return Record(
        workload=tuner.workload.digest,
        hardware=tuner.hardware.digest,
        weft=weft.__version__,
        plan=str(plan),
        seconds=ratio.middle * beside,
        low=ratio.low * beside,
        high=ratio.high * beside,
        baseline=beside,
        verified=True,
        threads=tuner.threads,
        backend=compiler_facts(target)[-1],
        target=target.name,
        time=time(),
        origin=ORIGIN,
    )


def answers_of(tuner: GraphTuner) -> list[Answer]:
    """Returns the questions of which several alternatives were measured, those of the longest kernels first."""
    chosen = {(s.subject, type(s.decision)): s.decision for s in tuner.incumbent.graph_plan.steps}
    found = [
        Answer(subject, chosen.get((subject, kind)), seconds)
        for (subject, kind), seconds in tuner.costs.alternatives().items()
        if len(seconds) > 1
    ]
    return sorted(found, key=lambda a: -min(a.seconds.values()))
