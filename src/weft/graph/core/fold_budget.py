"""The memory that constant folding may take for one model: each result is small beside its operands, but a chain of them is not.

Forty nodes that each concatenate a constant with itself make a terabyte of one element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from weft.cost import FOLDED_TIMES_CONSTANTS, LEAST_FOLDED_BYTES


class FoldBudget:
    """The bytes that folding may still make; one for a model, shared by all graphs that passes make of it."""

    def __init__(self) -> None:
        self._left: int | None = None

    def begin(self, constants: Iterable[int]) -> None:
        """Sets the budget by the bytes of the model's *constants*, the first time that it is called."""
        if self._left is None:
            self._left = max(LEAST_FOLDED_BYTES, FOLDED_TIMES_CONSTANTS * sum(constants))

    def take(self, nbytes: int) -> bool:
        """Tells whether a result of *nbytes* fits the budget, and takes it from the budget if so."""
        if self._left is None or nbytes > self._left:
            return self._left is None
        self._left -= nbytes
        return True

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Gives back at the end the bytes taken meanwhile: a graph that is compiled again has the same budget again."""
        left = self._left
        try:
            yield
        finally:
            self._left = left
