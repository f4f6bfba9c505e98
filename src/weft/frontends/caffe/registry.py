"""The table of Caffe's layers that Weft imports, by their types.

@layer("AbsVal")
def abs_val(c: Call) -> Results:
    return c.add("abs", c.input)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from weft.frontends.caffe.call import Call
from weft.graph.builder import Operand
from weft.support.registry import Registry

Tops: TypeAlias = Operand | tuple[Operand, ...]
Translation: TypeAlias = Callable[[Call], Tops]
F = TypeVar("F", bound=Translation)

TABLE: Final = Registry[str, Translation]("Caffe layer")


def layer(*names: str) -> Callable[[F], F]:
    """Enters the decorated function as the translation of layers of the types *names*."""

    def enter(translate: F) -> F:
        for name in names:
            if name in TABLE:
                raise ValueError(f"{name} has two translations")
            TABLE[name] = translate
        return translate

    return enter
