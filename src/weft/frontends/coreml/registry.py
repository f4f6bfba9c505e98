"""The table of the operations of Core ML's programs that Weft imports.

@translates("relu")
def relu(c: Call) -> Results:
    return c.add("relu", c.operand("x"))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from weft.frontends.coreml.call import Call, Label
from weft.frontends.translation_table import entering
from weft.graph.builder import Operand
from weft.support.registry import Registry

Translation: TypeAlias = Callable[[Call], Operand | tuple[Operand | Label, ...]]

TABLE: Final = Registry[str, Translation]("Core ML operation")


def translates(*names: str) -> Callable[[Translation], Translation]:
    """Enters the decorated function as the translation of the operations *names*."""
    return entering(TABLE, names)
