"""Operators written plainly with NumPy: loops over windows, sums over slices; what the operator library is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Ints: TypeAlias = Sequence[int]


def padded(x: Array, pads: Ints, value: float = 0.0) -> Array:
    """Pads the dimensions after the first two."""
    n = len(pads) // 2
    width = [(0, 0), (0, 0), *zip(pads[:n], pads[n:], strict=True), *[(0, 0)] * (x.ndim - 2 - n)]
    return np.pad(x, width, constant_values=value)


def conv(x: Array, w: Array, bias: Array | None, strides: Ints, pads: Ints, dilations: Ints, group: int) -> Array:
    """x [N, C, *S], w [OC, C/group, *K]."""
    p = padded(x, pads).astype(np.float64)
    kernel = w.shape[2:]
    outs = [
        (s - d * (k - 1) - 1) // st + 1 for s, k, st, d in zip(p.shape[2:], kernel, strides, dilations, strict=True)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *outs))
    per_in, per_out = w.shape[1], w.shape[0] // group
    for g, k in product(range(group), np.ndindex(*kernel)):
        where = [slice(a * d, a * d + st * o, st) for a, d, st, o in zip(k, dilations, strides, outs, strict=True)]
        taken = p[(slice(None), slice(g * per_in, (g + 1) * per_in), *where)]
        weight = w[(slice(g * per_out, (g + 1) * per_out), slice(None), *k)].astype(np.float64)
        y[:, g * per_out : (g + 1) * per_out] += np.einsum("oc,nc...->no...", weight, taken)
    return y if bias is None else y + bias.reshape(-1, *[1] * len(outs))


def conv_transpose(
    x: Array, w: Array, bias: Array | None, strides: Ints, pads: Ints, dilations: Ints, group: int, extra: Ints
) -> Array:
    """x [N, C, *S], w [C, OC/group, *K]: every input element adds its kernel to the output."""
    n = x.ndim - 2
    kernel, per_out, per_in = w.shape[2:], w.shape[1], x.shape[1] // group
    full = [
        (s - 1) * st + d * (k - 1) + 1 + e
        for s, st, d, k, e in zip(x.shape[2:], strides, dilations, kernel, extra, strict=True)
    ]
    y = np.zeros((x.shape[0], per_out * group, *full))
    for g, k in product(range(group), np.ndindex(*kernel)):
        where = [
            slice(a * d, a * d + st * (s - 1) + 1, st)
            for a, d, st, s in zip(k, dilations, strides, x.shape[2:], strict=True)
        ]
        weight = w[(slice(g * per_in, (g + 1) * per_in), slice(None), *k)].astype(np.float64)
        given = x[:, g * per_in : (g + 1) * per_in].astype(np.float64)
        y[(slice(None), slice(g * per_out, (g + 1) * per_out), *where)] += np.einsum("co,nc...->no...", weight, given)
    y = y[(slice(None), slice(None), *[slice(pads[d], full[d] - pads[n + d]) for d in range(n)])]
    return y if bias is None else y + bias.reshape(-1, *[1] * n)


def windows(x: Array, kernel: Ints, strides: Ints, pads: Ints, of: Callable[..., Any], value: float) -> Array:
    """Applies *of* to each window of the dimensions after the first two."""
    n = len(kernel)
    p = padded(x, pads, value)
    outs = [(s - k) // st + 1 for s, k, st in zip(p.shape[2:], kernel, strides, strict=False)]
    y = np.zeros((*x.shape[:2], *outs, *x.shape[2 + n :]), x.dtype)
    for at in np.ndindex(*outs):
        where = [slice(a * st, a * st + k) for a, st, k in zip(at, strides, kernel, strict=True)]
        y[(slice(None), slice(None), *at)] = of(p[(slice(None), slice(None), *where)], axis=tuple(range(2, 2 + n)))
    return y


def blocks(x: Array, axis: int, size: int) -> Array:
    """Splits *axis* into blocks of *size*, padded with zeros, the block's elements last."""
    rest = -x.shape[axis] % size
    width = [(0, rest if d == axis else 0) for d in range(x.ndim)]
    p = np.pad(x, width)
    split = p.reshape(*p.shape[:axis], p.shape[axis] // size, size, *p.shape[axis + 1 :])
    return np.moveaxis(split, axis + 1, -1)
