"""The error of Winograd's method with the weights of one layer, sampled against float64."""

from __future__ import annotations

import numpy as np

from weft.graph.graph import Array
from weft.ops.winograd import matrices

LARGEST_ERROR = 2e-5
"""The error that a layer may have by the method, relative to the largest output."""

SAMPLES = 16
"""Tiles and output channels that the error is sampled on."""


def sampled_error(w: Array, m: int) -> float:
    """Returns the largest error of some tiles computed in float32 with weight *w*, relative to the largest output.

    Weights [OC, IC, r, r] against normal inputs; the reference is a direct convolution in float64. All products are small
    ones in batches: for large ones BLAS starts threads, which on a busy machine takes far longer than the products.
    """
    r = w.shape[2]
    b, g, a = (np.array(x) for x in matrices(m, r))
    b32, a32 = b.astype(np.float32), a.astype(np.float32)
    chosen = w[:: max(1, w.shape[0] // SAMPLES)].astype(np.float64)
    x = np.random.default_rng(0).standard_normal((SAMPLES, w.shape[1], m + r - 1, m + r - 1))
    wide = (g @ chosen @ g.T).astype(np.float32)  # OC, IC, p, q
    v = b32 @ x.astype(np.float32) @ b32.T  # tile, IC, p, q
    products = v.transpose(2, 3, 0, 1) @ wide.transpose(2, 3, 1, 0)  # p, q, tile, OC
    got = a32 @ products.transpose(2, 3, 0, 1) @ a32.T  # tile, OC, i, j
    taps = [(i, j) for i in range(r) for j in range(r)]
    parts = [x[:, :, i : i + m, j : j + m].transpose(0, 2, 3, 1) @ chosen[:, :, i, j].T for i, j in taps]
    wanted = np.sum(parts, axis=0).transpose(0, 3, 1, 2)  # tile, OC, i, j
    return float(np.abs(got - wanted).max() / max(float(np.abs(wanted).max()), 1e-30))


def phase_weight(w: Array, strides: tuple[int, int]) -> Array:
    """Returns the weight [OC, sh * sw * IC, r, r] of the same convolution at stride 1, as `split_weight_phases` makes it."""
    sh, sw = strides
    rows, columns = (-(-k // s) for k, s in zip(w.shape[2:], strides, strict=True))
    wide = np.zeros((*w.shape[:2], rows * sh, columns * sw), w.dtype)
    wide[:, :, : w.shape[2], : w.shape[3]] = w
    parts = wide.reshape(*w.shape[:2], rows, sh, columns, sw).transpose(0, 3, 5, 1, 2, 4)
    return parts.reshape(w.shape[0], sh * sw * w.shape[1], rows, columns)
