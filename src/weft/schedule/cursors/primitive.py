"""The table of primitives: each is one decorated function.

    @primitive
    def parallel(fn: Function, loop: LoopRef) -> tuple[Change, None]: ...

makes `schedule.parallel(loop)`, its trace record, its type stub and its line in the documentation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Primitive:
    """A checked rewrite: `run(function, *arguments)` gives a `Change` and the references that the step returns."""

    name: str
    run: Callable[..., Any]

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature without the function that is rewritten."""
        full = inspect.signature(self.run)
        return full.replace(parameters=list(full.parameters.values())[1:])

    @property
    def summary(self) -> str:
        """The first sentence of the documentation."""
        return (inspect.getdoc(self.run) or "").split("\n", 1)[0]


PRIMITIVES: Final[dict[str, Primitive]] = {}


def primitive(run: F) -> F:
    """Registers *run* as the primitive of its name."""
    PRIMITIVES[run.__name__] = Primitive(run.__name__, run)
    return run
