"""GEMV from memory: one row times a matrix that no cache holds, read a few rows side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

ROWS = 8
"""Rows read side by side: 4 of them read 21 GB/s from memory, 8 and 16 read 24, tiles of columns 14."""

VECTORS = 2
"""Vectors of each row in a step."""

SUMS_SHARE = 0.25
"""The part of the second-level cache that the sums may fill."""


@dataclass(frozen=True)
class Gemv(Decision):
    """The number of pieces that the columns are cut into, the rows read side by side, and the vectors of each in a step."""

    question = "the pieces of a matrix-vector product"
    pieces: int
    rows: int
    vectors: int


def is_far(row_bytes: int, matrix_bytes: int, target: Target) -> bool:
    """Tells whether each row of a matrix takes up pages of its own, and the matrix does not stay in the last cache."""
    return row_bytes >= target.caches.page and matrix_bytes > target.caches.l3


def gemv_plans(row_bytes: int, others: int, target: Target) -> Iterator[Candidate[Gemv]]:
    """Yields the cuts of columns, of *row_bytes* in all, for *others* independent products; the cycles count their starts."""
    pieces = max(-(-row_bytes // int(SUMS_SHARE * target.caches.l2)), -(-target.cores // others))
    for rows in (ROWS, ROWS // 2):
        yield Candidate(Gemv(pieces, rows, VECTORS), row_bytes / rows)
