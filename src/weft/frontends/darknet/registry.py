"""The table of Darknet's layers that Weft imports, by the names of their sections.

@layer("dropout")
def dropout(c: Call) -> Operand:
    return c.input
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from weft.frontends.darknet.call import Call
from weft.graph.builder import Operand
from weft.support.registry import Registry

Translation: TypeAlias = Callable[[Call], Operand]
F = TypeVar("F", bound=Translation)

TABLE: Final = Registry[str, Translation]("Darknet layer")


def layer(*names: str) -> Callable[[F], F]:
    """Enters the decorated function as the translation of sections called *names*."""

    def enter(translate: F) -> F:
        for name in names:
            if name in TABLE:
                raise ValueError(f"[{name}] has two translations")
            TABLE[name] = translate
        return translate

    return enter
