"""The table of TensorFlow Lite's operators that Weft imports, by their names in its schema.

@translates("QUANTIZE")
def quantize(c: LiteCall) -> Operand:
    return c.tensor()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from weft.frontends.tensorflow_operators.call import Results
from weft.frontends.tflite.call import LiteCall
from weft.frontends.translation_table import entering
from weft.support.registry import Registry

LiteTranslation: TypeAlias = Callable[[LiteCall], Results]

TABLE: Final = Registry[str, LiteTranslation]("TensorFlow Lite operator")


def translates(*names: str) -> Callable[[LiteTranslation], LiteTranslation]:
    """Enters the decorated function as the translation of the operators called *names*."""
    return entering(TABLE, names)
