"""Tells Caffe's networks by their first field."""

from __future__ import annotations

import os
import re
from typing import Final

from weft.frontends.content import head_of

READS: Final = "a Caffe .prototxt with its .caffemodel beside it, or the pair of paths"

_FIELDS: Final = rb"name\s*:|input\s*:|input_dim\s*:|input_shape\s*[:{]|layers?\s*[:{]|force_backward\s*:|state\s*[:{]"

_FIRST_FIELD: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:\s|#[^\n]*\n)*(?:" + _FIELDS + rb")")

_NAMED: Final = re.compile(rb"\A\n([\x01-\x7f])([\x20-\x7e]{1,127})")
"""How weights alone begin: the field `name`, its length and its text. ONNX's first field is a number."""


def claims(model: object, head: bytes) -> bool:
    """Tells whether *head* begins with a field of a network's text, or with a name as weights alone do, which are refused.

    A pair of paths is told by the first.
    """
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], str | os.PathLike):
        head = head_of(model[0])
    return _FIRST_FIELD.match(head) is not None or is_weights(head)


def is_weights(head: bytes) -> bool:
    """Tells whether *head* begins as a file of weights does."""
    named = _NAMED.match(head)
    if named is None or len(named[2]) < named[1][0]:
        return False
    after = head[2 + named[1][0] : 4 + named[1][0]]
    return after[:1] in (b"\x12", b"\x1a") or after == b"\xa2\x06"  # layers, input or layer
