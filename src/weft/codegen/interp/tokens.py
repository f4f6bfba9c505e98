"""Tokens between the units of a machine, as a program that runs in one piece sees them: counted, queue by queue.

In a sequential run each token is pushed before it is popped. A pop of an empty queue means that the program relies on units that
run ahead of it; a token that is left over would be popped by the next program instead of that program's own.
"""

from __future__ import annotations

from collections import Counter


class Tokens:
    """The number of tokens in each queue, which is known by the two units that it leads from and to."""

    def __init__(self) -> None:
        self.count: Counter[tuple[int, int]] = Counter()

    def push(self, source: int, to: int) -> None:
        """Puts a token into a queue."""
        self.count[source, to] += 1

    def pop(self, source: int, to: int) -> None:
        """Takes a token out of a queue; raises `ValueError` if there is none."""
        if self.count[source, to] == 0:
            raise ValueError(f"unit {to} waits for a token from unit {source} that nothing before has pushed")
        self.count[source, to] -= 1

    def left(self) -> list[tuple[int, int]]:
        """Returns the queues that are not empty."""
        return sorted(self.count.elements())
