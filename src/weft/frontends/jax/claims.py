"""Tells StableHLO by its text, its bytecode and the objects that JAX makes of functions, without the package jax."""

from __future__ import annotations

import re
from typing import Final

from weft.frontends.content import is_instance

READS: Final = "StableHLO's text or bytecode, what JAX lowers or exports, or a jax.jit function with example_inputs"

BYTECODE: Final = b"ML\xefR"
LOWERED: Final = "jax._src.stages.Lowered"
EXPORTED: Final = "jax._src.export._export.Exported"
OURS: Final = "weft.frontends.jax.lowered_function.LoweredFunction"
JITTED: Final = "jaxlib._jax.PjitFunction"

_TEXT: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:\s|//[^\n]*\n|#\w[\w.]* = [^\n]*\n)*(?:module\b|func\.func\b)")


def claims(model: object, head: bytes) -> bool:
    """Tells whether *head* begins as MLIR's text or bytecode does, or *model* is an object of JAX."""
    if _TEXT.match(head) is not None or head.startswith(BYTECODE):
        return True
    return any(is_instance(model, name) for name in (LOWERED, EXPORTED, JITTED, OURS))
