"""Bytes of which some are others."""

from __future__ import annotations

import random
from typing import Final

from tests.support.damaged_files import damaged

MARKS: Final = (b"\0" * 4, b"\xff" * 4, b"\xff" * 8, b"\1\0\0\0", b"\0\0\0\x80")


def damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    """Returns bytes with some of them left out, changed or repeated; never none."""
    return damaged(rng, data, MARKS) or data[:1]


def damaged_numbers(rng: random.Random, data: bytes) -> bytes:
    """Returns bytes of the same length, of which a few words are at borders: for formats of offsets."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        size = rng.choice((1, 2, 4, 8))
        at = rng.randrange(max(1, len(made) - size + 1)) // size * size
        made[at : at + size] = rng.choice((0, 1, 2, 5, 127, 128, 255)).to_bytes(size, rng.choice(("little", "big")))
    return bytes(made[: len(data)])
