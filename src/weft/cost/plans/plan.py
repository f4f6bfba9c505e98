"""Decisions as values: the alternative chosen where a program's meaning leaves a choice, and the cost of each alternative.

A `Decision` is a frozen record, such as `Tile(rows=6, columns=1, width=64, outer_rows=1)`. A `Plan` is the decisions of a whole
program in the order in which they are made, one line each, and reads back from its text:

    *: VectorLength(bits=512)
    matmul: Rule(name='tiled')
    matmul: Tile(rows=6, columns=1, width=64, outer_rows=1)
"""

from __future__ import annotations

import ast
import re
from dataclasses import MISSING, dataclass, fields
from typing import ClassVar, Final, Generic, TypeVar

from weft.support.errors import ParseError

DECISIONS: Final[dict[str, type[Decision]]] = {}
"""The classes of decisions by name: defining a class registers it."""


@dataclass(frozen=True)
class Decision:
    """The base of all decisions: a dataclass of numbers, truths, names, and tuples of these; `repr` is its text."""

    question: ClassVar[str] = ""
    """The subject of the decision, in a few words."""

    is_free: ClassVar[bool] = False
    """Whether its candidates are right, and the same, whatever was decided before."""

    of_grids: ClassVar[bool] = False
    """Whether only programs for grids of threads ask for it."""

    def __init_subclass__(cls) -> None:
        DECISIONS[cls.__name__] = cls

    @property
    def is_plain(self) -> bool:
        """Whether it leaves the program as it is: each of its fields is false, zero or empty."""
        return not any(vars(self).values())


D = TypeVar("D", bound=Decision)


@dataclass(frozen=True)
class Candidate(Generic[D]):
    """A decision that may be taken, and the cycles that it is estimated to cost; only those of one question compare."""

    decision: D
    cycles: float


PROGRAM: Final = "*"
"""The subject of decisions about a program as a whole."""


def subject_of(name: str) -> str:
    """Returns *name*, which may hold any characters, as the subject of a line of a plan."""
    return re.sub(r"[^\w./-]+", "_", name) or "_"


@dataclass(frozen=True)
class Step:
    """A decision about *subject*: the name of a block or of a node, or `PROGRAM`."""

    subject: str
    decision: Decision

    def __str__(self) -> str:
        return f"{self.subject}: {self.decision}"


@dataclass(frozen=True)
class Plan:
    """All decisions of one program, in the order in which they are made."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "".join([f"{s}\n" for s in self.steps])


def parse_plan(text: str) -> Plan:
    """Returns the plan whose `str` is *text*; lines that begin with `#` are comments.

    Raises `ParseError` naming the line that is none of a plan's.
    """
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")]
    return Plan(tuple([_step(line, n) for n, line in lines]))


def _step(line: str, number: int) -> Step:
    subject, colon, written = line.partition(": ")
    try:
        if not colon:
            raise ValueError("it has no `name: Decision(...)`")
        return Step(subject, _decision(written))
    except (SyntaxError, ValueError, TypeError) as error:
        raise ParseError(
            f"line {number} of a plan is no decision: {line!r} ({error})",
            hint="a line is a block's name, a colon and a decision, as `weft inspect --plan` prints them",
        ) from None


def _decision(text: str) -> Decision:
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise ValueError("a decision is written Name(field=value, ...)")
    kind = DECISIONS.get(call.func.id)
    if kind is None:
        raise ValueError(f"there is no decision {call.func.id}; there are {', '.join(sorted(DECISIONS))}")
    values = {k.arg or "**": ast.literal_eval(k.value) for k in call.keywords}
    known = fields(
        kind
    )  # those that were added later have defaults: plans that were written before are read as they were meant
    wanted = [f.name for f in known if f.name in values or f.default is MISSING]
    if list(values) != wanted:
        raise ValueError(f"{kind.__name__} has the fields {', '.join([f.name for f in known]) or 'none'}")
    return kind(**values)
