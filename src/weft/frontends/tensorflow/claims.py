"""Tells TensorFlow's saved models and frozen graphs by their first fields, or by the file that a folder has."""

from __future__ import annotations

import re
from typing import Final, TypeGuard

from weft.frontends.wire_format import BYTES, Field, Malformed, first_fields

READS: Final = "the folder of a saved model of TensorFlow, or a frozen graph (.pb)"

SAVED_MODEL: Final = "saved_model.pb"

_SIZE: Final = rb"[\x80-\xff]{0,4}[\x00-\x7f]"
_SCHEMA: Final = b"\x08\x01"
"""How saved models begin: the field of the schema's version, which is 1. So may files of ONNX and Core ML."""

_GRAPHS, _INFORMATION = 2, 1
_VERSION, _OPERATORS, _ANY = 1, 2, 3
"""Fields of a saved model, of each of its graphs, and of a graph's meta data."""

_GRAPH: Final = re.compile(rb"\A\n" + _SIZE + rb"\n" + _SIZE + rb"[\w./>\\-]+\x12[\x01-\x7f]\w+")
"""A node, which begins with its name and its operator."""


def claims(model: object, head: bytes) -> bool:
    """Tells whether *head* begins as a saved model's file or as a frozen graph does."""
    return is_saved_model(head) or _GRAPH.match(head) is not None


def is_saved_model(head: bytes) -> bool:
    """Tells whether *head* begins as the file of a saved model does."""
    if not head.startswith(_SCHEMA):
        return False
    data = memoryview(head)
    try:
        graph = _first(data, len(_SCHEMA), len(head))
        known = _first(data, graph.content, graph.end) if _is_message(graph, _GRAPHS) else None
        if not _is_message(known, _INFORMATION):
            return False
        told = _first(data, known.content, known.end)
        if _is_message(told, _VERSION):
            told = _first(data, told.end, known.end)
        return told is not None and _is_about_a_graph(data, told)
    except Malformed:
        return False


def _first(data: memoryview, start: int, end: int) -> Field | None:
    return next(first_fields(data, start, end), None)


def _is_message(found: Field | None, number: int) -> TypeGuard[Field]:
    return found is not None and (found.number, found.kind) == (number, BYTES)


def _is_about_a_graph(data: memoryview, told: Field) -> bool:
    """Tells whether a field behind a version is one about a graph, and none of a feature of Core ML behind its name.

    There, field 2 is a text, and field 3 one of a few messages, of which the first is empty. Here, field 2 is a list of
    operators, each with its name, and field 3 begins with the name of a type.
    """
    if told.number not in (_OPERATORS, _ANY):
        return told.number > _ANY
    inner = _first(data, told.content, told.end)
    if not _is_message(inner, 1) or inner.content == inner.end:
        return False
    return told.number == _ANY or _is_message(_first(data, inner.content, inner.end), 1)
