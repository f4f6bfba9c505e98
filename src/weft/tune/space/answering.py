"""A planner that answers questions by given decisions, and what they leave open by the cheapest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from weft.cost import Accept, Candidate, Candidates, Choosing, D, Decision, Question, SolveJointly, cheapest
from weft.targets import Target
from weft.tune.space.knob import Address


class Answering(Choosing):
    """Answers by *answers* where they are among a question's candidates, else by the cheapest; `asked` has all questions.

    A decision of the kinds in *free* does not depend on others: it may be taken without listing the candidates again.
    """

    def __init__(
        self, machine: Target, answers: Mapping[Address, Decision], free: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(machine)
        self.answers = answers
        self.free = free
        self.asked: list[Address] = []
        self._count: Counter[tuple[str, str]] = Counter()

    def decide(self, subject: str, kind: type[D], candidates: Candidates[D], accept: Accept[D] = lambda _: True) -> D:
        """Returns the given decision if it may be taken here, else the cheapest."""
        address = self._address(subject, kind)
        answer = self.answers.get(address)
        if isinstance(answer, kind) and kind.__name__ in self.free and accept(answer):
            taken = Candidate(answer, 0.0)
            return self._noted(Question(subject, (taken,), taken), kind)
        self.choose = _Preferring(answer)
        return super().decide(subject, kind, candidates, accept)

    def decide_jointly(self, subjects: Sequence[str], kind: type[D], solve: SolveJointly) -> list[D]:
        """Returns the cheapest decisions: those of a graph are not knobs of a kernel."""
        self.choose = cheapest
        return super().decide_jointly(subjects, kind, solve)

    def _address(self, subject: str, kind: type[Decision]) -> Address:
        number = self._count[subject, kind.__name__]
        self._count[subject, kind.__name__] += 1
        self.asked.append((subject, kind.__name__, number))
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
