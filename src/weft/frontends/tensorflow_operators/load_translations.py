"""Fills the table of TensorFlow's operators."""

from __future__ import annotations

from weft.frontends.tensorflow_operators import ops
from weft.frontends.tensorflow_operators.registry import TABLE
from weft.support.lazy_import import import_all


def load() -> None:
    """Imports all translations, once."""
    if not TABLE:
        import_all(ops.__path__, ops.__name__)
        TABLE.seal()
