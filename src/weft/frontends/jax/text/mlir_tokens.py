"""The tokens of MLIR's text, read one at a time, with the line on which each begins."""

from __future__ import annotations

import re
from typing import Final, NoReturn

from weft.support.errors import ModelError
from weft.support.text import printable_line

AGAIN: Final = "lower the function again; Weft reads what jax.jit(fn).lower(...).as_text() prints"

_BLANK: Final = re.compile(r"(?:\s+|//[^\n]*)*")
_NESTED: Final = r"<[^<>\n]*(?:<[^<>\n]*>[^<>\n]*)*>"
"""Angle brackets, with others inside of them."""

_TOKEN: Final = re.compile(
    rf"""(?P<value>%[\w$.\-]+(?:\#\d+)?)
    |(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")
    |(?P<type>(?:tensor|vector|memref){_NESTED}|tuple<[^<>\n]*(?:<[^<>\n]*(?:{_NESTED}[^<>\n]*)*>[^<>\n]*)*>|![\w.]+(?:<[^<>\n]*>)?)
    |(?P<number>-?0x[0-9A-Fa-f]+|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    |(?P<symbol>@(?:[\w$.\-]+|"[^"\\\n]*"))
    |(?P<hash>\#[\w.]+)
    |(?P<word>[A-Za-z_$][\w$.]*)
    |(?P<label>\^\w+)
    |(?P<mark>->|\{{-\#|\#-\}}|[(){{}}\[\]<>,:=*?/+|;-])""",
    re.VERBOSE,
)
_SHOWN: Final = 30


class Tokens:
    """Reads tokens from *text*; `kind` and `text` are those of the next one, "end" and "" after the last.

    *where* names the text in messages.
    """

    def __init__(self, text: str, where: str) -> None:
        self.source, self.where = text, where
        self._start = self._end = 0
        self._line, self._counted = 1, 0
        self.kind, self.text = "end", ""
        self._advance()

    @property
    def line(self) -> int:
        """The line of the next token, counted from 1."""
        self._line += self.source.count("\n", self._counted, self._start)
        self._counted = self._start
        return self._line

    def take(self) -> str:
        """Returns the next token, and goes on to the one after it."""
        found = self.text
        self._advance()
        return found

    def accept(self, text: str) -> bool:
        """Takes the next token if it is *text*, and tells whether it was."""
        if self.text != text or self.kind in ("string", "end"):
            return False
        self._advance()
        return True

    def expect(self, text: str) -> None:
        """Takes the next token; raises `ModelError` if it is another than *text*."""
        if not self.accept(text):
            self.fail(f"{text!r} is expected")

    def take_kind(self, kind: str) -> str:
        """Returns the next token; raises `ModelError` if it is none of *kind*."""
        if self.kind != kind:
            self.fail(f"a {kind} is expected")
        return self.take()

    def skip_nested(self, opening: str, closing: str) -> str:
        """Skips a token *opening*, and the tokens up to the matching *closing* one; returns the text between."""
        first, depth = self._end, 0
        while True:
            if self.kind == "end":
                self.fail(f"the text ends before a {closing!r}")
            depth += (self.text == opening) - (self.text == closing)
            last = self._start
            self._advance()
            if depth == 0:
                return self.source[first:last]

    def fail(self, message: str) -> NoReturn:
        """Raises `ModelError` with the line of the next token."""
        start = printable_line(self.source[self._start : self._start + _SHOWN].partition("\n")[0])
        shown = f"{message}, where {start!r} stands" if self.kind != "end" else f"{message}, where the text ends"
        raise ModelError(shown, where=f"{self.where}, line {self.line}", hint=AGAIN)

    def _advance(self) -> None:
        blank = _BLANK.match(self.source, self._end)
        self._start = self._end if blank is None else blank.end()
        found = _TOKEN.match(self.source, self._start)
        if found is not None:
            self.kind, self.text, self._end = found.lastgroup or "end", found.group(), found.end()
            return
        self.kind, self.text = "end", ""
        if self._start < len(self.source):
            self.kind = "mark"
            self.fail("the text is not MLIR's")
