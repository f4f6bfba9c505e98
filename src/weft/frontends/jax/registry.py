"""The table of StableHLO's operations that Weft imports, by their names without the dialect.

@translates("tanh")
def tanh(c: Call) -> Results:
    return c.add("tanh", c.operand(0))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from weft.frontends.jax.call import Call
from weft.frontends.jax.text.operations import Operation
from weft.frontends.translation_table import entering
from weft.graph.builder import Operand
from weft.support.registry import Registry

Translation: TypeAlias = Callable[[Call], Operand | tuple[Operand, ...]]

TABLE: Final = Registry[str, Translation]("StableHLO operation")

_DIALECTS: Final = ("stablehlo", "chlo", "mhlo", "func")


def translates(*names: str) -> Callable[[Translation], Translation]:
    """Enters the decorated function as the translation of the operations *names*."""
    return entering(TABLE, names)


def key_of(o: Operation) -> str:
    """Returns the name of an operation in the table; that of a custom call says whom it calls."""
    dialect, dot, name = o.name.partition(".")
    key = name if dot and dialect in _DIALECTS else o.name
    if key != "custom_call":
        return key
    target = o.attributes.get("call_target_name", o.words[0] if o.words else "")
    return f"custom_call @{target}"
