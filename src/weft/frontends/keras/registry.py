"""The table of Keras's layers that Weft imports, by their classes; its operators on tensors have names that begin with `ops.`.

@translates("Dropout")
def dropout(c: Call) -> Operand:
    return c.tensor()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from weft.frontends.keras.call import Call
from weft.frontends.translation_table import entering
from weft.graph.builder import Operand
from weft.support.registry import Registry

Translation: TypeAlias = Callable[[Call], Operand | tuple[Operand, ...]]

TABLE: Final = Registry[str, Translation]("Keras layer")


def translates(*names: str) -> Callable[[Translation], Translation]:
    """Enters the decorated function as the translation of the layers of the classes *names*."""
    return entering(TABLE, names)
