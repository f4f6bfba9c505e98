"""The space of a program's plans: a point has an index for each knob."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod

import numpy as np

from weft.cost import Address, Answering, Decision, Plan, Step, addressed
from weft.loop import Program
from weft.schedule import Schedule, carry_out
from weft.targets import Target
from weft.tune.explore import KnobSpace
from weft.tune.features import Ints
from weft.tune.space.find_knobs import find_knobs


class PlanSpace(KnobSpace):
    """All plans of *program* on *machine* that have the decisions *fixed*.

    Any point is valid: a decision that a program cannot take where others are as they are gives way to the cheapest, so that two
    points may stand for one plan.
    """

    def __init__(self, program: Program, machine: Target, fixed: Iterable[Step] = ()) -> None:
        self.program = program
        self.machine = machine
        self.fixed: Mapping[Address, Decision] = addressed(fixed)
        self.knobs = find_knobs(program, machine, self.fixed)
        super().__init__(tuple([len(k.domain) for k in self.knobs]))

    @property
    def count(self) -> int:
        """How many points there are."""
        return prod(self.sizes)

    @cached_property
    def default(self) -> Ints:
        """The point of the plan that is taken without a search."""
        return np.array([k.default for k in self.knobs], np.int64)

    def open_plan(self, point: Sequence[int] | Ints) -> Plan:
        """Returns the decisions of *point*; those that its program does not ask for have no effect."""
        chosen = {k.address: k.domain[i] for k, i in zip(self.knobs, point, strict=True)}
        answers = {**self.fixed, **chosen}
        return Plan(tuple([Step(subject, decision) for (subject, _, _), decision in answers.items()]))

    def schedule(self, point: Sequence[int] | Ints) -> tuple[Schedule, Plan]:
        """Returns the program scheduled by *point*, and its plan without gaps."""
        planner = Answering(self.machine, addressed(self.open_plan(point).steps))
        return carry_out(self.program, planner), planner.plan

    def point_of(self, plan: Plan) -> Ints:
        """Returns the point whose knobs are as *plan* has them; knobs that it says nothing of, or that differ, have their default."""
        answers, point = addressed(plan.steps), self.default.copy()
        for n, k in enumerate(self.knobs):
            decision = answers.get(k.address)
            if decision in k.domain:
                point[n] = k.domain.index(decision)
        return point
