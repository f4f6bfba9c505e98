"""The table of MXNet's operators that Weft imports.

@translates("Flatten", "flatten")
def flatten(c: Call) -> Operand:
    ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from weft.frontends.mxnet.call import Call
from weft.frontends.translation_table import entering
from weft.graph.builder import Operand
from weft.support.registry import Registry

Translation: TypeAlias = Callable[[Call], Operand | tuple[Operand, ...]]

TABLE: Final = Registry[str, Translation]("MXNet operator")


def translates(*names: str) -> Callable[[Translation], Translation]:
    """Enters the decorated function as the translation of the operators *names*."""
    return entering(TABLE, names)


def result_of(made: Operand | tuple[Operand, ...]) -> Operand:
    """Returns the first result of a translation."""
    return made[0] if isinstance(made, tuple) else made
