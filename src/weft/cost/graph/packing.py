"""How matrices are cut in panels for products, and from how many rows of the other operand on packing pays.

The figures were fitted on one core of a server of Intel's Emerald Rapids kind and on one of AMD's Zen 4, 2026-11-22
(docs/design/0014 and 0041).
"""

from __future__ import annotations

from typing import Final

from weft.targets import Target

VECTOR_TIMES: Final = {4: 1.0, 3: 1.02, 2: 1.08, 1: 1.35}
"""By the vectors in a row of a panel, what each of them takes: the fewer there are, the more of the time goes into loads."""

PANEL_VECTORS: Final = max(VECTOR_TIMES)
"""The most vectors in a row of a panel, and of a register tile, which goes along one."""

FEWEST_ROWS: Final = 192
"""Rows from which on a matrix that is not constant is packed: with fewer, each of its elements is used too seldom."""

FEWEST_ROWS_PAGES_APART: Final = 64
"""The same for one whose rows share a few sets of the caches, so that those of a panel drive one another out."""

FEWEST_ROWS_REARRANGED: Final = 4
"""The same for a matrix that is rearranged anyhow, which packing then does on the way."""


def panel_width(columns: int, lanes: int) -> int:
    """Returns the columns in a panel: so many vectors that all panels, padding included, take least; or a power of two."""
    if columns <= lanes:
        return 1 << (columns - 1).bit_length()
    return lanes * min(VECTOR_TIMES, key=lambda v: -(-columns // (v * lanes)) * v * VECTOR_TIMES[v])


def least_packed_rows(row_bytes: int, target: Target, *, rearranged: bool) -> int:
    """Returns how many rows the left operand must have for a right one, whose rows have *row_bytes*, to be worth packing.

    Where the right operand is *rearranged* to that order only, packing replaces that.
    """
    if rearranged:
        return FEWEST_ROWS_REARRANGED
    return FEWEST_ROWS if row_bytes % target.caches.set_period else FEWEST_ROWS_PAGES_APART
