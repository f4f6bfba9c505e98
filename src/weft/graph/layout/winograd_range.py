"""The numbers that Winograd's method makes of integers, which are to fit those of 16 bits, and its outputs those of 32."""

from __future__ import annotations

import numpy as np

from weft.graph.core.graph_values import Array
from weft.ops import WHOLE_POINTS, whole_matrices
from weft.support.dtypes import i16, i32, u8

LARGEST_INPUT = u8.int_range[1]
"""The largest difference between a byte and its zero point: rows of 16 bits hold such differences."""


def is_in_range(w: Array, m: int, size: tuple[int, int]) -> bool:
    """Tells whether a layer with weight *w* [OC, IC, r, r], of bytes at stride 1, is exact in tiles of *size*.

    Weights are transformed for tiles of *m* x *m* outputs. Sums may wrap around: outputs times the power of two that divides
    them in the end are to fit.
    """
    taps = w.shape[2]
    if m + taps - 2 > len(WHOLE_POINTS):
        return False
    largest, (by, _, _, ty), (bz, _, _, tz) = i16.int_range[1], *[whole_matrices(n, taps) for n in size]
    g = np.array(whole_matrices(m, taps)[1], np.float64)
    transformed = np.abs(g @ w.astype(np.float64) @ g.T).max(initial=0)
    read = _gain(by) * _gain(bz) * LARGEST_INPUT
    times = ty * tz
    made = LARGEST_INPUT * np.abs(w.astype(np.float64)).sum((1, 2, 3)).max(initial=0)
    return bool(max(transformed, read) <= largest and made * (times & -times) <= i32.int_range[1])


def _gain(matrix: object) -> float:
    """Returns the largest sum of absolute values in a row of *matrix*."""
    return float(np.abs(np.array(matrix)).sum(1).max())
