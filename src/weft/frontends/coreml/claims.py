"""Tells Core ML's models: packages by their manifest, files by their first fields."""

from __future__ import annotations

from typing import Final

from weft.frontends.wire_format import BYTES, VARINT, Malformed, Truncated, fields

READS: Final = "a Core ML .mlpackage or .mlmodel"

VERSION, DESCRIPTION = 1, 2
NEWEST: Final = 100
"""Versions of Core ML's specification are below: 10 is today's."""

_FEATURE: Final = 1


def claims(model: object, head: bytes) -> bool:
    """Tells whether *head* begins as a manifest of Core ML does, or as a model: a version, and a description of inputs."""
    if head.lstrip().startswith(b"{") and b'"rootModelIdentifier"' in head:
        return True
    data, seen = memoryview(head), list[int]()
    try:
        for f in fields(data, 0, len(data)):
            seen.append(f.number)
            if (f.number, f.kind) == (DESCRIPTION, BYTES):
                return seen == [VERSION, DESCRIPTION] and _describes(data, f.content, f.end)
            if (f.number, f.kind) != (VERSION, VARINT) or head[f.content] >= NEWEST:
                return False
    except Truncated as cut:
        start = len(head) - 1
        return seen == [VERSION] and cut.missing > 0 and start > 4 and _begins_description(head)
    except Malformed:
        return False
    return False


def _begins_description(head: bytes) -> bool:
    """Tells of a model whose description is longer than *head* whether it begins with a feature."""
    return head[2] == DESCRIPTION << 3 | BYTES and (_FEATURE << 3 | BYTES) in head[3:9]


def _describes(data: memoryview, start: int, end: int) -> bool:
    """Tells whether a description has features alone, inputs first, each with a name."""
    numbers = [(f.number, f.kind) for f in fields(data, start, end)]
    return bool(numbers) and numbers[0] == (_FEATURE, BYTES) and all(k in (BYTES, VARINT) for _, k in numbers)
