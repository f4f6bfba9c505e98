"""Protobuf's text format, without a schema: messages of fields, each with the values that it is given, and their lines.

layer { name: "conv1" convolution_param { pad: 1 } }
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NoReturn, TypeAlias

from weft.support.errors import ModelError
from weft.support.text import printable_line

LONGEST_TEXT: Final = 1 << 22
"""Bytes of a network's text; the longest known are some 200,000. As objects they take 50 times as many."""

DEEPEST: Final = 32
"""Messages inside of messages; Caffe's are five deep."""

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<word>[-+\w.]+)|(?P<mark>[{}<>:;,\[\]])"""
)
_CLOSING: Final = {"{": "}", "<": ">"}
_SHOWN: Final = 30


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, a name or a text, as it is written but for the quotes."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Message:
    """The values of a message's fields, by name, in their order."""

    line: int = 0
    fields: dict[str, list[Field]] = field(default_factory=dict)


Field: TypeAlias = Scalar | Message


def parse_message(data: bytes, where: str) -> Message:
    """Returns the message that *data* writes; raises `ModelError` with the line of a syntax error."""
    return _Parser(data.decode("utf-8-sig", "replace"), where).parse()


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        self.at, self.line = 0, 1
        self.token, self.kind = "", ""
        self.advance()

    def parse(self) -> Message:
        """Returns the whole text's message."""
        top = Message(1)
        stack: list[tuple[Message, str]] = [(top, "")]
        while self.kind or len(stack) > 1:
            message, closing = stack[-1]
            if closing and self.token == closing and self.kind == "mark":
                stack.pop()
                self.advance()
            elif self.token in (";", ",") and self.kind == "mark":
                self.advance()
            else:
                self._field(message, stack)
        return top

    def _field(self, message: Message, stack: list[tuple[Message, str]]) -> None:
        name, line = self.token, self.line
        if self.kind != "word":
            self.fail("a field's name is expected, not")
        self.advance()
        values = message.fields.setdefault(name, [])
        colon = self._skip(":")
        if self.kind == "mark" and self.token in _CLOSING:
            if len(stack) > DEEPEST:
                self.fail(f"messages are more than {DEEPEST} deep at")
            inner = Message(line)
            values.append(inner)
            stack.append((inner, _CLOSING[self.token]))
            self.advance()
        elif colon and self._skip("["):
            while not self._skip("]"):
                values.append(self._scalar())
                self._skip(",")
        elif colon:
            values.append(self._scalar())
        else:
            self.fail(f"{printable_line(name[:_SHOWN])} has no value before")

    def _scalar(self) -> Scalar:
        if self.kind not in ("word", "text"):
            self.fail("a value is expected, not")
        made = Scalar(self.token, self.line)
        self.advance()
        return made

    def _skip(self, mark: str) -> bool:
        found = self.kind == "mark" and self.token == mark
        if found:
            self.advance()
        return found

    def advance(self) -> None:
        """Goes to the next token; none is left where `kind` is empty."""
        while self.at < len(self.text):
            found = _TOKEN.match(self.text, self.at)
            if found is None:
                self.token = self.text[self.at : self.at + 1]
                self.fail("this can't be read:")
            self.at = found.end()
            self.line += 0 if found.lastgroup != "blank" else found[0].count("\n")
            if found.lastgroup != "blank":
                self.kind = found.lastgroup or ""
                self.token = found[0][1:-1] if self.kind == "text" else found[0]
                return
        self.token, self.kind = "the end of the text", ""

    def fail(self, message: str) -> NoReturn:
        """Raises `ModelError` about the present token."""
        raise ModelError(
            f"{message} {printable_line(self.token[:_SHOWN])!r}",
            where=f"{self.where}, line {self.line}",
            hint="mend this line of the .prototxt",
        )
