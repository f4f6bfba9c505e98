"""How passes compute with constants: through an evaluator that the driver passes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from weft.graph.core.graph import Array
from weft.ops import Operator, TensorType

Fill: TypeAlias = Callable[[Sequence[Array | None], Sequence[Array]], None]
"""Computes from input arrays (None for an absent one) into output arrays; may be called from any thread."""


class Evaluator(Protocol):
    """Computes an operator on arrays; the meaning is that of the operator's tensor expression."""

    def prepare(self, op: Operator, inputs: Sequence[TensorType | None], attributes: dict[str, Any]) -> Fill:
        """Returns what computes *op* for inputs of these types (None for an optional input that is absent)."""

    def evaluate(self, op: Operator, inputs: Sequence[Array | None], attributes: dict[str, Any]) -> list[Array]:
        """Returns the outputs of *op* for *inputs* (None for an optional input that is absent)."""
