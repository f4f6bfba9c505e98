"""Tells TensorFlow's saved models and frozen graphs by their first fields, or by the file that a folder has."""

from __future__ import annotations

import re
from typing import Final

READS: Final = "the folder of a saved model of TensorFlow, or a frozen graph (.pb)"

SAVED_MODEL: Final = "saved_model.pb"

_SIZE: Final = rb"[\x80-\xff]{0,4}[\x00-\x7f]"
_SAVED: Final = re.compile(rb"\A\x08\x01\x12" + _SIZE + rb"\n" + _SIZE + rb"[\x12\x1a\x22\x2a]", re.S)
"""The field of the schema's version, 1, and a graph, which begins with its operators or tags.

ONNX has a producer's name in place of the graph, Core ML a feature, which begins with its name.
"""

_GRAPH: Final = re.compile(rb"\A\n" + _SIZE + rb"\n" + _SIZE + rb"[\w./>\\-]+\x12[\x01-\x7f]\w+")
"""A node, which begins with its name and its operator."""


def claims(model: object, head: bytes) -> bool:
    """Tells whether *head* begins as a saved model's file or as a frozen graph does."""
    return is_saved_model(head) or _GRAPH.match(head) is not None


def is_saved_model(head: bytes) -> bool:
    """Tells whether *head* begins as the file of a saved model does."""
    return _SAVED.match(head) is not None
