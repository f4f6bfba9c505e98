"""Places of statements: equal statements are one object, so that a place is identified by the path from the root to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, TypeVar

from weft.loop.nodes import Stmt


@dataclass(eq=False, slots=True)
class StmtPlace:
    """A statement in its place: equal statements in two places are two places. `depth` is the number of places around it."""

    stmt: Stmt
    parent: Self | None
    depth: int

    def outwards(self) -> Iterator[Self]:
        """Yields this place and those around it, innermost first."""
        place: Self | None = self
        while place is not None:
            yield place
            place = place.parent

    def below(self, outer: Self | None) -> list[Self]:
        """Returns the places from just inside *outer* (from the root for None) down to this one."""
        found: list[Self] = []
        for p in self.outwards():
            if p is outer:
                break
            found.append(p)
        return found[::-1]


P = TypeVar("P", bound=StmtPlace)


def meet(a: P, b: P) -> P:
    """Returns the innermost place that holds both."""
    while a is not b:
        if a.depth >= b.depth and a.parent is not None:
            a = a.parent
        elif b.parent is not None:
            b = b.parent
    return a
