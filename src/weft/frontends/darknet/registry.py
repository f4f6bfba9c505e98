"""The table of Darknet's layers that Weft imports, by the names of their sections.

@layer("dropout")
def dropout(c: Call) -> Operand:
    return c.input
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from weft.frontends.darknet.call import Call
from weft.frontends.translation_table import entering
from weft.graph.builder import Operand
from weft.support.registry import Registry

Translation: TypeAlias = Callable[[Call], Operand]

TABLE: Final = Registry[str, Translation]("Darknet layer")


def layer(*names: str) -> Callable[[Translation], Translation]:
    """Enters the decorated function as the translation of sections called *names*."""
    return entering(TABLE, names)
