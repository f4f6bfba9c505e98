"""How far operators are fused, merged and expanded."""

from __future__ import annotations

from typing import Final

LARGEST_RECOMPUTATION: Final = 2
"""A producer is not recomputed for an output of more elements than so many times its own."""

LARGEST_GROUP: Final = 64
"""Nodes in a group; larger kernels take long to compile and gain nothing."""

LONG_ROW: Final = 4
"""Vectors of a last axis from which on vectors along it are full often enough, so that no axes are merged with it."""

LARGEST_POWER: Final = 4
"""Exponents up to this one are multiplied out."""
