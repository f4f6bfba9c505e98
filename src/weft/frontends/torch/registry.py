"""The table of PyTorch operators that Weft imports, by the names that an exported program has for them.

@translates("aten.relu.default")
def relu(c: Call) -> Results:
    return c.add("relu", c.tensor("self"))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from weft.frontends.torch.call import Call
from weft.graph.builder import Results
from weft.support.registry import Registry

Translation: TypeAlias = Callable[[Call], Results]
F = TypeVar("F", bound=Translation)

_OTHERS: Final = ("_operator.", "math.", "prims.", "torch.")
"""How names begin that are not of `aten`: Python's functions of sizes, and the primitives of decompositions."""

TABLE: Final = Registry[str, Translation]("PyTorch operator")


def translates(*names: str) -> Callable[[F], F]:
    """Enters the decorated function as the translation of the operators *names*; of `aten`, default, where they do not say."""

    def enter(translate: F) -> F:
        for name in names:
            full = name if name.startswith(_OTHERS) else f"aten.{name if '.' in name else f'{name}.default'}"
            if full in TABLE:
                raise ValueError(f"{full} has two translations")
            TABLE[full] = translate
        return translate

    return enter
