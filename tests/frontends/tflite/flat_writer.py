"""FlatBuffers written by hand: each value is written behind the table or the vector that leads to it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""A table as a tuple of its fields, None for absent ones; an int or a float of 32 bits; a text; bytes; or a list of one kind."""


def buffer_of(table: tuple[Value, ...], identifier: bytes) -> bytes:
    """Returns a buffer whose root is *table*."""
    data = bytearray(struct.pack("<I4s", 0, identifier))
    _lead(data, 0, table)
    return bytes(data)


def _lead(data: bytearray, at: int, value: Value) -> None:
    """Writes *value* at the end, and its distance at *at*."""
    start = _written(data, value)
    struct.pack_into("<I", data, at, start - at)


def _written(data: bytearray, value: Value) -> int:
    """Returns where a value begins, which is written at the end."""
    data += b"\0" * (-len(data) % 4)
    if isinstance(value, tuple):
        return _table(data, value)
    start = len(data)
    if isinstance(value, str | bytes):
        raw = value.encode() if isinstance(value, str) else value
        data += struct.pack("<I", len(raw)) + raw + b"\0"
        return start
    data += struct.pack("<I", len(value))
    _fill(data, value)
    return start


def _table(data: bytearray, fields: tuple[Value, ...]) -> int:
    held = [v for v in fields if v is not None]
    offsets = [0 if v is None else 4 + 4 * sum(w is not None for w in fields[:k]) for k, v in enumerate(fields)]
    vtable = struct.pack(f"<{2 + len(fields)}H", 4 + 2 * len(fields), 4 + 4 * len(held), *offsets)
    data += b"\0" * (-len(vtable) % 4) + vtable
    start = len(data)
    data += struct.pack("<i", len(vtable))
    _fill(data, held)
    return start


def _fill(data: bytearray, values: Sequence[Value]) -> None:
    """Writes *values* side by side, and behind them what is no number."""
    places = [_slot(data, v) for v in values]
    for at, v in zip(places, values, strict=True):
        if not isinstance(v, int | float):
            _lead(data, at, v)


def _slot(data: bytearray, value: Value) -> int:
    """Returns the place of a number, or of the offset of what is no number."""
    at = len(data)
    data += struct.pack("<f" if isinstance(value, float) else "<i", value if isinstance(value, int | float) else 0)
    return at
