"""Texts of which a word or a line is another."""

from __future__ import annotations

import random
import re
from typing import Final

from tests.frontends.fuzz.bytes_at_random import damaged_bytes

NUMBERS: Final = (
    b"-1",
    b"0",
    b"1",
    b"2",
    b"7",
    b"65536",
    b"99999",
    b"4294967296",
    b"9223372036854775808",
    b"1e400",
    b"nan",
)
_WORDS: Final = re.compile(rb"[A-Za-z_]\w*|-?\d[\w.]*|[^\s\w]")
"""Names, numbers, and marks one by one."""


def damaged_text(rng: random.Random, data: bytes) -> bytes:
    """Returns a text with one to three changes: words swapped, lines left out or repeated, numbers at borders, or bytes."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(8)
        if kind == 0:
            data = damaged_bytes(rng, data)
        elif kind < 3:
            data = _with_other_lines(rng, data)
        else:
            data = _with_another_word(rng, data)
    return data or b"\n"


def _with_other_lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True) or [b"\n"]
    at = rng.randrange(len(lines))
    return b"".join([*lines[:at], *rng.choice(([], [lines[at]] * 2, [rng.choice(lines)])), *lines[at + 1 :]])


def _with_another_word(rng: random.Random, data: bytes) -> bytes:
    words = list(_WORDS.finditer(data))
    if not words:
        return data
    old = rng.choice(words)
    is_number = old[0][-1:].isdigit() and rng.random() < 0.7
    new = rng.choice(NUMBERS) if is_number else rng.choice(words)[0]
    return data[: old.start()] + new + data[old.end() :]
