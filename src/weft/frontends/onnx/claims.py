"""Tells ONNX models by their content, without the package onnx."""

from __future__ import annotations

from typing import Final

from weft.frontends.content import is_instance

READS: Final = "an ONNX file or an onnx.ModelProto"

_FIELDS: Final = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
"""The fields of a ModelProto and how protobuf writes each: 0 is a number, 2 has a length before it."""

_CLASS: Final = "onnx.onnx_ml_pb2.ModelProto"


def claims(model: object, head: bytes) -> bool:
    """Tells whether *model* is a ModelProto, or *head* begins with one of its fields, as the bytes of one do."""
    if len(head) < 2:
        return is_instance(model, _CLASS)
    tag = head[0] if head[0] < 0x80 else head[0] & 0x7F | head[1] << 7
    return _FIELDS.get(tag >> 3) == tag & 7
