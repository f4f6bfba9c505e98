"""One layer of a network being imported: its options, its input, the layers before it, and its weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NoReturn

from weft.frontends.darknet.layer_states import States
from weft.frontends.darknet.sections import Section
from weft.frontends.darknet.weights import Weights
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator, static_sizes, total

LARGEST: Final = (1 << 31) - 1
"""Options are C's int."""


class Call(Builder):
    """A layer: a translation asks it for options by name, takes its weights in the file's order, and adds Weft operators."""

    def __init__(
        self,
        evaluator: PartialEvaluator,
        section: Section,
        before: Sequence[Operand],
        given: Operand | None,
        weights: Weights,
        states: States,
    ) -> None:
        super().__init__(evaluator, section.name)
        self.section = section
        self.before = before
        self._input = given
        self._weights = weights
        self._states = states

    @property
    def input(self) -> Operand:
        """The output of the layer before, or the network's input."""
        assert self._input is not None  # only the section [net] has none
        return self._input

    def text(self, name: str, default: str) -> str:
        """Returns an option as it is written."""
        found = self.section.options.get(name)
        return default if found is None else found.text

    def integer(self, name: str, default: int, least: int | None = None) -> int:
        """Returns an option that is an integer; raises `ModelError` for another text, and for one below *least*."""
        text = self.text(name, str(default))
        value = self._integer(name, text)
        if least is not None and value < least:
            self.wrong(name, f"should be {least} or more")
        return value

    def integers(self, name: str) -> list[int]:
        """Returns an option that is a list of integers; an empty list where it is absent."""
        text = self.text(name, "")
        return [self._integer(name, part) for part in text.split(",") if part] if text else []

    def number(self, name: str, default: float) -> float:
        """Returns an option that is a number."""
        try:
            value = float(self.text(name, str(default)))
        except ValueError:
            self.wrong(name, "should be a number")
        if not math.isfinite(value):
            self.wrong(name, "should be finite")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Returns whether an option is set: not zero."""
        return self.integer(name, int(default)) != 0

    def refuse(self, *names: str) -> None:
        """Raises `ModelError` if one of the options *names*, which Weft does not have, is set."""
        for name in names:
            if self.text(name, "0") not in ("0", "none", ""):
                self.wrong(name, "is not supported", "train the network without it")

    def wrong(self, name: str, message: str, hint: str = "mend this line of the .cfg") -> NoReturn:
        """Raises `ModelError` about the option *name*, with its line."""
        found = self.section.options.get(name)
        at = f"{name}={found.text} (line {found.line})" if found else f"{name}, which is absent,"
        self.fail(f"{at} {message}", hint)

    def take(self, shape: Sequence[int], what: str) -> CompileTimeConstant:
        """Returns the layer's next weights, called *what*."""
        array = self._weights.take(tuple(shape), what, self.source)
        return CompileTimeConstant(array, f"{self.section.type}_{self.section.index}.{what}")

    def state(self, like: Operand, *sizes: int) -> Operand:
        """Returns a state [N, *sizes] of the layer, zeros before the first call; N is that of *like*."""
        return self._states.declare(self.section, [like.shape[0], *sizes])

    def keep(self, *values: Operand) -> None:
        """Gives the states of the layer the values that the next call takes, in the order of their declaration."""
        self._states.keep(self.section, values)

    @property
    def transposes_matrices(self) -> bool:
        """Tells whether the file holds matrices as [inputs, outputs]."""
        return self._weights.transposed

    @property
    def is_forks(self) -> bool:
        """Tells whether the maintained fork of Darknet wrote the weights, not the original."""
        return self._weights.is_forks

    def layer(self, number: int, name: str) -> Operand:
        """Returns the output of the layer *number*, counted from this one if negative; *name* is the option that has it."""
        at = number + len(self.before) if number < 0 else number
        if not 0 <= at < len(self.before):
            self.wrong(name, f"names layer {at}; {len(self.before)} come before this one")
        return self.before[at]

    def image(self, x: Operand | None = None) -> Operand:
        """Returns *x*, or the layer's input, as [N, C, H, W]: vectors are images of one pixel."""
        x = self.input if x is None else x
        return x if x.rank == 4 else self.reshape(x, [*x.shape, 1, 1])

    def flat(self, x: Operand | None = None) -> Operand:
        """Returns *x*, or the layer's input, as [N, elements]."""
        x = self.input if x is None else x
        return x if x.rank == 2 else self.reshape(x, [x.shape[0], total(x.shape[1:])])

    def static(self, x: Operand) -> list[int]:
        """Returns the sizes of *x* but the first; raises `ModelError` for symbolic ones."""
        found = static_sizes(x.shape[1:])
        if found is None:
            self.fail(f"it needs sizes that are numbers: {x!r}", 'give them: shapes={"data": (1, 3, 416, 416)}')
        return found

    def _integer(self, name: str, text: str) -> int:
        try:
            value = int(text[:12])
        except ValueError:
            self.wrong(name, "should be an integer")
        if abs(value) > LARGEST or len(text) > 12:
            self.wrong(name, f"is too large; {LARGEST} is the most")
        return value
