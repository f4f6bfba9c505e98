"""What a caller may ask of a compilation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """`opt_level` 0 leaves the graph as it is, 3 does everything; `verify` checks every program between the passes.

    `precision` "model" keeps the model's dtypes and may reassociate; "strict" forbids algorithms that reassociate.
    """

    opt_level: int = 3
    precision: str = "model"
    verify: bool = False
