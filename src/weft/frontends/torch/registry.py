"""The table of PyTorch operators that Weft imports, by the names that an exported program has for them.

@translates("aten.relu.default")
def relu(c: Call) -> Results:
    return c.add("relu", c.tensor("self"))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from weft.frontends.torch.call import Call
from weft.frontends.translation_table import entering
from weft.graph.builder import Results
from weft.support.registry import Registry

Translation: TypeAlias = Callable[[Call], Results]

_OTHERS: Final = ("_operator.", "math.", "prims.", "torch.", "transformers.", "quantized_decomposed.")
"""How names begin that are not of `aten`: Python's functions of sizes, the primitives of decompositions, and other packages."""

TABLE: Final = Registry[str, Translation]("PyTorch operator")


def translates(*names: str) -> Callable[[Translation], Translation]:
    """Enters the decorated function as the translation of the operators *names*; of `aten`, default, where they do not say."""
    return entering(TABLE, names, spelled)


def spelled(name: str) -> str:
    """Returns the whole name of an operator: of `aten`, and the default one, where *name* does not say."""
    return name if name.startswith(_OTHERS) else f"aten.{name if '.' in name else f'{name}.default'}"
