"""The space of a program's plans: a point has an index for each knob."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod

import numpy as np

from weft.cost import Address, Answering, Decision, Parallel, Plan, Rule, Step, addressed
from weft.loop import Program
from weft.schedule import Schedule, carry_out
from weft.targets import Target
from weft.tune.explore import KnobSpace
from weft.tune.features import Features, Ints, features_of, nests_of_programs
from weft.tune.space.find_knobs import find_knobs
from weft.tune.space.tiled_nests import TILINGS, TiledBlock, find_block


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

    def features(self, points: Ints) -> Features:
        """Returns the features of *points*: from their decisions where rules tile, else from the programs scheduled by them."""
        made: list[Features] = []
        where: list[Ints] = []
        for rule, rows in self._by_rule(points).items():
            where.append(rows)
            made.append(self._features(rule, points[rows]))
        found = Features.joined(made)
        return found.take(np.argsort(np.concatenate(where)))

    def _by_rule(self, points: Ints) -> Mapping[str, Ints]:
        """Returns the rows of *points* by the rule that their main block has; the rule is empty where nothing is tiled."""
        rules = [self._decision(p, (self.main, "Rule", 0)) for p in points]
        names = np.array([r.name if isinstance(r, Rule) and r.name in TILINGS else "" for r in rules])
        return {str(name): np.flatnonzero(names == name) for name in np.unique(names)}

    def _features(self, rule: str, points: Ints) -> Features:
        if not rule or self.tiled is None:
            programs = [self.schedule(p)[0].program for p in points]
            return features_of(nests_of_programs(programs, fma=self.machine.isa.fma), self.machine)
        decide = self._table(points)
        threads = np.array([d.loops if isinstance(d, Parallel) else 0 for d in decide(Parallel)], np.int64)
        if rule == "sketch":
            tilings = self.tiled.sketch({k: decide(k) for k in SKETCHED}, threads)
        else:
            tilings = self.tiled.tiles(decide(Tile), decide(Order), threads)
        return features_of(self.tiled.nests(tilings, *self._others(points)), self.machine)
