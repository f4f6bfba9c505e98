"""How passes compute with constants: through an evaluator that the driver passes in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from weft.graph.graph import Array
from weft.ops.registry import Operator


class Evaluator(Protocol):
    """Computes an operator on arrays; the meaning is that of the operator's tensor expression."""

    def evaluate(self, op: Operator, inputs: Sequence[Array | None], attributes: dict[str, Any]) -> list[Array]:
        """Returns the outputs of *op* for *inputs* (None for an optional input that is absent)."""
