"""The space of a program's plans: a point has an index for each knob."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import log2, prod
from typing import Any, Final, TypeVar

import numpy as np

from weft.cost import (
    Address,
    Answering,
    CacheTile,
    Decision,
    InnerOrder,
    Order,
    OuterOrder,
    Parallel,
    Plan,
    ReduceOrder,
    ReduceTile,
    RegisterTile,
    Rule,
    Step,
    Tile,
    addressed,
)
from weft.loop import Program
from weft.schedule import Schedule, carry_out
from weft.targets import Target
from weft.tune.explore import KnobSpace, Rng, alike, beside
from weft.tune.features import Bools, Features, Floats, Ints, NestBatch, features_of, nests_of_programs, with_decisions
from weft.tune.space.find_knobs import CarryOut, find_knobs, numbers_by_field, numbers_in
from weft.tune.space.tiled_nests import TILINGS, TiledBlock, find_tiled_block

D = TypeVar("D", bound=Decision)
SKETCHED: Final[tuple[type[Decision], ...]] = (RegisterTile, CacheTile, OuterOrder, InnerOrder, ReduceTile, ReduceOrder)
FAR: Final = 8.0
"""How much a number that one of two decisions lacks makes them differ, in factors of two."""

MUTATIONS: Final = 4
"""How often a point is changed again whose change has no effect."""

SHOWN: Final = frozenset({*SKETCHED, Tile, Order, Rule})
"""Decisions that loops show."""


class PlanSpace(KnobSpace):
    """All plans of *program* on *machine* that have the decisions *fixed*; *schedule* carries them out, the rules or a template.

    Any point is valid: a decision that a program cannot take where others are as they are gives way to the cheapest. Knobs that
    are not asked for there have their default in all points that are drawn, see `canonical`.
    """

    def __init__(
        self, program: Program, machine: Target, fixed: Iterable[Step] = (), schedule: CarryOut = carry_out
    ) -> None:
        self.program = program
        self.machine = machine
        self._carry_out = schedule
        self.fixed: Mapping[Address, Decision] = addressed(fixed)
        asked, self._branches = find_knobs(program, machine, self.fixed, schedule)
        self.settled = {**self.fixed, **{k.address: k.domain[0] for k in asked if len(k.domain) == 1}}
        self.knobs = tuple([k for k in asked if len(k.domain) > 1])
        super().__init__(tuple([len(k.domain) for k in self.knobs]))

    @cached_property
    def count(self) -> int:
        """How many points there are, each of another plan: knobs that have no effect have their default, see `canonical`."""
        deciding = sorted({n for conditions, _ in self._conditions for n, _ in conditions})
        ways = [self.sizes[n] for n in deciding]
        points = np.tile(self.default, (prod(ways), 1))
        points[:, deciding] = np.indices(ways).reshape(len(ways), prod(ways)).T
        in_effect = self._in_effect(points)
        distinct = (in_effect | (points == self.default)).all(axis=1)
        others = np.where(in_effect, self.sizes, 1)
        others[:, deciding] = 1
        return sum(prod(row) for row in others[distinct].tolist())

    @cached_property
    def default(self) -> Ints:
        """The point of the plan that is taken without a search."""
        return np.array([k.default for k in self.knobs], np.int64)

    @cached_property
    def near(self) -> tuple[Ints, ...]:
        """For each knob the alternatives that are like each of its own; of several numbers, two for each."""
        return tuple([_near(k.domain) for k in self.knobs])

    def sample(self, rng: Rng, n: int) -> Ints:
        """Returns *n* points, each knob drawn evenly."""
        return self.canonical(super().sample(rng, n))

    def mutate(self, points: Ints, rng: Rng) -> Ints:
        """Returns neighbours of *points*, in which one or two knobs that are asked for differ."""
        found = self.canonical(super().mutate(points, rng))
        for _ in range(MUTATIONS):
            same = (found == points).all(axis=1)
            if not same.any():
                break
            found[same] = self.canonical(super().mutate(points[same], rng))
        return found

    def canonical(self, points: Ints) -> Ints:
        """Returns *points* with the default for knobs that have no effect, so that a plan has one point."""
        return np.where(self._in_effect(points), points, self.default.reshape(1, -1))

    def _in_effect(self, points: Ints) -> Bools:
        """Tells for each knob of each of *points* whether it is asked for there; all are where that isn't known."""
        relevant = np.zeros(points.shape, np.bool_)
        for conditions, asked in self._conditions:
            met = np.ones(len(points), np.bool_)
            for knob, value in conditions:
                met &= points[:, knob] == value
            relevant |= met[:, None] & asked[None, :]
        unknown = np.logical_not(relevant.any(axis=1))
        return relevant | unknown.reshape(-1, 1)

    @cached_property
    def _conditions(self) -> list[tuple[list[tuple[int, int]], Bools]]:
        """For each branch the values of knobs that lead to it, and the knobs that are asked for there."""
        number = {k.address: n for n, k in enumerate(self.knobs)}
        found = []
        for branch in self._branches:
            chosen = [(number[a], d) for a, d in branch.choices.items() if a in number]
            conditions = [(n, self.knobs[n].domain.index(d)) for n, d in chosen]
            found.append((conditions, np.array([k.address in branch.asked for k in self.knobs], np.bool_)))
        return found

    def open_plan(self, point: Sequence[int] | Ints) -> Plan:
        """Returns the decisions of *point*; those that its program does not ask for have no effect."""
        chosen = {k.address: k.domain[i] for k, i in zip(self.knobs, point, strict=True)}
        answers = {**self.fixed, **chosen}
        return Plan(tuple([Step(subject, decision) for (subject, _, _), decision in answers.items()]))

    def schedule(self, point: Sequence[int] | Ints) -> tuple[Schedule, Plan]:
        """Returns the program scheduled by *point*, and its plan without gaps."""
        planner = Answering(self.machine, addressed(self.open_plan(point).steps))
        return self._carry_out(self.program, planner), planner.plan

    def point_of(self, plan: Plan) -> Ints:
        """Returns the point whose knobs are as *plan* has them; those that it says nothing of have their default."""
        answers, point = addressed(plan.steps), self.default.copy()
        for n, k in enumerate(self.knobs):
            decision = answers.get(k.address)
            if decision in k.domain:
                point[n] = k.domain.index(decision)
        return point

    def nearest_point(self, plan: Plan) -> Ints:
        """Returns the point that is the nearest to *plan*, which may be of the same loops with other sizes.

        A decision that is no alternative here, such as a tile that the extent can't be cut to, gives way to the one of the same
        kind whose numbers differ by the least factors.
        """
        answers, point = addressed(plan.steps), self.point_of(plan)
        for n, k in enumerate(self.knobs):
            decision = answers.get(k.address)
            if decision is not None and decision not in k.domain:
                point[n] = min(range(len(k.domain)), key=lambda i, d=decision: apart(k.domain[i], d))  # type: ignore[misc]
        return point

    @cached_property
    def tiled(self) -> TiledBlock | None:
        """The block that is tiled, of several the one with the most work; None if there is none."""
        return find_tiled_block(self.program, self.machine) if self._carry_out is carry_out else None

    def features(self, points: Ints) -> Features:
        """Returns the features of *points*: of loops that follow from their decisions alone, and of the decisions themselves.

        Where no rule tiles, the loops are those of the default plan, so that the decisions tell points apart.
        """
        rules = np.array([self._rule(p) for p in points])
        rows = {str(rule): np.flatnonzero(rules == rule) for rule in np.unique(rules)}
        nests = {rule: self.nests(points[r]) for rule, r in rows.items()}
        described = [rule for rule in rows if rule]
        made = [features_of(NestBatch.joined([nests[r] for r in described]), self.machine)] if described else []
        if "" in nests:
            made.append(with_decisions(self._default_features, nests[""]))
        order = np.concatenate([rows[rule] for rule in (*described, *nests.keys() - described)])
        return Features.joined(made).take(np.argsort(order))

    @cached_property
    def _default_features(self) -> Features:
        """The features of the default plan's loops."""
        return features_of(self._default_nest, self.machine)

    def _rule(self, point: Ints) -> str:
        """Returns the rule that the tiled block has at *point*, if its loops follow from the decisions alone."""
        found = None if self.tiled is None else self._decision(point, Rule)
        return found.name if found is not None and found.name in TILINGS else ""

    def nests(self, points: Ints) -> NestBatch:
        """Returns the loops of *points*, which have one rule, around the block that is tiled, else the one of most work."""
        rule = self._rule(points[0])
        hidden = np.zeros((len(points), len(self._names)), np.float32)  # all that is told of a space without knobs
        for n, table in enumerate(self._numbers):
            hidden += table[points[:, n]]
        if self.tiled is None or not rule:
            return replace(self._default_nest.take(np.zeros(len(points), np.int64)), **self._told(hidden))
        threads = np.array([d.loops if (d := self._decision(p, Parallel)) else 0 for p in points], np.int64)
        if rule == "sketch":
            tilings = self.tiled.sketch({k: self._table(points, k) for k in SKETCHED}, threads)
        else:
            orders = [self._decision(p, Order) or Order(by_rows=False) for p in points]
            tilings = self.tiled.tiles(self._table(points, Tile), orders, threads)
        return replace(self.tiled.nests(tilings), **self._told(hidden))

    def keys(self, points: Ints) -> list[bytes]:
        """Returns a key for each point, the same for points whose loops and other decisions are the same."""
        keys = [b""] * len(points)
        rules = np.array([self._rule(p) for p in points])
        others = [n for n, k in enumerate(self.knobs) if type(k.domain[0]) not in SHOWN]
        for rule in np.unique(rules):
            rows = np.flatnonzero(rules == rule)
            told = (
                points[rows]
                if not rule
                else np.concatenate([points[rows][:, others], self._loops(points[rows])], axis=1)
            )
            for row, parts in zip(rows, np.ascontiguousarray(told, np.int64), strict=True):
                keys[row] = str(rule).encode() + parts.tobytes()
        return keys

    def _loops(self, points: Ints) -> Ints:
        """Returns the loops of *points* that repeat, in order, as numbers."""
        nests = self.nests(points)
        repeats = nests.extent > 1
        order = np.argsort(~repeats, axis=1, kind="stable")
        levels = np.stack([nests.axis + 1, nests.extent, nests.step, nests.kind], axis=2) * repeats[:, :, None]
        return np.take_along_axis(levels, order[:, :, None], axis=1).reshape(len(points), -1)

    @cached_property
    def _default_nest(self) -> NestBatch:
        return nests_of_programs([self.schedule(self.default)[0].program], fma=self.machine.isa.fma)

    def _told(self, hidden: Floats) -> dict[str, Any]:
        return {"decisions": hidden, "decision_names": self._names}

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The names of the numbers of decisions that loops do not show."""
        kinds = {type(d): d for k in self.knobs for d in k.domain if type(d) not in SHOWN}
        return tuple([f"{kind.__name__}.{field}" for kind, d in kinds.items() for field in _numbers_of(d)])

    @cached_property
    def _numbers(self) -> list[Floats]:
        """The numbers of each decision of each knob, in the columns that `_names` names."""
        tables = []
        for k in self.knobs:
            table = np.zeros((len(k.domain), len(self._names)), np.float32)
            for row, d in enumerate(k.domain):
                for field, value in _numbers_of(d).items() if type(d) not in SHOWN else ():
                    table[row, self._names.index(f"{type(d).__name__}.{field}")] = value
            tables.append(table)
        return tables

    def _table(self, points: Ints, kind: type[D]) -> list[D]:
        return [d for p in points if (d := self._decision(p, kind)) is not None]

    def _decision(self, point: Ints, kind: type[D]) -> D | None:
        """Returns the decision of *kind* about the tiled block at *point*; None if it has none."""
        look_up = self._look_ups.get(kind.__name__)
        found = None if look_up is None else look_up(point)
        return found if isinstance(found, kind) else None

    @cached_property
    def _look_ups(self) -> Mapping[str, Callable[[Ints], Decision]]:
        """The functions that give the decisions about the tiled block, by kind: a knob's, or a fixed one."""
        subject = "" if self.tiled is None else self.tiled.block.name
        found: dict[str, Callable[[Ints], Decision]] = {}
        for (about, kind, number), decision in self.settled.items():
            if about == subject and number == 0:
                found[kind] = lambda _, d=decision: d  # type: ignore[misc]
        for n, knob in enumerate(self.knobs):
            if knob.address[0] == subject and knob.address[2] == 0:
                found[knob.address[1]] = lambda p, n=n, k=knob: k.domain[p[n]]  # type: ignore[misc]
        return found


def apart(a: Decision, b: Decision) -> float:
    """Returns how much two decisions of one kind differ: logarithms of ratios of numbers, and one for any other difference."""
    found = 0.0
    for name, value in vars(a).items():
        x, y = (v if isinstance(v, tuple) else (v,) for v in (value, getattr(b, name, None)))
        found += abs(len(x) - len(y)) * FAR
        for p, q in zip(x, y, strict=False):
            are_sizes = all(isinstance(v, int | float) and not isinstance(v, bool) and v > 0 for v in (p, q))
            found += abs(log2(p / q)) if are_sizes else float(p != q)
    return found


def _near(domain: Sequence[Decision]) -> Ints:
    """Returns the alternatives of *domain* that are like each; those of one number, and words, stand in order."""
    numbers = [numbers_in(d) for d in domain]
    width = len(numbers[0])
    if width < 2 or any(len(n) != width for n in numbers):
        return beside(len(domain))
    return alike(np.array(numbers), 2 * width)


def _numbers_of(decision: Decision) -> dict[str, float]:
    """Returns the numbers and truths of a decision by their fields; of several in a field their sum."""
    return {name: sum(numbers) for name, numbers in numbers_by_field(decision).items() if numbers}
