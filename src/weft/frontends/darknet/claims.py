"""Tells Darknet's networks by their first section."""

from __future__ import annotations

import os
import re
from typing import Final

from weft.frontends.content import head_of

READS: Final = "a Darknet .cfg with its .weights beside it, or the pair of paths"

WEIGHTS_VERSIONS: Final = (b"\0\0\0\0\1\0\0\0", b"\0\0\0\0\2\0\0\0")
"""How files of weights begin: a major and a minor version. 0.1 and 0.2 are all that there are."""

_FIRST_SECTION: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:[ \t\r]*(?:[#;][^\n]*)?\n)*[ \t]*\[(?:net|network)\]")


def claims(model: object, head: bytes) -> bool:
    """Tells whether *head* begins with the section `[net]`, or is that of weights alone, which the frontend refuses with a hint.

    A pair of paths is told by the first.
    """
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], str | os.PathLike):
        head = head_of(model[0])
    return _FIRST_SECTION.match(head) is not None or head[:8] in WEIGHTS_VERSIONS
