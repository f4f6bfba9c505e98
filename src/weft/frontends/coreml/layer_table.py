"""The table of the layers of Core ML's neural networks that Weft imports, by the schema's numbers of their parameters' fields.

@layer(950, "softmaxND")
def softmax_nd(c: NetworkCall) -> Operand:
    return c.add("softmax", c.input(), axis=c.integer(1))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from weft.frontends.coreml.network_call import NetworkCall
from weft.frontends.translation_table import entering
from weft.graph.builder import Operand
from weft.support.registry import Registry

Layer: TypeAlias = Callable[[NetworkCall], Operand | tuple[Operand, ...]]

LAYERS: Final = Registry[str, Layer]("Core ML layer")
NAMES: Final[dict[int, str]] = {}
"""The names of layers by the numbers of their parameters' fields."""


def layer(number: int, name: str) -> Callable[[Layer], Layer]:
    """Enters the decorated function as the translation of layers whose parameters are field *number*."""
    NAMES[number] = name
    return entering(LAYERS, (name,))
