"""Checks of attributes before a formula sees them: those of one name mean the same in every operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from weft.ops.shapes import check_distances, check_rank

_PER_DIMENSION: Final = frozenset({"axes", "perm", "repeats", "shape"})
"""Attributes that have an element for each dimension."""

_DISTANCES: Final = frozenset({"dilations", "kernel", "output_padding", "pads", "repeats", "strides"})
"""Attributes that are numbers of elements, which operators compute shapes with."""


def check_attributes(attributes: Iterable[tuple[str, Any]]) -> None:
    """Raises `TypeMismatch` for too many dimensions (`check_rank`), and for distances too large for index arithmetic."""
    for name, value in attributes:
        if name in _PER_DIMENSION and isinstance(value, tuple):
            check_rank(len(value))
        if name in _DISTANCES and isinstance(value, tuple):
            check_distances(name, [n for n in value if isinstance(n, int)])
