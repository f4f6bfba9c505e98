"""A planner that answers some questions by given decisions, and the others by the cheapest: a plan with gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from weft.cost.plans.plan import Candidate, D, Decision, Step
from weft.cost.plans.planner import Accept, Candidates, Choosing, Question, SolveJointly, cheapest
from weft.targets import Target

Address: TypeAlias = tuple[str, str, int]
"""A question of a program: its subject, the name of the kind of decision, and which of several such it is."""


def addressed(steps: Iterable[Step]) -> dict[Address, Decision]:
    """Returns the decisions of a plan, or of a part of one, by the questions that they answer."""
    found: dict[Address, Decision] = {}
    count: Counter[tuple[str, str]] = Counter()
    for step in steps:
        about = step.subject, type(step.decision).__name__
        found[*about, count[about]] = step.decision
        count[about] += 1
    return found


class Answering(Choosing):
    """Answers by *answers* where they are among a question's candidates, else by the cheapest.

    `asked` has the questions in order. A decision that depends on no other (`Decision.is_free`) is taken without its candidates.
    """

    def __init__(self, machine: Target, answers: Mapping[Address, Decision]) -> None:
        super().__init__(machine)
        self.answers = answers
        self.asked: list[Address] = []
        self._count: Counter[tuple[str, str]] = Counter()

    def decide(self, subject: str, kind: type[D], candidates: Candidates[D], accept: Accept[D] = lambda _: True) -> D:
        """Returns the given decision if it may be taken here, else the cheapest."""
        answer = self.answers.get(self._address(subject, kind))
        if isinstance(answer, kind) and kind.is_free and accept(answer):
            taken = Candidate(answer, 0.0)
            return self._noted(Question(subject, (taken,), taken), kind)
        self.choose = _Preferring(answer)
        return super().decide(subject, kind, candidates, accept)

    def decide_jointly(self, subjects: Sequence[str], kind: type[D], solve: SolveJointly) -> list[D]:
        """Returns the cheapest decisions: those of a graph have no answers."""
        self.choose = cheapest
        return super().decide_jointly(subjects, kind, solve)

    def _address(self, subject: str, kind: type[Decision]) -> Address:
        about = subject, kind.__name__
        self.asked.append((*about, self._count[about]))
        self._count[about] += 1
        return self.asked[-1]


class _Preferring:
    """Chooses *answer* if it is a candidate, else the cheapest."""

    def __init__(self, answer: Decision | None) -> None:
        self.answer = answer

    def __call__(self, candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        if self.answer is not None:
            for c in candidates:
                if c.decision == self.answer:
                    return c
        return cheapest(candidates)
