"""A tuning session for a whole model: its kernels share the budget, winners are measured again, and results are stored as
records.

report = weft.tune("model.onnx", minutes=5, records="tune.db")
model = weft.compile("model.onnx", records="tune.db")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from time import perf_counter, time
from typing import Final

import weft
from weft.cost import Plan, parse_plan
from weft.driver.cache.cache_key import compiler_facts
from weft.driver.hardware import hardware_of
from weft.records import Hardware, Measurement, Pack, Record, Store, Workload, pack_folder
from weft.support.errors import ParseError
from weft.tune.graph import GraphReport
from weft.tune.measure import Interval, Measured, cluster_executor, local_executors
from weft.tune.space import Knob
from weft.tune.strategies import strategy
from weft.tune.task_tuner import VERIFIED, TaskTuner, Trial
from weft.tune.tasks import Task

SLICE: Final = 4.0
"""Seconds that a task is tuned for before it is asked again which one is to be."""

HOPE: Final = 0.2
"""The part of its time that a task is expected to lose before it was ever tuned."""

NEIGHBOURS: Final = 4
"""The records of like kernels that a search begins with."""

DRIVER_SECONDS: Final = 90.0
"""The time limit of a job whose kernel is compiled by a device driver, some of which are slow on unrolled loops."""

LEAST_SHARE: Final = 0.002
"""The least share of a run for which a kernel is tuned."""


@dataclass(frozen=True, eq=False)
class TuneOptions:
    """The options of a tuning session: the budget in *minutes* and *trials*, the name of the *tuner*, *threads* and a random
    *seed*.

    *cluster* is the address of the scheduler of a Dask cluster, whose machines build and run the candidates.
    """

    minutes: float = 5.0
    trials: int | None = None
    tuner: str = "sa-xgb"
    threads: int = 1
    seed: int = 0
    cluster: str | None = None


@dataclass(frozen=True, eq=False)
class Winner:
    """The winning candidate of a kernel, measured again in turns with the default schedule."""

    task: Task
    record: Record
    ratio: Interval


@dataclass(eq=False)
class TuneReport:
    """The result of a session: its tasks, the trials of each by its workload, the winners, and the *reason* why it ended.

    `ratio` is the time of the whole model with the new records, relative to the time before; None without records. `knobs`
    maps each workload to the knobs of its space, into which the points of its trials are indices. `run_seconds` is the time of
    all kernels in a run, including those too short to be tuned. `graph` reports on the graph's plans; None if these were not
    tuned.
    """

    tasks: Sequence[Task]
    trials: Mapping[str, list[Trial]]
    winners: list[Winner]
    seconds: float
    reason: str
    ratio: Interval | None = None
    knobs: Mapping[str, Sequence[Knob]] = field(default_factory=dict)
    run_seconds: float = 0.0
    graph: GraphReport | None = None

    @property
    def measured(self) -> int:
        """The number of candidates tried, including plans of the graph."""
        return sum(map(len, self.trials.values())) + (0 if self.graph is None else len(self.graph.trials))

    def trials_of(self, task: Task) -> list[Trial]:
        """Returns the candidates that were tried for *task*."""
        return self.trials.get(task.workload.digest, [])

    def knobs_of(self, task: Task) -> Sequence[Knob]:
        """Returns the knobs of *task*, none if it was not tuned."""
        return self.knobs.get(task.workload.digest, ())

    def winner_of(self, task: Task) -> Winner | None:
        """Returns the winner of *task*, None if there is none."""
        return next((w for w in self.winners if w.task is task), None)


@dataclass(frozen=True)
class GraphTask:
    """The search of the graph's plans, as a `Status` names it."""

    name: str = "layouts and algorithms"


@dataclass(frozen=True)
class Status:
    """The progress of a session.

    It describes the latest candidate, of *task*, which takes *share* of a run; *speedup* is the best of that task so far, and
    *rate* its GFLOP/s, 0 where there is no arithmetic. *trials* candidates were tried in *seconds* of *budget*. The next seconds
    go to the kernel *upcoming*, for which a gain of the part *hope* of a run is expected; empty where nothing is left to try.
    """

    task: Task | GraphTask
    share: float
    speedup: float
    trials: int
    seconds: float
    budget: float
    rate: float = 0.0
    upcoming: str = ""
    hope: float = 0.0


Watch = Callable[[Status], object]


class Session:
    """Tunes the kernels of one compiled model, in the processes of this machine or of a cluster.

    *spent* are the seconds, and *tried* the candidates, that the session took before it comes to them.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        options: TuneOptions,
        store: Store,
        watch: Watch | None = None,
        *,
        spent: float = 0.0,
        tried: int = 0,
    ) -> None:
        self.whole = sum(t.seconds for t in tasks)
        self.tasks = [t for t in tasks if t.seconds >= LEAST_SHARE * self.whole]
        self.options, self.store, self.watch = options, store, watch
        self.strategy = strategy(options.tuner)
        self.hardware = hardware_of(self.tasks[0].target) if self.tasks else Hardware("")
        self.pack = Pack(self.hardware.digest, pack_folder())
        self.tuners: dict[int, TaskTuner] = {}
        self.begin = perf_counter() - spent
        self.tried = self.count = tried

    @property
    def elapsed(self) -> float:
        """The seconds since the session began."""
        return perf_counter() - self.begin

    @property
    def is_over(self) -> bool:
        """Whether the time, or the number of trials, is used up."""
        begun = self.tried + sum(t.begun for t in self.tuners.values())
        spent = self.options.trials is not None and begun >= self.options.trials
        return spent or self.elapsed >= 60 * self.options.minutes

    def run(self) -> TuneReport:
        """Tunes until the session is over, nothing is left to try, or it is interrupted; measures the winners again."""
        with ExitStack() as stack:
            self.builder, self.runner = (stack.enter_context(e) for e in self._executors())
            reason = self._search()
            winners = [w for n in sorted(self.tuners) if (w := self._winner(self.tuners[n])) is not None]
        trials = {t.task.workload.digest: t.trials for t in self.tuners.values()}
        knobs = {t.task.workload.digest: t.space.knobs for t in self.tuners.values()}
        return TuneReport(self.tasks, trials, winners, self.elapsed, reason, knobs=knobs, run_seconds=self.whole)

    def nothing(self, reason: str) -> TuneReport:
        """Returns the report of a session that ended before it came to any kernel."""
        return TuneReport(self.tasks, {}, [], self.elapsed, reason, run_seconds=self.whole)

    def _executors(self) -> tuple[Executor, Executor]:
        """Returns who builds, and who runs."""
        if self.options.cluster is None:
            if any(t.target.kind == "grid" for t in self.tasks):
                return local_executors(seconds=DRIVER_SECONDS, is_pinned=False)
            return local_executors(threads=self.options.threads)
        shared = cluster_executor(self.options.cluster)
        return shared, shared

    def _search(self) -> str:
        """Tunes task after task; returns why it ended."""
        try:
            while (n := self._next()) is not None:
                if self.is_over:
                    return "the time is over" if self.options.trials is None else "the time, or the trials, are used up"
                self._slice(n)
        except KeyboardInterrupt:
            return "it was interrupted"
        reasons = {t.verdict.reason for t in self.tuners.values()}
        return f"more time would not pay: {', '.join(sorted(reasons))}" if reasons else "there is nothing to tune"

    def _next(self) -> int | None:
        """Returns the task of which the next slice is expected to save most of a run; None where none is."""
        saved = self._savings()
        best = max(range(len(saved)), key=saved.__getitem__, default=None)
        return best if best is not None and saved[best] > 0 else None

    def _savings(self) -> list[float]:
        """Returns the seconds of a run that a slice of each task is expected to save."""
        return [t.seconds * self._expected_gain(n) for n, t in enumerate(self.tasks)]

    def _expected_gain(self, n: int) -> float:
        """Returns the part of its time that the next slice of a task is expected to save."""
        tuner, most = self.tuners.get(n), min(HOPE, self.tasks[n].room)
        if tuner is None:
            return most
        return 0.0 if tuner.verdict.stops else min(most, tuner.stopping.expected_gain)

    def _slice(self, n: int) -> None:
        """Tunes task number *n* for a while."""
        tuner, end = self._tuner(n), perf_counter() + SLICE
        for trial in tuner.run(lambda: not self.is_over and perf_counter() < end and not tuner.verdict.stops):
            self.count += 1
            self._keep(tuner.task, trial)
            self._tell(tuner)

    def _tuner(self, n: int) -> TaskTuner:
        if n not in self.tuners:
            task = self.tasks[n]
            self.store.add(self.hardware, task.workload)
            known = self.store.measurements(task.workload.digest, self.hardware.digest)
            others = [t.samples for t in self.tuners.values() if t.trials and t.model is not None]
            self.tuners[n] = TaskTuner(
                task,
                self.strategy,
                self.builder,
                self.runner,
                seed=self.options.seed,
                threads=self.options.threads,
                fixed=task.settled(self.options.threads),
                known=known,
                history=others,
                hints=self._hints(task.workload),
            )
        return self.tuners[n]

    def _hints(self, workload: Workload) -> list[Plan]:
        """Returns the plan that comes with Weft, and those of the best records of like kernels.

        These differ from a workload in sizes alone, or are of other machines.
        """
        near = self.store.nearest(workload.structure, workload.sizes, self.hardware.digest, NEIGHBOURS, others=True)
        shipped = self.pack.best(workload.digest)
        plans: list[Plan] = []
        for record in [*([] if shipped is None else [shipped]), *[found.record for found in near]]:
            with suppress(ParseError):  # by another version of Weft
                plans.append(parse_plan(record.plan))
        return plans

    def _keep(self, task: Task, trial: Trial) -> None:
        """Stores a trial, and the incumbent's time beside it: both of one moment, by which a later session finds their ratio."""
        measured, now = trial.outcome.measured, time()
        failure = "" if measured is not None else trial.outcome.result.kind  # type: ignore[union-attr]
        key = task.workload.digest, self.hardware.digest, weft.__version__
        beside = [] if measured is None else [Measurement(*key, str(task.plan), _median(measured.incumbent), time=now)]
        seconds = None if measured is None else beside[0].seconds * measured.ratio.middle  # type: ignore[operator]
        found = Measurement(*key, trial.plan, seconds, failure, now, self.options.tuner)
        self.store.add(found, *beside)

    def _keep_refused(self, tuner: TaskTuner) -> None:
        """Stores the candidates that failed when all checks were made, so that no session takes them for fast again."""
        key = tuner.task.workload.digest, self.hardware.digest, weft.__version__
        failed = [(o.plan, o.result.kind) for o in tuner.refused if not isinstance(o.result, Measured)]
        self.store.add(*[Measurement(*key, plan, None, kind, time(), self.options.tuner) for plan, kind in failed])

    def _tell(self, tuner: TaskTuner) -> None:
        if self.watch is not None:
            self.watch(self._status(tuner))

    def _status(self, tuner: TaskTuner) -> Status:
        task, following = tuner.task, self._next()
        return Status(
            task,
            share=task.seconds / self.whole,
            speedup=tuner.speedup,
            trials=self.count,
            seconds=self.elapsed,
            budget=60 * self.options.minutes,
            rate=1e-9 * tuner.speedup * task.operations / task.seconds if task.seconds else 0.0,
            upcoming="" if following is None else self.tasks[following].name,
            hope=max(self._savings()) / self.whole,
        )

    def _winner(self, tuner: TaskTuner) -> Winner | None:
        """Measures the best candidate of a task again; returns it if it is faster beyond noise."""
        outcome = tuner.verified(VERIFIED)
        self._keep_refused(tuner)
        measured = None if outcome is None else outcome.measured
        if outcome is None or outcome.built is None or measured is None or measured.ratio.high >= 1:
            return None
        beside, ratio = _median(measured.incumbent), measured.ratio
        record = Record(
            workload=tuner.task.workload.digest,
            hardware=self.hardware.digest,
            weft=weft.__version__,
            plan=outcome.built.plan,
            seconds=ratio.middle * beside,
            low=ratio.low * beside,
            high=ratio.high * beside,
            baseline=beside,
            samples=len(measured.times),
            verified=True,
            threads=self.options.threads,
            backend=compiler_facts(tuner.task.target)[-1],
            target=tuner.task.target.name,
            trace=outcome.built.trace,
            time=time(),
            origin=self.options.tuner,
        )
        return Winner(tuner.task, record, measured.ratio)


def _median(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // 2]
