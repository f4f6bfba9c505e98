"""Just enough of the protobuf wire format to find a model's weights in its bytes, so that they need not be copied.

A message is a series of fields; each begins with a number that holds the field's number and how its length is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WIDTHS: Final = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT: Final = 10

MODEL_GRAPH = 7
GRAPH_INITIALIZER = 5
TENSOR_RAW_DATA = 9


class Malformed(Exception):
    """The bytes are not a protobuf message."""


class Truncated(Malformed):
    """The bytes end inside a field; `missing` says how many more were announced."""

    def __init__(self, missing: int) -> None:
        super().__init__(missing)
        self.missing = missing


@dataclass(frozen=True)
class Field:
    """One field of a message: the whole of it is `start:end`, its content `content:end`."""

    number: int
    kind: int
    start: int
    content: int
    end: int


def fields(data: memoryview, start: int, end: int) -> Iterator[Field]:
    """Yields the fields of the message in `data[start:end]`; raises `Malformed` where that is none."""
    at = start
    while at < end:
        tag, content = _varint(data, at, end)
        kind = tag & 7
        if tag >> 3 == 0 or kind not in (VARINT, BYTES, *_WIDTHS):
            raise Malformed
        if kind == BYTES:
            size, content = _varint(data, content, end)
            stop = content + size
        elif kind == VARINT:
            _, stop = _varint(data, content, end)
        else:
            stop = content + _WIDTHS[kind]
        if stop > end:
            raise Truncated(stop - end)
        yield Field(tag >> 3, kind, at, content, stop)
        at = stop


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Returns the number that begins at *at*, and where it ends."""
    value = 0
    for k in range(_LONGEST_VARINT):
        if at + k >= end:
            raise Truncated(1)
        byte = data[at + k]
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            return value, at + k + 1
    raise Malformed


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def take_weights(data: memoryview) -> tuple[bytes, dict[int, memoryview]]:
    """Splits a model into its bytes without the weights, and the weights: initializer's number -> view into *data*."""
    weights: dict[int, memoryview] = {}
    parts: list[bytes] = []
    for f in fields(data, 0, len(data)):
        if f.number == MODEL_GRAPH and f.kind == BYTES:
            body = _graph_without_weights(data, f, weights)
            parts += [_encoded(MODEL_GRAPH << 3 | BYTES), _encoded(len(body)), body]
        else:
            parts.append(bytes(data[f.start : f.end]))
    return b"".join(parts), weights


def _graph_without_weights(data: memoryview, graph: Field, weights: dict[int, memoryview]) -> bytes:
    parts: list[bytes] = []
    number = 0
    for f in fields(data, graph.content, graph.end):
        if f.number == GRAPH_INITIALIZER and f.kind == BYTES:
            body = b""
            for inner in fields(data, f.content, f.end):
                if inner.number == TENSOR_RAW_DATA and inner.kind == BYTES:
                    weights[number] = data[inner.content : inner.end]
                else:
                    body += data[inner.start : inner.end]
            parts += [_encoded(GRAPH_INITIALIZER << 3 | BYTES), _encoded(len(body)), body]
            number += 1
        else:
            parts.append(bytes(data[f.start : f.end]))
    return b"".join(parts)
