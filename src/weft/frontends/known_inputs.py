"""Inputs of a node whose elements are known when the model is compiled: shapes, axes, repeats and the like."""

from __future__ import annotations

from typing import Any, ClassVar

from weft.graph import UNFIT, Array
from weft.graph.builder import Builder
from weft.ir import Expr


class KnownInputs(Builder):
    """A builder for a node whose inputs `known` finds; *what* names an input in messages, and `unfit` is their hint."""

    unfit: ClassVar[str] = UNFIT

    def known(self, i: int, what: str) -> Array:
        """Returns the elements of input *i*; raises `UnknownValues` where they are computed only when the model runs."""
        raise NotImplementedError

    def numbers(self, i: int, what: str) -> Array:
        """Returns the elements of input *i*, none of them symbolic."""
        array = self.known(i, what)
        if array.dtype == object:
            self.fail(f"{what} depends on the symbolic sizes of the inputs", 'give them numbers: shapes={"batch": 1}')
        return array

    def sizes(self, i: int, what: str) -> list[Any]:
        """Returns the elements of the vector or scalar input *i*: integers and index expressions."""
        return [e if isinstance(e, Expr) else int(e) for e in self.known(i, what).flat]

    def ints_at(self, i: int, what: str) -> list[int]:
        """Returns the integers of the vector or scalar input *i*."""
        return [int(e) for e in self.numbers(i, what).flat]

    def number_at(self, i: int, what: str) -> Any:
        """Returns the one number that input *i* holds."""
        array = self.numbers(i, what)
        if array.size != 1:
            self.fail(f"{what} should be one number, not {array.size}", self.unfit)
        return array.item()
