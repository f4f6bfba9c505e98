"""The arguments and results of primitives: references to loops and blocks, changes of the function, and refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from weft.ir import Var
from weft.loop import Function, Stmt
from weft.support.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class LoopRef:
    """A loop, known by its variable; stays good while other parts of the program are rewritten."""

    var: Var

    def __repr__(self) -> str:
        return f"loop {self.var.name}"


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block, known by its name."""

    name: str

    def __repr__(self) -> str:
        return f"block {self.name}"


class Illegal(ScheduleError):
    """A refusal, with the statement to point at; the schedule adds the step and the program's text."""

    def __init__(self, message: str, at: Stmt | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.at = at


def called(var: Var) -> str:
    """Returns a mark for *var* in a message, which the schedule replaces by the variable's name in the printed program."""
    return f"<{var.name}:{var.serial}>"


def refuse(message: str, at: Stmt | None = None, hint: str | None = None) -> NoReturn:
    """Raises `Illegal`."""
    raise Illegal(message, at, hint)


@dataclass(frozen=True, slots=True)
class Change:
    """The outcome of a primitive: the new function, and the new targets of references to loops that are gone.

    After a step that is *in_order*, the same instances of blocks run in the same order, each in the same iteration of every loop
    that is still there: proofs about those loops still hold. Kinds of loops, and where buffers are, are no part of that.

    The loops of an *algorithm* that a step puts in the place of blocks are of the kinds that it is written for, in statements of
    its own; nothing is proved of them.
    """

    function: Function
    forward: tuple[tuple[Var, Var], ...] = ()
    in_order: bool = False
    algorithm: bool = False
