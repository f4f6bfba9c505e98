"""Choices between branches whose results have several numbers of dimensions: where later nodes refuse one, the other is tried.

PyTorch writes `squeeze(-1)` of a size that it does not know as a branch, `If(size == 1, Squeeze(x), Identity(x))`. Only one of the
two gives what the nodes behind it take, and which is seen when these are imported. So the whole model is: with the first choice,
and again with others, depth first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from weft.support.errors import ModelError

MOST_READINGS: Final = 32
"""How often a model is imported at most: each choice that is made too early doubles the number of ways."""

T = TypeVar("T")


class OtherChoiceError(Exception):
    """The model is to be imported again, with choices that have been changed."""


class RankChoices:
    """The choices of one model, in the order of its branches; False stands for the branch of more dimensions, the first tried."""

    def __init__(self) -> None:
        self._fewer: list[bool] = []
        self._readings = 1
        self.made = 0

    def fewer(self) -> bool:
        """Tells whether the next branch of several ranks is to be the one of fewer dimensions."""
        if self.made == len(self._fewer):
            self._fewer.append(False)
        self.made += 1
        return self._fewer[self.made - 1]

    def change(self, first: int) -> bool:
        """Changes the last choice, from number *first* on, that was made in one way only; tells whether there was one."""
        open_ = [k for k in range(first, self.made) if not self._fewer[k]]
        if not open_ or self._readings == MOST_READINGS:
            return False
        self._fewer[open_[-1] :] = [True]
        self._readings += 1
        return True

    def try_others(self, first: int) -> None:
        """Raises `OtherChoiceError` if a choice from number *first* on can be made otherwise."""
        if self.change(first):
            raise OtherChoiceError

    def read(self, model: Callable[[], T]) -> T:
        """Returns what *model* imports; raises its first `ModelError` where all choices have one."""
        refused: ModelError | None = None
        while True:
            self.made = 0
            try:
                return model()
            except OtherChoiceError:
                continue
            except ModelError as error:
                refused = refused or error
                if not self.change(0):
                    raise refused from None
