"""Unique names: each is given once, and a name that is taken with a number behind it."""

from __future__ import annotations

from collections.abc import Iterable


class UniqueNames:
    """Gives names that differ from one another and from those *taken*: `x`, `x_1`, `x_2` ...

    Numbers begin with *first*, behind *separator*. The last number of each name is remembered, so that giving n equal names takes
    time proportional to n.
    """

    def __init__(self, taken: Iterable[str] = (), *, first: int = 1, separator: str = "_") -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}
        self._first = first
        self._separator = separator

    def of(self, name: str) -> str:
        """Returns *name*, with a number if it is taken, and takes it."""
        made = name
        while made in self._taken:
            number = self._numbers[name] = self._numbers.get(name, self._first - 1) + 1
            made = f"{name}{self._separator}{number}"
        self._taken.add(made)
        return made
