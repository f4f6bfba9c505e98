"""Finds a model's weights in its bytes, so that they need not be copied."""

from __future__ import annotations

from weft.frontends.wire_format import BYTES, Field, fields

MODEL_GRAPH = 7
GRAPH_INITIALIZER = 5
TENSOR_RAW_DATA = 9


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
