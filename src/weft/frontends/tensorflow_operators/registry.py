"""The table of TensorFlow's operators that Weft imports, by their names.

@translates("Relu6")
def relu6(c: Call) -> Operand:
    x = c.tensor()
    return c.add("clip", x, c.scalar(0, x.dtype), c.scalar(6, x.dtype))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from weft.frontends.string_ids import Strings
from weft.frontends.tensorflow_operators.call import Call, ComplexTensor, Results
from weft.frontends.translation_table import entering
from weft.support.registry import Registry

Translation: TypeAlias = Callable[[Call], Results]

TABLE: Final = Registry[str, Translation]("TensorFlow operator")

COMPLEX: Final = Registry[str, Translation]("TensorFlow operator on complex numbers")
"""How operators are translated where complex numbers are among their inputs, if that is another way."""

ON_STRINGS: Final = Registry[str, Translation]("TensorFlow operator on strings")
"""How operators are translated where strings are among their inputs, if that is another way."""

OUTPUTS: Final[dict[str, tuple[str, ...]]] = {}
"""The names of the outputs of operators that have several, by which functions refer to them."""


def translates(*names: str, outputs: tuple[str, ...] = ()) -> Callable[[Translation], Translation]:
    """Enters the decorated function as the translation of the operators called *names*, which have these *outputs*."""
    OUTPUTS.update(dict.fromkeys(names, outputs) if outputs else {})
    return entering(TABLE, names)


def translates_complex(*names: str) -> Callable[[Translation], Translation]:
    """Enters the decorated function as the translation of the operators called *names* where an input is complex."""
    return entering(COMPLEX, names)


def translates_strings(*names: str) -> Callable[[Translation], Translation]:
    """Enters the decorated function as the translation of the operators called *names* where an input is of strings."""
    return entering(ON_STRINGS, names)


def translation_of(c: Call) -> Translation:
    """Returns the translation of a node's operator."""
    if c.op in COMPLEX and any(isinstance(x, ComplexTensor) for x in c.inputs):
        return COMPLEX[c.op]
    if c.op in ON_STRINGS and any(isinstance(x, Strings) for x in c.inputs):
        return ON_STRINGS[c.op]
    return TABLE[c.op]
