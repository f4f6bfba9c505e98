"""A function of JAX that was lowered for Weft."""

from __future__ import annotations

from dataclasses import dataclass

from weft.graph import Array


@dataclass(frozen=True)
class LoweredFunction:
    """The text of a module whose first arguments are *weights*; *names* are those of the others."""

    text: str
    weights: tuple[Array, ...]
    names: tuple[str, ...]
