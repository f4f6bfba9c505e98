"""Where the operations of a text come from: the names that JAX gives them, and the lines of the user's program.

#loc4 = loc("/home/me/net.py":14:15 to :18)
#loc7 = loc("<lambda>"(#loc4))
#loc9 = loc("jit(net)/dot_general"(#loc7))     an operation that ends with loc(#loc9) is jit(net)/dot_general, net.py:14
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final

_DEFINED: Final = re.compile(r"^#(loc\d*) = loc\((.*)\)$", re.MULTILINE)
_NAMED: Final = re.compile(r'"([^"]*)"\(')
_QUOTED: Final = re.compile(r'"([^"]*)"')
_LINE: Final = re.compile(r'"([^"]*)":(\d+):\d+')
_REFERENCE: Final = re.compile(r"#(loc\d*)")
_DEEPEST: Final = 100


class Locations:
    """The locations that a text defines."""

    def __init__(self, text: str) -> None:
        self._defined = dict(_DEFINED.findall(text))

    def name_of(self, location: str) -> str:
        """Returns the name of an operation or an argument; "" where the text has none."""
        found = self._followed(location)
        named = _NAMED.match(found) or (None if _LINE.match(found) else _QUOTED.fullmatch(found))
        return named[1] if named else ""

    def line_of(self, location: str) -> str:
        """Returns the file and the line `net.py:14` of the program that made an operation; "" where the text has none."""
        for _ in range(_DEEPEST):
            found = _LINE.search(location)
            if found is not None:
                return f"{PurePath(found[1]).name}:{found[2]}"
            next_ = _REFERENCE.search(location)
            if next_ is None:
                return ""
            location = self._defined.get(next_[1], "")
        return ""

    def _followed(self, location: str) -> str:
        for _ in range(_DEEPEST):
            reference = _REFERENCE.fullmatch(location)
            if reference is None:
                return location
            location = self._defined.get(reference[1], "")
        return ""
