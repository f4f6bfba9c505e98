"""Choices between results of several numbers of dimensions: where later nodes refuse one, the other is tried.

PyTorch writes `squeeze(-1)` of a size that it does not know as a branch, `If(size == 1, Squeeze(x), Identity(x))`, and
`squeeze()` drops whatever is 1 when the model runs. Only one result has the dimensions that the nodes behind it take, or that
the model's outputs are declared with, which is seen when these are imported. So the whole model is: with the first choice, and
again with others, depth first.
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
    """The choices of one model, in the order of its nodes; False stands for the result of more dimensions, the first tried."""

    def __init__(self) -> None:
        self._fewer: list[bool] = []
        self._doubted: list[bool] | None = None
        self._readings = 1
        self._is_last = False
        self.made = 0

    def fewer(self) -> bool:
        """Tells whether the next result that may have several numbers of dimensions is to be the one of fewer."""
        if self.made == len(self._fewer):
            self._fewer.append(False)
        self.made += 1
        return self._fewer[self.made - 1]

    def change(self, first: int = 0) -> bool:
        """Changes the last choice, from number *first* on, that was made in one way only; tells whether there was one."""
        left = [k for k in range(first, self.made) if not self._fewer[k]]
        if not left or self._is_last or self._readings == MOST_READINGS:
            return False
        self._fewer[left[-1] :] = [True]
        self._readings += 1
        return True

    def try_others(self, first: int) -> None:
        """Raises `OtherChoiceError` if a choice from number *first* on can be made otherwise."""
        if self.change(first):
            raise OtherChoiceError

    def doubt(self) -> None:
        """Raises `OtherChoiceError` if there may be better choices; these will do, if there are none."""
        if self._is_last or not self.made:
            return
        if self._doubted is None:
            self._doubted = self._fewer[: self.made]
        if not self.change():
            self._return_to(self._doubted)
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
                if self.change():
                    continue
                if self._doubted is None or self._is_last:
                    raise refused from None
                self._return_to(self._doubted)

    def _return_to(self, choices: list[bool]) -> None:
        self._fewer, self._is_last = choices, True
