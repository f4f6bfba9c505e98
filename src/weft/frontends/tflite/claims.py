"""Tells TensorFlow Lite's files by their identifier."""

from __future__ import annotations

from typing import Final

READS: Final = "a .tflite file of TensorFlow Lite"

IDENTIFIER: Final = b"TFL3"
"""Behind the first offset of a FlatBuffer."""


def claims(model: object, head: bytes) -> bool:
    """Tells whether *head* has the identifier."""
    return head[4:8] == IDENTIFIER
