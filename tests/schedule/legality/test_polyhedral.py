"""The legality checks against exact analysis: nothing wrong is accepted, and little that is right is refused."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.schedule.fuzz.computations import computation
from tests.schedule.fuzz.steps import STEPS
from tests.schedule.polyhedral import Model, NotAffine, same_sources
from tests.schedule.programs import CASES, bias_relu, matmul, recurrence
from tests.schedule.unchecked import CHECKS, unchecked

from weft.loop import Alloc, Function, Program, Stmt, buffers_of, parse_program, statements, verify
from weft.schedule import LoopRef, Schedule, loop_path
from weft.schedule.legality.buffer_visibility import check_scopes
from weft.support.errors import ScheduleError, WeftError

KINDS = ("parallel", "vectorize", "bind")
MOVES = (
    "split",
    "fuse",
    "reorder",
    "tile",
    "unroll",
    "partition",
    "add_unit_loop",
    "compute_at",
    "reverse_compute_at",
    "compute_root",
    "decompose_reduction",
)
WEIGHTS = {**dict.fromkeys((*KINDS, *MOVES), 2), "reorder": 5, "compute_at": 6, "reverse_compute_at": 6}
FALSE_REJECTS = 0.05
"""The largest part of the legal steps that may be refused, of the primitives in `KINDS` and `CHECKS`."""


class Proposed(Exception):
    """A step that was chosen, and not made."""

    def __init__(self, name: str, arguments: tuple[Any, ...]) -> None:
        super().__init__(name)
        self.name, self.arguments = name, arguments


class Proposing(Schedule):
    """A schedule on which the first step ends in telling which it is."""

    def apply(self, name: str, /, *arguments: Any, **keywords: Any) -> Any:
        raise Proposed(name, (*arguments, *keywords.values()))


@dataclass
class Verdicts:
    """How the checks and the exact analysis agree, by primitive."""

    right: Counter[str] = field(default_factory=Counter)  # legal, and accepted
    refused: Counter[str] = field(default_factory=Counter)  # illegal, and refused
    strict: Counter[str] = field(default_factory=Counter)  # legal, but refused
    reasons: Counter[str] = field(default_factory=Counter)
    unsound: list[str] = field(default_factory=list)

    def add(self, name: str, accepted: bool, legal: bool, reason: str) -> None:
        counts = (self.right if accepted else self.strict) if legal else self.refused
        if accepted and not legal:
            self.unsound.append(reason)
            return
        counts[name] += 1
        if legal and not accepted:
            self.reasons[f"{name}: {reason}"] += 1

    def share(self) -> float:
        """The part of the legal steps that were refused, of those primitives whose refusals are judged, too."""
        right = sum(n for name, n in self.right.items() if name in KINDS or name in CHECKS)
        return self.strict.total() / (right + self.strict.total())

    def __str__(self) -> str:
        names = sorted({*self.right, *self.refused, *self.strict})
        rows = [f"{n:22}{self.right[n]:7}{self.strict[n]:7}{self.refused[n]:7}" for n in names]
        head = f"{'':22}{'right':>7}{'strict':>7}{'illegal':>8}"
        reasons = [f"{n:5} {reason}" for reason, n in self.reasons.most_common(12)]
        return "\n".join([head, *rows, f"false rejects: {self.share():.1%} of the legal steps", *reasons])


def proposal(program: Program, r: random.Random) -> Proposed | None:
    """A random step that could be tried on *program*."""
    name = r.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    with suppress(ScheduleError):
        try:
            STEPS[name].move(Proposing(program), r)
        except Proposed as p:
            return p
    return None


def is_legal_kind(model: Model, fn: Function, name: str, loop: LoopRef) -> bool:
    """Whether iterations may run apart: each with memory of its own for what is used in the loop only, or as vectors."""
    carried = model.carried(loop.var)
    if name == "vectorize" or not carried:
        return not carried
    if carried & model.carried_flow(loop.var, anywhere=True):
        return False
    path = loop_path(fn, loop)
    local = {s.buffer for s in statements(fn.body) if isinstance(s, Alloc)}
    outside = _used_outside(fn.body, path[-1])
    return all(any(b.name == name for b in local) and name not in outside for name in carried)


def _used_outside(root: Stmt, loop: Stmt) -> set[str]:
    """The names of the buffers that are used under *root*, but not only in *loop*."""
    found: set[str] = set()
    stack = [root]
    while stack:
        s = stack.pop()
        if s is loop:
            continue
        inner = [c for c in s.children() if isinstance(c, Stmt)]
        stack += inner
        if not inner:
            found.update(b.name for b in buffers_of(s))
    return found


def judge(model: Model, program: Program, p: Proposed, verdicts: Verdicts) -> Program:
    """Compares what the checks say of a step with what is exact; returns the program to go on with."""
    s = Schedule(program)
    try:
        s.apply(p.name, *p.arguments)
        accepted, reason = True, f"{s.trace}\n{program}\nbecomes\n{s.program}"
    except ScheduleError as e:
        accepted, reason = False, str(e).split("\n")[0].split("is not legal: ")[-1]
    if "already" in reason and not accepted:  # a step that asks for what is the case makes no difference
        return program
    if p.name in KINDS:
        if s.program is not program or "combines" in reason or "iteration" in reason:
            verdicts.add(p.name, accepted, is_legal_kind(model, program.entry, p.name, p.arguments[0]), reason)
        return program
    after = s.program.entry if accepted else _refused(program, p)
    if after is None or after is program.entry:
        return program
    with suppress(NotAffine):
        verdicts.add(p.name, accepted, same_sources(model, Model(after)), reason)
    return s.program


def _refused(program: Program, p: Proposed) -> Function | None:
    """What a refused step would have made, if that is a program."""
    made = unchecked(program.entry, p.name, p.arguments)
    if made is None:
        return None
    try:
        check_scopes(made)
        verify(program.with_function(made))
    except WeftError:
        return None
    return made


def judged(program: Program, r: random.Random, steps: int, verdicts: Verdicts) -> None:
    """Judges *steps* random steps, each on the outcome of those before."""
    model = Model(program.entry)
    for _ in range(steps):
        p = proposal(program, r)
        if p is None:
            continue
        made = judge(model, program, p, verdicts)
        if made is not program:
            program = made
            with suppress(NotAffine):
                model = Model(program.entry)
                model.sources({})
                continue
            return


def programs() -> list[Callable[[], Program]]:
    """Programs whose indices are sums of loops, in constant sizes."""
    known = [f for n, f in CASES.items() if not n.startswith("symbolic") and n not in ("gather", "conv2d", "pool")]
    small = [lambda f=f: f().program for f in known]
    made = [lambda n=n: computation("pipeline", n).program for n in range(12)]
    return [*small, *made]


def sampled(programs: Sequence[Callable[[], Program]], rounds: int, steps: int) -> Verdicts:
    """The verdicts on random steps for each of *programs*."""
    verdicts = Verdicts()
    for n, make in enumerate(programs):
        for k in range(rounds):
            with suppress(NotAffine):
                judged(make(), random.Random(f"polyhedral {n} {k}"), steps, verdicts)
    assert not verdicts.unsound, "\n\n".join(verdicts.unsound[:3])
    return verdicts


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", range(4))
def test_nothing_wrong_is_accepted(part: int) -> None:
    verdicts = sampled(programs()[part::4], 1, 12)
    assert verdicts.right.total() > 20


@pytest.mark.slow
def test_little_that_is_right_is_refused() -> None:
    verdicts = sampled(programs(), 3, 30)
    print(verdicts)
    assert verdicts.share() <= FALSE_REJECTS, str(verdicts)
    assert verdicts.refused.total() > 50


def test_the_analysis_tells_right_from_wrong() -> None:
    """A block that runs before what it reads is made, one that runs too early in its reduction, and sums that count twice."""
    s = Schedule(bias_relu().program)
    c, d = s.block("C"), s.block("D")
    model, loops = Model(s.function), s.loops(c)
    for name, arguments in (("reverse_compute_at", (d, loops[2])), ("compute_at", (d, loops[0]))):
        made = unchecked(s.function, name, arguments)
        assert made is None or not same_sources(model, Model(made))
    moved = unchecked(s.function, "reverse_compute_at", (d, loops[1]))
    assert moved is not None
    assert same_sources(model, Model(moved))


DIVIDED = """
def main(X: f32[4, 6], B: f32[4, 6]):
    for i in range(0, 2):
        for u in range(0, 2):
            for f in range(0, 32):
                with block("B", vi=spatial(4, i * 3 + f // 8), vj=spatial(6, f % 8), where=(
                        i * 3 + f // 8 < 4 and f % 8 < 6 and u < 1 and f // 8 < 3)):
                    B[vi, vj] = X[vi, vj]
"""


def test_the_analysis_finds_all_sources_where_indices_are_divided() -> None:
    model = Model(parse_program(DIVIDED).entry)
    found = model.flow.range().unwrap().range()
    assert found.is_equal(model.writes(updates=False).range())


def test_what_a_loop_carries() -> None:
    s = Schedule(recurrence().program)
    model = Model(s.function)
    t, i = s.loops(s.block("S"))
    *_, k = s.loops(s.block("G"))
    assert model.carried(t.var) == {"S"}
    assert model.carried_flow(t.var) == {"S"}
    assert model.carried(i.var) == set()
    assert model.carried(k.var) == {"G"}


def test_copies_keep_the_instances_of_their_block() -> None:
    s = Schedule(matmul().program)
    before = Model(s.function)
    s.partition(s.loops(s.block("C"))[2], [1])
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    assert same_sources(before, Model(s.function))


def test_updates_that_run_twice_are_noticed() -> None:
    s = Schedule(matmul().program)
    before = Model(s.function)
    text = str(s.program).replace("for i in range(0, 5):", "for twice in range(0, 2):\n     for i in range(0, 5):")
    again = parse_program(text.replace("vk=reduce(3, k)", "vk=reduce(3, k + 0 * twice)"))
    assert same_sources(before, Model(again.entry))  # each run starts anew
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    split = (
        str(s.program)
        .replace("for k in range(0, 3):", "for k in range(0, 6):")
        .replace("reduce(3, k)", "reduce(3, k // 2)")
    )
    assert not same_sources(before, Model(parse_program(split).entry))
