"""Text from models, files and users, made fit to be shown: names may hold characters that clear a screen or forge a line."""

from __future__ import annotations


def printable(text: str) -> str:
    """Returns *text* with each character that is not printable, newlines, tabs and spaces aside, as an escape such as `\\x1b`."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text])


def printable_line(text: str) -> str:
    """Returns *text* as one line of printable characters: newlines are escaped too."""
    return text if text.isprintable() else printable(text).replace("\n", "\\n")


def in_format(text: str) -> str:
    """Returns *text* as a part of a format string, by which `str.format` shows it as it is: its braces are doubled."""
    return text.replace("{", "{{").replace("}", "}}")


def _escaped(c: str) -> str:
    return c.encode("unicode_escape").decode()
