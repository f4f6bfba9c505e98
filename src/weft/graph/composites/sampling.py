"""Tables for resampling one axis: the input elements that each output element is made of, and their weights.

The coordinates and filters are those of ONNX's Resize: nearest, linear, and cubic by Keys ("Cubic convolution interpolation for
digital image processing", 1981), and Lanczos's, all of them widened by the scale where antialiasing is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Table: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


@dataclass(frozen=True)
class Axis:
    """One axis to resample: its sizes, the scale between them, and the part of it that is sampled (fractions from 0 to 1)."""

    size: int
    resized: int
    scale: float
    start: float = 0.0
    end: float = 1.0


@dataclass(frozen=True)
class Filter:
    """The interpolation filter: how an output element is computed from the input elements around it."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    steps: int = 0
    """Places between two elements for which there are weights, of which the nearest is taken; 0 for exact weights."""


TENSORFLOW_STEPS: Final = 1024
"""The steps of TensorFlow's table of the weights of cubic interpolation."""


def coordinates_of(axis: Axis, mode: str) -> Floats | None:
    """Returns the coordinate of each output element in the input; None for an unknown *mode*."""
    i = np.arange(axis.resized, dtype=np.float64)
    last, exact = axis.size - 1, axis.scale * axis.size
    half = (i + 0.5) / axis.scale - 0.5
    if mode == "half_pixel":
        return half
    if mode == "half_pixel_symmetric":
        return half + axis.size / 2 * (1 - axis.resized / exact)
    if mode == "tf_half_pixel_for_nn":  # in single precision, for products that are whole numbers may be just below
        return ((i + 0.5).astype(np.float32) * np.float32(1 / axis.scale)).astype(np.float64)
    if mode == "pytorch_half_pixel":
        return half if axis.resized > 1 else i
    if mode == "align_corners":
        return i * last / (exact - 1) if exact != 1 else i
    if mode == "align_corners_or_middle":
        return i * last / (axis.resized - 1) if axis.resized > 1 else i + last / 2
    if mode == "offset_corners":
        return (i + 0.5) * max(1, last) / axis.resized
    if mode == "asymmetric":
        return i / axis.scale
    if mode == "asymmetric_in_single":
        return (i.astype(np.float32) * np.float32(1 / axis.scale)).astype(np.float64)
    if mode == "tf_crop_and_resize":
        span = (axis.end - axis.start) * last
        return axis.start * last + (i * span / (exact - 1) if exact != 1 else span / 2 + i)
    return None


NEAREST: Final[dict[str, Callable[[Floats], Floats]]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def nearest_of(axis: Axis, x: Floats, mode: str) -> Table:
    """Returns the nearest input element of each output element at *x*."""
    return np.clip(NEAREST[mode](x), 0, axis.size - 1).astype(np.int64)


REACH: Final = {"linear": 1, "cubic": 2, "lanczos3": 3, "lanczos5": 5}
"""How far from its centre each filter reaches, in elements; those of Lanczos are windowed sincs."""


def taps_of(axis: Axis, x: Floats, f: Filter) -> tuple[Table, Floats]:
    """Returns the input elements [resized, taps] and their weights of each output element at *x*."""
    shrink = min(axis.scale, 1.0) if f.antialias else 1.0
    reach = REACH[f.mode]
    first = math.floor(-reach / shrink) + 1
    base = np.floor(x)
    if f.steps:
        x = base + np.rint((x - base) * f.steps) / f.steps
    at = base[:, None] + np.arange(first, 2 - first)
    distance = np.abs(at - x[:, None]) * shrink
    weights = _weights(distance, f)
    if f.exclude_outside:
        weights = np.where((at >= 0) & (at < axis.size), weights, 0)
    if f.exclude_outside or f.antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    used = np.flatnonzero(weights.any(axis=0))
    low, high = int(used[0]), int(used[-1]) + 1
    return np.clip(at, 0, axis.size - 1).astype(np.int64)[:, low:high], weights[:, low:high]


def _weights(distance: Floats, f: Filter) -> Floats:
    if f.mode == "linear":
        return np.clip(1 - distance, 0, 1)
    if f.mode == "cubic":
        return _cubic(distance, f.cubic)
    a = REACH[f.mode]
    return np.where(distance < a, np.sinc(distance) * np.sinc(distance / a), 0)


def _cubic(d: Floats, a: float) -> Floats:
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))
