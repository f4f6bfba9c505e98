"""The parameters of one message of a network's text, by name: read as numbers, flags and names, with Caffe's defaults."""

from __future__ import annotations

import math
from typing import Final, NoReturn, TypeVar

from weft.frontends.caffe.text_format import Message, Scalar
from weft.support.errors import ModelError

T = TypeVar("T")

LARGEST: Final = (1 << 31) - 1
_LONGEST: Final = 12
_MOST: Final = 64


class Parameters:
    """Reads a *message*; *where* names it, or the layer that it is of, in messages. None stands for an absent one."""

    def __init__(self, message: Message | None, where: str) -> None:
        self.message = message or Message()
        self.where = where

    def has(self, name: str) -> bool:
        """Tells whether the field *name* is given."""
        return bool(self.message.fields.get(name))

    def messages(self, name: str) -> list[Message]:
        """Returns the messages that a field has for values."""
        found = self.message.fields.get(name, [])
        for v in found:
            if isinstance(v, Scalar):
                self.wrong(name, v, "should be a message in braces")
        return [v for v in found if isinstance(v, Message)]

    def inner(self, name: str) -> Parameters:
        """Returns the parameters of a field that is one message; none where it is absent."""
        found = self.messages(name)
        return Parameters(found[-1] if found else None, self.where)

    def texts(self, name: str) -> list[str]:
        """Returns the texts of a field that may be repeated."""
        return [v.text for v in self._scalars(name)]

    def text(self, name: str, default: str) -> str:
        """Returns a field's text or name."""
        return (self.texts(name) or [default])[-1]

    def choice(self, name: str, default: T, values: dict[str, T]) -> T:
        """Returns the entry of *values* for a field's name; raises `ModelError` for another name."""
        found = self._scalars(name)
        if found and found[-1].text not in values:
            self.wrong(name, found[-1], f"should be one of {', '.join(values)}")
        return values[found[-1].text] if found else default

    def integers(self, name: str, least: int = -LARGEST) -> list[int]:
        """Returns the integers of a field that may be repeated."""
        found = self._scalars(name)
        if len(found) > _MOST:
            self.wrong(name, found[_MOST], f"is repeated more than {_MOST} times")
        return [self._integer(name, v, least) for v in found]

    def integer(self, name: str, default: int, least: int = -LARGEST) -> int:
        """Returns a field that is an integer, of *least* or more."""
        found = self._scalars(name)
        return self._integer(name, found[-1], least) if found else default

    def numbers(self, name: str) -> list[float]:
        """Returns the numbers of a field that may be repeated."""
        return [self._number(name, v) for v in self._scalars(name)]

    def number(self, name: str, default: float) -> float:
        """Returns a field that is a number."""
        return (self.numbers(name) or [default])[-1]

    def flag(self, name: str, default: bool) -> bool:
        """Returns a field that is true or false."""
        return self.choice(name, default, {"true": True, "false": False, "1": True, "0": False})

    def wrong(self, name: str, value: Scalar, message: str) -> NoReturn:
        """Raises `ModelError` about the field *name*, with its line."""
        raise ModelError(
            f"{name}: {value.text} (line {value.line}) {message}",
            where=self.where,
            hint="mend this line of the .prototxt",
        )

    def _scalars(self, name: str) -> list[Scalar]:
        found = self.message.fields.get(name, [])
        for v in found:
            if isinstance(v, Message):
                self.wrong(name, Scalar("{...}", v.line), "should be a value, not a message")
        return [v for v in found if isinstance(v, Scalar)]

    def _integer(self, name: str, value: Scalar, least: int) -> int:
        try:
            made = int(value.text[:_LONGEST])
        except ValueError:
            self.wrong(name, value, "should be an integer")
        if abs(made) > LARGEST or len(value.text) > _LONGEST:
            self.wrong(name, value, f"is too large; {LARGEST} is the most")
        if made < least:
            self.wrong(name, value, f"should be {least} or more")
        return made

    def _number(self, name: str, value: Scalar) -> float:
        try:
            made = float(value.text.rstrip("fF") if value.text[:1].isdigit() else value.text)
        except ValueError:
            self.wrong(name, value, "should be a number")
        if not math.isfinite(made):
            self.wrong(name, value, "should be finite")
        return made
