"""Measures many plans of one kernel: several are built and run at once, and each is only once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any, Final

from weft.support.errors import RuntimeFailure
from weft.tune.measure.build_candidate import build
from weft.tune.measure.jobs import BuildJob, Built, Failed, Limits, Measured, RunJob
from weft.tune.measure.ratio_interval import enclosing
from weft.tune.measure.run_candidate import run

PLACES: Final = 3
"""How often a plan that is measured again is given other memory."""

IN_FLIGHT: Final = 6
"""The plans that are built or run at once: enough to keep two builders and a runner busy."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a plan: its code if it could be built, and its times or why there are none."""

    plan: str
    built: Built | None
    result: Measured | Failed

    @property
    def measured(self) -> Measured | None:
        """The times, None where it failed."""
        return self.result if isinstance(self.result, Measured) else None


class Measurer:
    """Builds plans in *builder* and runs them in *runner*, in turns with the plan of *task*, the incumbent.

    *task* gives the program, its flags and the target; where plans have gaps (*has_gaps*), the rules complete them. At most
    *in_flight* plans are on their way at once. Plans of the same code share its times. Raises `RuntimeFailure` where the
    incumbent can't be built.
    """

    def __init__(
        self,
        task: BuildJob,
        builder: Executor,
        runner: Executor,
        *,
        limits: Limits | None = None,
        threads: int = 1,
        seed: int = 0,
        in_flight: int = IN_FLIGHT,
        has_gaps: bool = False,
    ) -> None:
        self.task, self.limits, self.threads, self.seed = task, limits or Limits(), threads, seed
        self.has_gaps = has_gaps
        self._builder, self._runner, self._in_flight = builder, runner, in_flight
        self._known: dict[str, Outcome] = {}
        self._by_code: dict[bytes, Measured | Failed] = {}
        first = _value(builder.submit(build, task))
        if not isinstance(first, Built):
            raise RuntimeFailure(f"the incumbent can't be built: {first.message}", hint="leave its plan out")
        self.incumbent: Built = first

    def submit(self, plans: Iterable[str]) -> Iterator[Outcome]:
        """Yields the outcome of each of *plans* as it comes; plans are taken as there is room for them.

        A plan that was measured before is not measured again. Closing the iterator cancels the plans not begun. Schedules are
        trusted, since results are compared.
        """
        waiting, flights, source = Counter[str](), dict[Future[Any], _Flight](), iter(plans)
        try:
            while True:
                while len(flights) < self._in_flight and (plan := next(source, None)) is not None:
                    if plan in self._known:
                        yield self._known[plan]
                        continue
                    waiting[plan] += 1
                    if waiting[plan] == 1:
                        flights[self._builder.submit(build, self._job(plan, trusted=True))] = _Flight(plan)
                if not flights:
                    return
                for future in wait(flights, return_when=FIRST_COMPLETED).done:
                    outcome = self._landed(future, flights)
                    if outcome is not None:
                        self._known[outcome.plan] = outcome
                        yield from [outcome] * waiting.pop(outcome.plan)
        finally:
            for future in flights:
                future.cancel()

    def know(self, outcomes: Iterable[Outcome]) -> None:
        """Takes *outcomes* of another measurer of the same task for its own: their plans are not measured again."""
        self._known.update({o.plan: o for o in outcomes})

    def again(self, plan: str, limits: Limits, times: int = PLACES) -> Outcome:
        """Returns the outcome of *plan*, measured beside the incumbent several *times*, each within other *limits*.

        The schedule is proved legal in full. Each measurement has inputs and memory of its own: the ratio of two kernels depends
        on where their buffers lie, by more than its interval in one place says. The interval encloses all of theirs. The
        first in which the plan fails, or is not faster, is the last.
        """
        built = _value(self._builder.submit(build, self._job(plan, trusted=False)))
        if not isinstance(built, Built):
            return Outcome(plan, None, built)
        found: list[Measured] = []
        for n in range(1, times + 1):
            seed = self.seed + n
            job = RunJob(built, self.incumbent, self.task.program, self.task.target, seed, self.threads, limits)
            result = _value(self._runner.submit(run, job))
            if not isinstance(result, Measured):
                return Outcome(plan, built, result)
            found.append(result)
            if result.ratio.high >= 1:
                break
        return Outcome(plan, built, _joined(found))

    def promote(self, outcome: Outcome) -> None:
        """Takes a plan that was built as the incumbent that later ones are measured beside."""
        if outcome.built is None:
            raise RuntimeFailure("a plan that can't be built is no incumbent", hint="promote one that was measured")
        self.incumbent = outcome.built

    def _job(self, plan: str, *, trusted: bool) -> BuildJob:
        return replace(self.task, plan=plan, has_gaps=self.has_gaps, trusted=trusted)

    def _landed(self, future: Future[Any], flights: dict[Future[Any], _Flight]) -> Outcome | None:
        """Returns the outcome of the plan of *future*; None if it was built and is to be run now."""
        flight, value = flights.pop(future), _value(future)
        if flight.built is not None:
            if isinstance(value, Measured | Failed) and _is_of_the_code(value):
                self._by_code[flight.built.digest] = value
            return Outcome(flight.plan, flight.built, value)
        if not isinstance(value, Built):
            return Outcome(flight.plan, None, value)
        if value.digest in self._by_code:
            return Outcome(flight.plan, value, replace(self._by_code[value.digest], stages=()))
        job = RunJob(value, self.incumbent, self.task.program, self.task.target, self.seed, self.threads, self.limits)
        flights[self._runner.submit(run, job)] = _Flight(flight.plan, value)
        return None


@dataclass(frozen=True)
class _Flight:
    """A plan on its way: it is built while *built* is None, and runs then."""

    plan: str
    built: Built | None = None


def _joined(found: Sequence[Measured]) -> Measured:
    """Returns measurements of one kernel in several places as one."""
    return replace(
        found[0],
        times=tuple([t for m in found for t in m.times]),
        incumbent=tuple([t for m in found for t in m.incumbent]),
        ratio=enclosing([m.ratio for m in found]),
        is_early=any(m.is_early for m in found),
        error=max(m.error for m in found),
    )


def _is_of_the_code(result: Measured | Failed) -> bool:
    """Tells whether *result* is caused by the code, not by an unrelated event on the machine."""
    return isinstance(result, Measured) or result.kind in ("wrong", "raised")


def _value(future: Future[Any]) -> Any:
    """Returns the result of *future*; a failure where the executor lost it."""
    try:
        return future.result()
    except CancelledError:
        raise
    except Exception as error:
        return Failed("crash", f"{type(error).__name__}: {error}")


def stage_seconds(outcomes: Iterable[Outcome]) -> dict[str, float]:
    """Returns the processor seconds of all *outcomes* by stage: those of building, then those of running."""
    total: dict[str, float] = {}
    for o in outcomes:
        for name, seconds in (*(o.built.stages if o.built is not None else ()), *o.result.stages):
            total[name] = total.get(name, 0.0) + seconds
    return total


def shares_text(stages: dict[str, float]) -> str:
    """Returns the stages' shares of all processor time, in one line."""
    whole = sum(stages.values()) or 1.0
    return ", ".join(f"{name} {seconds / whole:.0%}" for name, seconds in stages.items())
