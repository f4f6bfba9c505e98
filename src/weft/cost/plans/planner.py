"""Planners: one chooses among candidates by cost on a machine, one follows a given plan.

A schedule rule, or a pass over the graph, asks `planner.decide(subject, kind, candidates)` where it has a choice, and does the
same for the same answer. It never sees a machine: *candidates* is called with one only where there is something to choose.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from weft.cost.plans.costs import ESTIMATED, CostSource
from weft.cost.plans.plan import PROGRAM, Candidate, D, Decision, Plan, Step
from weft.loop import Program
from weft.support.errors import ScheduleError
from weft.targets import Target

Candidates: TypeAlias = Callable[[Target], Iterable[Candidate[D]]]
"""The alternatives of one choice on a machine, each with its cost; at least one, each of them right."""

Choose: TypeAlias = Callable[[Sequence[Candidate[Any]]], Candidate[Any]]
"""Chooses one of the candidates of a question."""

Accept: TypeAlias = Callable[[D], bool]
"""Tells whether a decision may stand: a test that takes too long for all candidates, and some candidate passes."""

Takes: TypeAlias = Callable[[Callable[[], Program]], bool]
"""Tells whether code can be made of a program, of which only a part is scheduled yet; it is made for whoever looks at it."""

SolveJointly: TypeAlias = "Callable[[Target, Choose, CostSource], Sequence[Question]]"
"""Puts questions whose costs depend on one another: after each answer, the candidates left are those that fit the answers."""

_MAKE_ANEW: Final = (
    "make the plan anew: `weft inspect MODEL --plan KERNEL` prints a kernel's, `--plan graph` the graph's"
)

CLEARLY = 0.999
"""The part of a cost that a cheaper candidate must stay below to be preferred to one before it."""


def cheapest(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
    """Returns the first candidate that no other is clearly cheaper than."""
    best = candidates[0]
    for c in candidates[1:]:
        if c.cycles < best.cycles * CLEARLY:
            best = c
    return best


def by_cost(candidates: Iterable[Candidate[D]]) -> list[Candidate[D]]:
    """Returns the candidates by their cycles, so that the cheapest is the first; equal ones in the order given."""
    return sorted(candidates, key=lambda c: c.cycles)


def best_of_each(candidates: Iterable[Candidate[D]]) -> list[Candidate[D]]:
    """Returns the cheapest candidate of each decision, `by_cost`."""
    found: dict[D, Candidate[D]] = {}
    for c in by_cost(candidates):
        found.setdefault(c.decision, c)
    return list(found.values())


@dataclass(frozen=True)
class VectorLength(Decision):
    """The bits of the vectors that loops are cut to."""

    question = "the length of vectors"
    bits: int


@dataclass(frozen=True)
class CacheLine(Decision):
    """The bytes that memory moves at once, which strides are padded by."""

    question = "the unit that strides are padded by"
    bytes: int


class Planner(ABC):
    """Answers the questions of the rules."""

    @abstractmethod
    def decide(self, subject: str, kind: type[D], candidates: Candidates[D], accept: Accept[D] = lambda _: True) -> D:
        """Returns the decision of *kind* about *subject*, one that *accept* holds for."""

    @abstractmethod
    def decide_jointly(self, subjects: Sequence[str], kind: type[D], solve: SolveJointly) -> list[D]:
        """Returns the decisions of *kind* about *subjects*, whose costs depend on one another: *solve* puts their questions."""

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """The decisions: those so far, or those that are followed."""

    @property
    @abstractmethod
    def is_grid(self) -> bool:
        """Whether the program is for a grid of threads."""

    @abstractmethod
    def offers(self, kind: type[Decision], on: Callable[[Target], bool]) -> bool:
        """Tells whether there are alternatives of *kind*: whether the machine is one *on* which there are."""

    @property
    def questions(self) -> Sequence[Question]:
        """The choices as they were put, where candidates were asked for."""
        return ()

    def takes(self, make: Callable[[], Program]) -> bool:
        """Tells whether code can be generated for the program that a decision makes, as far as that is checked."""
        make()
        return True

    def finish(self) -> None:  # noqa: B027  (only a plan that is followed has an end)
        """Raises `ScheduleError` if there are decisions that nobody asked for."""

    @cached_property
    def vector_bits(self) -> int:
        """The bits of a vector."""
        return self.decide(PROGRAM, VectorLength, lambda m: [Candidate(VectorLength(m.isa.vector_bits), 0.0)]).bits

    @cached_property
    def line(self) -> int:
        """The bytes of a cache line."""
        return self.decide(PROGRAM, CacheLine, lambda m: [Candidate(CacheLine(m.caches.line), 0.0)]).bytes

    def lanes(self, bits: int) -> int:
        """Returns how many elements of *bits* bits a vector holds."""
        return max(1, self.vector_bits // bits)


@dataclass(frozen=True)
class Question:
    """A choice that was made: its subject, the candidates, and the one that was taken."""

    subject: str
    candidates: tuple[Candidate[Any], ...]
    chosen: Candidate[Any]


class Choosing(Planner):
    """Chooses by the *costs* on *machine*, by default the estimates; `questions` records the choices.

    With *takes*, no decisions are made whose programs it refuses. It is slow, so that it is given once a plan was refused.
    """

    def __init__(
        self, machine: Target, choose: Choose = cheapest, costs: CostSource = ESTIMATED, takes: Takes | None = None
    ) -> None:
        self.machine = machine
        self.choose = choose
        self.costs = costs
        self._takes = takes
        self._questions: list[Question] = []

    @property
    def is_grid(self) -> bool:
        """Whether the machine runs grids of threads."""
        return self.machine.has_threads

    def offers(self, kind: type[Decision], on: Callable[[Target], bool]) -> bool:
        """Asks the machine."""
        return on(self.machine)

    @property
    def questions(self) -> Sequence[Question]:
        """The choices made so far."""
        return self._questions

    def decide(self, subject: str, kind: type[D], candidates: Candidates[D], accept: Accept[D] = lambda _: True) -> D:
        """Returns the candidate that `choose` takes, of those that are accepted."""
        found = self.costs.ranked(subject, candidates(self.machine))
        chosen = self.choose(found)
        while not accept(chosen.decision):
            found = tuple([c for c in found if c is not chosen])
            chosen = self.choose(found)
        return self._noted(Question(subject, found, chosen), kind)

    def decide_jointly(self, subjects: Sequence[str], kind: type[D], solve: SolveJointly) -> list[D]:
        """Returns the candidates that `choose` takes as *solve* asks for them."""
        questions = solve(self.machine, self.choose, self.costs)
        assert [q.subject for q in questions] == list(subjects)
        return [self._noted(q, kind) for q in questions]

    def takes(self, make: Callable[[], Program]) -> bool:
        """Tells whether code can be made of a program, if that is to be found out."""
        return super().takes(make) if self._takes is None else self._takes(make)

    def _noted(self, question: Question, kind: type[D]) -> D:
        self._questions.append(question)
        decision = question.chosen.decision
        assert isinstance(decision, kind)
        return decision

    @property
    def plan(self) -> Plan:
        """The decisions so far."""
        return Plan(tuple([Step(q.subject, q.chosen.decision) for q in self.questions]))


class Following(Planner):
    """Takes the decisions of a plan, one after another; no machine is asked.

    Programs that are the same but for names have the same plans: the plan's subjects stand for those of the program in the order
    in which they come up.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._next = 0
        self._subjects: dict[str, str] = {PROGRAM: PROGRAM}

    @property
    def is_grid(self) -> bool:
        """Whether the plan has decisions that only grids ask for."""
        return any(step.decision.of_grids for step in self._plan.steps)

    def offers(self, kind: type[Decision], on: Callable[[Target], bool]) -> bool:
        """Tells whether the plan's next decision is of *kind*."""
        return self._next < len(self.plan.steps) and isinstance(self.plan.steps[self._next].decision, kind)

    @property
    def plan(self) -> Plan:
        """The plan that is followed."""
        return self._plan

    def decide(self, subject: str, kind: type[D], candidates: Candidates[D], accept: Accept[D] = lambda _: True) -> D:
        """Returns the plan's next decision; raises `ScheduleError` where that is about something else, or not accepted."""
        decision = self._next_of(subject, kind)
        if not accept(decision):
            raise ScheduleError(f"the plan's `{subject}: {decision}` may not stand here", hint=_MAKE_ANEW)
        return decision

    def decide_jointly(self, subjects: Sequence[str], kind: type[D], solve: SolveJointly) -> list[D]:
        """Returns the plan's next decisions, one for each of *subjects*."""
        return [self._next_of(subject, kind) for subject in subjects]

    def _next_of(self, subject: str, kind: type[D]) -> D:
        step = self.plan.steps[self._next] if self._next < len(self.plan.steps) else None
        if step is None or not self._is_of(step, subject) or not isinstance(step.decision, kind):
            found = f"its step {self._next + 1} is `{step}`" if step is not None else "it ends before that"
            raise ScheduleError(
                f"the plan is of another program: {kind.__name__} of {subject} is to be decided, and {found}",
                hint=_MAKE_ANEW,
            )
        self._next += 1
        return step.decision

    def _is_of(self, step: Step, subject: str) -> bool:
        """Tells whether *step* is about *subject*; the first step about a name of the plan binds it to a subject."""
        if step.subject not in self._subjects and subject not in self._subjects.values():
            self._subjects[step.subject] = subject
        return self._subjects.get(step.subject) == subject

    def finish(self) -> None:
        """Raises `ScheduleError` if the plan has decisions that nobody asked for."""
        if self._next < len(self.plan.steps):
            raise ScheduleError(
                f"the plan is of another program: nothing asks for its step {self._next + 1}, `{self.plan.steps[self._next]}`",
                hint=_MAKE_ANEW,
            )
