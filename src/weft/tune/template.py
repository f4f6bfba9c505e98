"""Templates: schedules of an expert's whose numbers are left open, as knobs with names.

    def matmul(s: Schedule, knobs: Knobs) -> None:
        i, j, k = s.loops(s.block("C"))
        i0, i1 = s.split(i, knobs.define_split("tile_i", s.extent(i), parts=2))
        ...
        s.reorder(knobs.define_reorder("order", [i0, j0, k]))
        if knobs.define_choice("unroll", [False, True]):
            s.unroll(i1)

    found = tune_template(program, matmul, trials=200)

After the templates of Chen et al., "Learning to optimize tensor programs" (2018), section 2. The questions of a template are
answered by the same planners as the questions of the rules, so that spaces, explorers and measurement are those of `weft tune`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import ClassVar, Final, TypeAlias, TypeVar

from weft.cost import Candidate, Decision, Planner
from weft.loop import Program
from weft.schedule import LoopRef, Schedule
from weft.support.errors import InputError
from weft.support.lazy_import import resolve

T = TypeVar("T")
Value: TypeAlias = bool | int | float | str

ANNOTATIONS: Final = ("none", "unroll", "vectorize", "parallel")
MOST_ORDERED: Final = 6
"""Loops that a template may ask for all orders of: 720."""


@dataclass(frozen=True)
class Split(Decision):
    """The extents that a loop is split into, the outermost first."""

    question = "how a loop is split"
    is_free: ClassVar[bool] = True
    factors: tuple[int, ...]


@dataclass(frozen=True)
class Reorder(Decision):
    """The order of loops, by their numbers."""

    question = "the order of loops"
    is_free: ClassVar[bool] = True
    order: tuple[int, ...]


@dataclass(frozen=True)
class Annotate(Decision):
    """How a loop is run: `none`, `unroll`, `vectorize` or `parallel`."""

    question = "how a loop is run"
    is_free: ClassVar[bool] = True
    kind: str


@dataclass(frozen=True)
class Choose(Decision):
    """One of an expert's alternatives."""

    question = "an alternative of a template"
    is_free: ClassVar[bool] = True
    value: Value


class Knobs:
    """The knobs of a template: each call defines one, and returns its value in the plan at hand. Names are the template's own."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def define_split(self, name: str, extent: int | None, parts: int, most: int | None = None) -> list[int | None]:
        """Returns the factors of a split of *extent* into *parts* loops, all inner ones dividing it, each at most *most*.

        The first is None, the number that `Schedule.split` finds out. Raises `InputError` for an extent that is not constant.
        """
        if extent is None or parts < 1:
            raise InputError(
                f"the knob {name!r} splits {extent} into {parts} loops", hint="split loops of constant extent"
            )
        found = self._planner.decide(
            name, Split, lambda _: [Candidate(Split(f), 0.0) for f in splits(extent, parts, most)]
        )
        return [None, *found.factors[1:]]

    def define_reorder(self, name: str, items: Sequence[T]) -> list[T]:
        """Returns *items* in one of their orders; raises `InputError` for more than `MOST_ORDERED`."""
        if len(items) > MOST_ORDERED:
            raise InputError(f"the knob {name!r} orders {len(items)} loops", hint=f"order at most {MOST_ORDERED}")
        orders = [Candidate(Reorder(o), 0.0) for o in permutations(range(len(items)))]
        return [items[n] for n in self._planner.decide(name, Reorder, lambda _: orders).order]

    def define_annotate(self, name: str, s: Schedule, loop: LoopRef, kinds: Sequence[str] = ANNOTATIONS) -> str:
        """Runs *loop* in one of the ways *kinds*, and returns which."""
        unknown = [k for k in kinds if k not in ANNOTATIONS]
        if unknown or not kinds:
            raise InputError(
                f"the knob {name!r} annotates by {unknown or 'nothing'}", hint=f"use {', '.join(ANNOTATIONS)}"
            )
        kind = self._planner.decide(name, Annotate, lambda _: [Candidate(Annotate(k), 0.0) for k in kinds]).kind
        if kind != "none":
            getattr(s, kind)(loop)
        return kind

    def define_choice(self, name: str, values: Sequence[Value]) -> Value:
        """Returns one of *values*, the first by default."""
        if not values:
            raise InputError(f"the knob {name!r} has no alternatives", hint="give at least one value")
        return self._planner.decide(name, Choose, lambda _: [Candidate(Choose(v), 0.0) for v in values]).value


Template: TypeAlias = Callable[[Schedule, Knobs], object]


def splits(extent: int, parts: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yields the ways to split *extent* into *parts* factors, the inner ones at most *most*; the first leaves it whole."""

    def inner(left: int, count: int) -> Iterator[tuple[int, ...]]:
        if count == 0:
            yield ()
            return
        for d in range(1, min(left, most or left) + 1):
            if left % d == 0:
                yield from ((*rest, d) for rest in inner(left // d, count - 1))

    for factors in inner(extent, parts - 1):
        yield (extent // prod(factors), *factors)


def carry_out_template(template: Template, program: Program, planner: Planner) -> Schedule:
    """Returns *program* scheduled by *template* with the answers of *planner*."""
    s = Schedule(program)
    template(s, Knobs(planner))
    return s


def name_of(template: Template) -> str:
    """Returns the name by which other processes import *template*; raises `InputError` for one that they can't."""
    module, name = getattr(template, "__module__", ""), getattr(template, "__qualname__", "")
    found = getattr(sys.modules.get(module), name, None)
    if module == "__main__" or found is not template:
        raise InputError(
            f"the template {name or template!r} can't be imported by the processes that build it",
            hint="define it at the top of a module of its own, not in __main__ or in a function",
        )
    return f"{module}:{name}"


def template_named(name: str) -> Template:
    """Returns the template that `name_of` named."""
    found: Template = resolve(name)
    return found
