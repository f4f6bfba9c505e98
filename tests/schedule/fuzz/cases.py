"""One case of the fuzzing: a random computation, random steps, and whether what came of them is right."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.schedule.fuzz.checking import check_everything
from tests.schedule.fuzz.computations import computation, random_family
from tests.schedule.fuzz.steps import STEPS
from tests.schedule.programs import Case

from weft.ir import Var
from weft.loop import For, Program, statements
from weft.schedule import BlockRef, LoopRef, Schedule, blocks_in, loop_path
from weft.schedule.cursors.tree import block_path, loops_on
from weft.support.errors import ScheduleError

LONGEST = 12
"""The most steps that a case tries."""


@dataclass(frozen=True)
class Origin:
    """Where a loop comes from: the *n*-th result of step *step*, or loop of the computation if that is -1, or around *block*."""

    step: int
    n: int
    block: str | None = None


@dataclass(frozen=True)
class Call:
    """An accepted step, with origins in the place of loops, so that it can be repeated where other steps are left out."""

    number: int
    name: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]


@dataclass
class Tally:
    """How often each primitive was tried, accepted, refused, and failed by another error."""

    tried: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        for mine, more in zip(self._counts(), other._counts(), strict=True):
            mine.update(more)

    def _counts(self) -> tuple[Counter[str], ...]:
        return self.tried, self.accepted, self.refused, self.broken


class Enough(Exception):
    """As many steps were tried as a case may have."""


class Watched(Schedule):
    """A schedule that counts its steps and remembers them."""

    def __init__(self, program: Program, limit: int = 1000) -> None:
        super().__init__(program)
        self.tally, self.calls, self.left = Tally(), list[Call](), limit
        first = [f.var for f in statements(program.entry.body) if isinstance(f, For)]
        self.origins = {v: Origin(-1, n) for n, v in enumerate(first)}

    def apply(self, name: str, /, *arguments: Any, **keywords: Any) -> Any:
        """Applies a primitive; raises `Enough` instead when there were as many as there may be."""
        if not self.left:
            raise Enough
        self.left -= 1
        self.tally.tried[name] += 1
        call = Call(len(self.calls), name, tuple(self._origin(list(arguments))), self._origin(keywords))
        before = self.program
        try:
            made = super().apply(name, *arguments, **keywords)
        except ScheduleError:
            if self.program is not before:
                raise AssertionError(f"{name} was refused, but changed the program") from None
            self.tally.refused[name] += 1
            raise
        except Exception:
            self.tally.broken[name] += 1
            self.calls.append(call)
            self._add(name, [self._introduced(a) for a in arguments], keywords, None)
            raise
        self.tally.accepted[name] += 1
        for n, ref in enumerate(made if isinstance(made, tuple) else (made,)):
            if isinstance(ref, LoopRef):
                self.origins.setdefault(ref.var, Origin(call.number, n))
        self.calls.append(call)
        return made

    def _origin(self, value: Any) -> Any:
        match value:
            case LoopRef(var):
                return self.origins.get(var) or self._place(var)
            case list() | tuple():
                return [self._origin(v) for v in value]
            case dict():
                return {k: self._origin(v) for k, v in value.items()}
        return value

    def _place(self, var: Var) -> Origin | LoopRef:
        """The place of a loop that no step has returned: how deep it is around a block."""
        inside = blocks_in(loop_path(self.function, LoopRef(var))[-1])
        if not inside:
            return LoopRef(var)
        around = loops_on(block_path(self.function, BlockRef(inside[0].name)))
        return Origin(-1, next((n for n, f in enumerate(around) if f.var is var), 0), inside[0].name)


def repeat(s: Watched, calls: Sequence[Call]) -> None:
    """Makes some of the steps of another schedule in *s*; raises `ScheduleError` where one isn't possible without the others."""
    loops: dict[tuple[int, int], LoopRef] = {(o.step, o.n): LoopRef(v) for v, o in s.origins.items()}

    def find(value: Any) -> Any:
        match value:
            case Origin(_, n, str(block)):
                around = loops_on(block_path(s.function, BlockRef(block)))
                return LoopRef(around[n].var) if n < len(around) else LoopRef(Var("none"))
            case Origin(step, n):
                return loops.get((step, n), LoopRef(Var("none")))
            case list():
                return [find(v) for v in value]
        return value

    for c in calls:
        made = s.apply(c.name, *[find(a) for a in c.arguments], **{k: find(v) for k, v in c.keywords.items()})
        for n, ref in enumerate(made if isinstance(made, tuple) else (made,)):
            if isinstance(ref, LoopRef):
                loops[c.number, n] = ref


@dataclass(frozen=True)
class Failure:
    """What went wrong, the computation, and the steps that lead there."""

    number: int
    family: str
    seed: int
    error: str
    calls: tuple[Call, ...]
    trace: str

    def script(self) -> str:
        """A Python program that fails in the same way."""
        return "\n".join(
            [
                "from tests.schedule.fuzz.checking import check_everything",
                "from tests.schedule.fuzz.computations import computation",
                "from weft.schedule import Schedule",
                "",
                f"case = computation({self.family!r}, {self.seed})",
                "s = Schedule(case.program)",
                self.trace,
                "check_everything(case, s.program)",
            ]
        )


@dataclass(frozen=True)
class Outcome:
    """The steps of one case, and what failed, if anything did."""

    tally: Tally
    failure: Failure | None


def drawn(campaign: int, number: int) -> tuple[str, int, random.Random]:
    """The family and the seed of the computation of a case, and the source of its steps."""
    r = random.Random(f"{campaign} {number}")
    return random_family(r), r.randrange(10**6), r


def run_case(campaign: int, number: int, check: Callable[[Case, Program], None] = check_everything) -> Outcome:
    """Makes up and tries case *number* of a *campaign*."""
    family, seed, r = drawn(campaign, number)
    case = computation(family, seed)
    s = Watched(case.program, r.randint(2, LONGEST))
    try:
        _try_steps(s, r, "tensorize" if family == "dot_product" and r.random() < 0.5 else None)
        check(case, s.program)
    except Exception as e:
        error = f"{type(e).__name__}: {e}"
        return Outcome(s.tally, Failure(number, family, seed, error, tuple(s.calls), str(s.trace)))
    return Outcome(s.tally, None)


def _try_steps(s: Watched, r: random.Random, opening: str | None) -> None:
    """Tries random steps, the *opening* first, until there were as many as there may be."""
    names, weights = list(STEPS), [step.weight for step in STEPS.values()]
    while s.left:
        left = s.left
        name, opening = opening or r.choices(names, weights)[0], None
        try:
            STEPS[name].move(s, r)
        except ScheduleError:
            s.left -= s.left == left  # a step that found nothing to be tried on counts, so that this ends
        except Enough:
            return
