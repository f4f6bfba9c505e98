"""Writes small graphs as TensorFlow does, field by field, so that tests may write what TensorFlow would not."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

TYPES = {"float": 1, "int32": 3, "string": 7, "complex64": 8, "bool": 10, "resource": 20}


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def shape(sizes: Sequence[int]) -> bytes:
    return b"".join(field(2, field(1, s)) for s in sizes)


def attribute(value: Any) -> bytes:
    """Returns an attribute: a type for its name behind "type:", a function for one behind "function:"."""
    if isinstance(value, str) and value.startswith("type:"):
        return field(6, TYPES[value[5:]])
    if isinstance(value, str) and value.startswith("function:"):
        return field(10, field(1, value[9:]))
    if isinstance(value, str):
        return field(2, value)
    if isinstance(value, bool | int):
        return field(5 if isinstance(value, bool) else 3, int(value))
    if isinstance(value, tuple):
        return field(7, shape(value))
    if isinstance(value, bytes):
        return field(8, value)
    return field(1, b"".join(field(3, v) for v in value))


def tensor(values: Sequence[float], sizes: Sequence[int]) -> bytes:
    return field(1, 1) + field(2, shape(sizes)) + field(4, struct.pack(f"<{len(values)}f", *values))


def integers(values: Sequence[int], sizes: Sequence[int]) -> bytes:
    return field(1, TYPES["int32"]) + field(2, shape(sizes)) + field(4, struct.pack(f"<{len(values)}i", *values))


def node(name: str, op: str, *inputs: str, **attributes: Any) -> bytes:
    made = field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs)
    return made + b"".join(field(5, field(1, k) + field(2, attribute(v))) for k, v in attributes.items())


def graph(*nodes: bytes, functions: Sequence[bytes] = ()) -> bytes:
    library = field(2, b"".join(field(1, f) for f in functions)) if functions else b""
    return b"".join(field(1, n) for n in nodes) + library


def function(name: str, arguments: Sequence[str], nodes: Sequence[bytes], results: dict[str, str]) -> bytes:
    signature = field(1, name) + b"".join(field(2, field(1, a)) for a in arguments)
    signature += b"".join(field(3, field(1, r)) for r in results)
    return (
        field(1, signature)
        + b"".join(field(3, n) for n in nodes)
        + b"".join(field(4, field(1, k) + field(2, v)) for k, v in results.items())
    )
