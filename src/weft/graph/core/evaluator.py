"""The protocol by which passes evaluate operators on constants; the driver passes the evaluator in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from weft.graph.core.graph_values import Array
from weft.ops import Operator, TensorType

Fill: TypeAlias = Callable[[Sequence[Array | None], Sequence[Array]], None]
"""Computes from input arrays (None for an absent one) into output arrays; may be called from any thread."""


class Evaluator(Protocol):
    """Computes operators on arrays, as their tensor expressions define them."""

    def prepare(self, op: Operator, inputs: Sequence[TensorType | None], attributes: dict[str, Any]) -> Fill:
        """Returns a compiled function for *op* on inputs of these types (None for an optional input that is absent)."""

    def evaluate(self, op: Operator, inputs: Sequence[Array | None], attributes: dict[str, Any]) -> list[Array]:
        """Returns the outputs of *op* for *inputs* (None for an optional input that is absent)."""
