"""The table of Caffe's layers that Weft imports, by their types.

@layer("AbsVal")
def abs_val(c: Call) -> Results:
    return c.add("abs", c.input)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from weft.frontends.caffe.call import Call
from weft.frontends.translation_table import entering
from weft.graph.builder import Operand
from weft.support.registry import Registry

Tops: TypeAlias = Operand | tuple[Operand, ...]
Translation: TypeAlias = Callable[[Call], Tops]

TABLE: Final = Registry[str, Translation]("Caffe layer")


def layer(*names: str) -> Callable[[Translation], Translation]:
    """Enters the decorated function as the translation of layers of the types *names*."""
    return entering(TABLE, names)
