"""The error of Winograd's method with the weights of one layer, sampled against float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.graph.core.graph_values import Array, Constant, Value
from weft.ops import matrices

LARGEST_ERROR = 2e-5
"""The largest error that a layer computed by the method may have, relative to the largest output."""

SAMPLES = 16
"""Tiles and output channels that the error is sampled on."""


def normal_inputs(channels: int, width: int) -> Array:
    """Returns the inputs of some tiles, [tile, *width*, *width*, *channels*], from a normal distribution: always the same."""
    return np.random.default_rng(0).standard_normal((SAMPLES, width, width, channels))


def sampled_error(
    w: Array, m: int, size: tuple[int, int] | None = None, draw: Callable[[int, int], Array] = normal_inputs
) -> float:
    """Returns the largest error of some tiles computed in float32 with weight *w*, relative to the largest output.

    Weights [OC, IC, r, r] are transformed for tiles of *m* x *m* outputs; normal inputs, as *draw* gives them (it may
    remember them), are to such tiles, or to those of *size* if these are smaller; the reference is a direct convolution in
    float64. All products are small ones in batches: for large ones BLAS starts threads, which on a busy machine takes far
    longer than the products.
    """
    r = w.shape[2]
    (by, gy, ay), (bz, gz, az) = ([np.array(x) for x in matrices(n, r, m)] for n in size or (m, m))
    by32, ay32, bz32, az32 = (x.astype(np.float32) for x in (by, ay, bz, az))
    chosen = np.ascontiguousarray(sampled_outputs(w).transpose(0, 2, 3, 1), np.float64)
    x = draw(w.shape[1], m + r - 1)[:, : len(by), : len(bz)]  # tile, p, q, IC
    wide = _transformed(gy, gz, chosen).astype(np.float32)  # OC, p, q, IC
    v = _transformed(by32, bz32, x.astype(np.float32))
    products = v.transpose(1, 2, 0, 3) @ wide.transpose(1, 2, 3, 0)  # p, q, tile, OC
    got = _transformed(ay32, az32, products.reshape(1, *products.shape[:2], -1))[0]  # i, j, tile and OC
    rows, columns = got.shape[:2]
    taps = [(i, j) for i in range(r) for j in range(r)]
    parts = [x[:, i : i + rows, j : j + columns] @ chosen[:, i, j].T for i, j in taps]
    wanted = np.sum(parts, axis=0).transpose(1, 2, 0, 3).reshape(got.shape)
    return float(np.abs(got - wanted).max() / max(float(np.abs(wanted).max()), 1e-30))


def typical_elements(w: Value) -> Array:
    """Returns the elements of a weight; of one that may change, normal numbers: an error is relative to outputs of any scale."""
    if isinstance(w, Constant) and w.is_fixed:
        return w.array
    return np.random.default_rng(0).standard_normal(w.static_shape, np.float32)


def sampled_outputs(w: Array) -> Array:
    """Returns the weights of some output channels of *w* [OC, ...]: all, where these are fewer than twice `SAMPLES`."""
    return w[:: max(1, w.shape[0] // SAMPLES)]


def taps_as_channels(w: Array) -> Array:
    """Returns a weight of images with the sums of *w*: the taps along the frames of volumes [OC, IC, KD, KH, KW] are channels."""
    if w.ndim == len(("OC", "IC", "KH", "KW")):
        return w
    return w.transpose(0, 2, 1, 3, 4).reshape(len(w), -1, *w.shape[3:])


def _transformed(rows: Array, columns: Array, x: Array) -> Array:
    """Returns `rows @ x @ columns.T` over the two middle dimensions of *x*, with the last one innermost throughout."""
    n, p, q, channels = x.shape
    moved: Array = columns @ (rows @ x.reshape(n, p, q * channels)).reshape(n, len(rows), q, channels)
    return moved


def phase_weight(w: Array, strides: tuple[int, int]) -> Array:
    """Returns the weight [OC, sh * sw * IC, r, r] of the same convolution at stride 1, as `split_weight_phases` makes it."""
    sh, sw = strides
    rows, columns = (-(-k // s) for k, s in zip(w.shape[2:], strides, strict=True))
    wide = np.zeros((*w.shape[:2], rows * sh, columns * sw), w.dtype)
    wide[:, :, : w.shape[2], : w.shape[3]] = w
    parts = wide.reshape(*w.shape[:2], rows, sh, columns, sw).transpose(0, 3, 5, 1, 2, 4)
    return parts.reshape(w.shape[0], sh * sw * w.shape[1], rows, columns)
