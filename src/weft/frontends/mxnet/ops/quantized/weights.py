"""Weights of quantised layers, made bytes while importing: by float32 in the order of MXNet's kernels, to round as they do.

They are NumPy's, not operators of the graph: a pass that folds these would fold the bytes' conversion to 32 bits with them, and
products of bytes would not be found.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.quantized_ranges import REACH, STEPS_OF_NOTHING
from weft.graph import Array
from weft.graph.builder import CompileTimeConstant, Operand
from weft.support.dtypes import i8

MOST_BIAS: Final = 1 << 30
"""The bound below which a bias in 32 bits is kept."""


def array_of(c: Call, x: Operand, what: str) -> Array:
    """Returns the elements of a constant; raises `ModelError` for a tensor that only a run computes, which is *what*."""
    if not isinstance(x, CompileTimeConstant) or x.symbolic:
        c.fail(f"{what} should be among the network's parameters", "save the network again")
    return x.array


def normalised(
    weight: Array, bias: Array | None, norm: tuple[Array, Array, Array, Array], epsilon: float, *, is_scaled: bool
) -> tuple[Array, Array]:
    """Returns filters and biases of a convolution with the normalisation after it (scale, shift, mean, variance) in it."""
    scale, shift, mean, variance = norm
    with np.errstate(all="ignore"):
        root = np.sqrt(variance.astype(np.float64) + epsilon)
        by = ((scale if is_scaled else np.ones_like(scale)) / root).astype(np.float32)
    less = -mean if bias is None else bias - mean
    return weight * _of_filters(by, weight), shift + by * less


def steps_of(weight: Array, axes: tuple[int, ...] | None = None) -> Array:
    """Returns how many steps a unit has, all of them over the largest element along *axes*."""
    size = np.abs(weight).max(axes, initial=0).astype(np.float32)
    steps = np.float32(REACH[i8]) / np.maximum(size, np.float32(1e-37))
    return np.where(size == 0, np.float32(STEPS_OF_NOTHING), steps).astype(np.float32)


def bounded(steps: Array, bias: Array | None, of_data: Operand) -> Array:
    """Returns steps of filters, fewer where a bias would be too large in those of the sums; those *of_data* may be unknown."""
    if bias is None or not isinstance(of_data, CompileTimeConstant):
        return steps
    with np.errstate(all="ignore"):
        most = np.float32(MOST_BIAS) / np.abs(bias) / of_data.array
    return np.minimum(steps, most).astype(np.float32)


def bytes_of(weight: Array, steps: Array) -> CompileTimeConstant:
    """Returns a weight in *steps*, one for all or one for each filter, rounded to even and saturated to signed bytes."""
    scaled = np.rint(weight * _of_filters(steps, weight))
    return CompileTimeConstant(np.clip(scaled, *i8.int_range).astype(np.int8))


def in_fewer_steps(weight: Array, by: Array) -> CompileTimeConstant:
    """Returns bytes times *by*, which is less than one, rounded away from zero."""
    scaled = weight * by.astype(np.float32)
    return CompileTimeConstant((np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))).astype(np.int8))


def of_groups(steps: Array, groups: int) -> Array:
    """Returns the steps that MXNet makes filters bytes by: those of all in the first group are the first filter's, and so on."""
    return steps if steps.ndim == 0 or groups < 2 else np.repeat(steps[:groups], steps.size // groups)


def _of_filters(v: Array, weight: Array) -> Array:
    return v.reshape(-1, *[1] * (weight.ndim - 1)) if v.ndim else v
