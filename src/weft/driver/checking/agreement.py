"""Whether two arrays agree up to rounding in a different order."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.support.dtypes import DType, bf16, f16, f32, f64, from_numpy

Array = np.ndarray[Any, np.dtype[Any]]

TOLERANCES: Final[dict[DType, float]] = {f64: 1e-9, f32: 1e-3, f16: 2e-2, bf16: 5e-2}
"""How far floats may be apart: as parts of the element, and of a tenth of the greatest finite one."""

OTHER_FLOATS: Final = 0.25
"""The same of floats of 8 bits and fewer, of which neighbours are that far apart."""


def difference(made: Array, wanted: Array, tolerance: float | None = None) -> str | None:
    """Returns in words how *made* differs from *wanted*; None where they agree.

    Floats may be apart by *tolerance*, by default that of their type (`TOLERANCES`), and NaN and infinities must be in the same
    places. Integers of 8 bits may differ by one, as quantised numbers between two do; others are equal.
    """
    if made.shape != wanted.shape or made.dtype != wanted.dtype:
        return f"it is {made.dtype}{list(made.shape)}, not {wanted.dtype}{list(wanted.shape)}"
    if made.dtype == object:
        return None if made.tolist() == wanted.tolist() else "its strings are others"
    if from_numpy(made.dtype).holds_floats:
        given = TOLERANCES.get(from_numpy(made.dtype), OTHER_FLOATS)
        return _of_floats(made.astype(np.float64), wanted.astype(np.float64), given if tolerance is None else tolerance)
    apart = np.abs(made.astype(np.float64) - wanted.astype(np.float64))
    return _told(apart > (1 if made.dtype.itemsize == 1 and made.dtype != bool else 0), made, wanted)


def _of_floats(made: Array, wanted: Array, tolerance: float) -> str | None:
    finite = np.isfinite(wanted)
    with np.errstate(all="ignore"):
        scale = float(np.abs(wanted[finite]).max(initial=0.0))
        near = np.abs(made - wanted) <= tolerance * (np.abs(wanted) + scale / 10)
    same = (made == wanted) | (np.isnan(made) & np.isnan(wanted))
    return _told(~np.where(finite, near | same, same), made, wanted)


def _told(wrong: Array, made: Array, wanted: Array) -> str | None:
    count = int(wrong.sum())
    if not count:
        return None
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    place = f"[{', '.join(str(int(k)) for k in at)}]"
    return f"{count} of {wrong.size} elements differ; the first, {place}, is {made[at]} and should be {wanted[at]}"
