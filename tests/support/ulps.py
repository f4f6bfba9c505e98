"""How far results are from the exact ones, in units in the last place of their type."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from weft.support.dtypes import DType, bf16, f16, f32, f64

Array = np.ndarray[Any, np.dtype[Any]]

FLOATS: Final = (f16, bf16, f32, f64)


def ulp(x: Array, dtype: DType) -> Array:
    """Returns the distance between the floats of *dtype* around each of *x*, numbers of float64."""
    info: Any = ml_dtypes.finfo(dtype.numpy)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.abs(np.where(x == 0, 1.0, x))))
    least, most = float(info.minexp), float(info.maxexp) - 1
    exponent = np.where(x == 0, least, np.clip(np.where(np.isfinite(exponent), exponent, most), least, most))
    return np.asarray(np.exp2(exponent - info.nmant))


def ulps_off(found: Array, exact: Array, dtype: DType) -> Array:
    """Returns how far *found*, of *dtype*, is from what is *exact*, of float64, in units in the last place.

    It is infinite where one of the two is NaN, or an infinity of the type, and the other is not.
    """
    assert found.dtype == dtype.numpy, (found.dtype, dtype)
    assert found.shape == exact.shape, (found.shape, exact.shape)
    wide = found.astype(np.float64)
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype.numpy).astype(np.float64)
        off = np.abs(wide - exact) / ulp(exact, dtype)
    same = (wide == rounded) | (np.isnan(wide) & np.isnan(exact))
    return np.where(same, np.minimum(np.nan_to_num(off, nan=0.0, posinf=0.0), 0.5), np.nan_to_num(off, nan=np.inf))
