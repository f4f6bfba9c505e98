"""Darknet's layers in plain NumPy, written from Darknet's sources: the oracle of the importer.

`Reference` draws the weights as it goes, in the file's order, and the statistics of normalisations from the values that they
normalise, so that signals keep their size through all layers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
Options = dict[str, str]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _stair(x: Array) -> Array:
    n = np.floor(x)
    return np.where(n % 2 == 0, np.floor(x / 2), (x - n) + np.floor(x / 2))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "linear": lambda x: x,
    "logistic": sigmoid,
    "loggy": lambda x: 2 * sigmoid(x) - 1,
    "relu": lambda x: x * (x > 0),
    "relu6": lambda x: np.minimum(np.maximum(x, 0), 6),
    "relie": lambda x: np.where(x > 0, x, 0.01 * x),
    "leaky": lambda x: np.where(x > 0, x, 0.1 * x),
    "ramp": lambda x: x * (x > 0) + 0.1 * x,
    "elu": lambda x: np.where(x >= 0, x, np.exp(np.minimum(x, 0)) - 1),
    "selu": lambda x: np.where(x >= 0, 1.0507 * x, 1.0507 * 1.6732 * (np.exp(np.minimum(x, 0)) - 1)),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(0.797885 * x + 0.035677 * x**3)),
    "tanh": np.tanh,
    "hardtan": lambda x: np.clip(x, -1, 1),
    "lhtan": lambda x: np.where(x < 0, 0.001 * x, np.where(x > 1, 0.001 * (x - 1) + 1, x)),
    "plse": lambda x: np.where(x < -4, 0.01 * (x + 4), np.where(x > 4, 0.01 * (x - 4) + 1, 0.125 * x + 0.5)),
    "stair": _stair,
    "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "hard_mish": lambda x: np.where(x > 0, x, np.where(x > -2, x * x / 2 + x, 0)),
}


def windows(
    x: Array, size: int, stride: tuple[int, int], pads: tuple[int, int], fill: float, dilation: int = 1
) -> Array:
    """Returns [N, C, size * size, OH, OW]: the elements of all windows; *pads* are those before and after."""
    reach = dilation * (size - 1) + 1
    p = np.pad(x, ((0, 0), (0, 0), pads, pads), constant_values=fill)
    oh, ow = [(n - reach) // s + 1 for n, s in zip(p.shape[2:], stride, strict=True)]
    taps = [
        p[:, :, i * dilation :, j * dilation :][
            :, :, : (oh - 1) * stride[0] + 1 : stride[0], : (ow - 1) * stride[1] + 1 : stride[1]
        ]
        for i in range(size)
        for j in range(size)
    ]
    return np.stack(taps, 2)


class Reference:
    """Runs a network of (type, options) in double precision, and keeps its weights and the results of all layers."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.weights: list[Array] = []
        self.results: list[Array] = []

    def run(self, sections: list[tuple[str, Options]], x: Array) -> list[Array]:
        """Returns the results of all layers."""
        for kind, options in sections[1:]:
            x = getattr(self, kind)(x, options)
            self.results.append(x)
        return self.results

    def write(self, path: Path, version: tuple[int, int, int] = (0, 2, 5)) -> None:
        """Writes the weights that were drawn."""
        seen = struct.pack("<q" if version[1] >= 2 else "<i", 32013312)
        path.write_bytes(
            struct.pack("<iii", *version) + seen + b"".join(w.astype("<f4").tobytes() for w in self.weights)
        )

    def _draw(self, shape: tuple[int, ...], spread: float) -> Array:
        self.weights.append((self.rng.standard_normal(shape) * spread).astype(np.float32))
        return self.weights[-1].astype(np.float64)

    def _affine(
        self, o: Options, count: int, weight: tuple[int, ...], fan: int, product: Callable[[Array], Array]
    ) -> Array:
        """Draws biases, statistics and weights in the file's order, and applies them."""
        at = len(self.weights)
        bias = self._draw((count,), 0.3).reshape(-1, *[1] * (2 if len(weight) == 4 else 0))
        y = product(self._draw(weight, 1 / np.sqrt(fan)))
        if o.get("batch_normalize") == "1":
            axes = tuple(d for d in range(y.ndim) if d != 1)
            found = [self.rng.uniform(0.5, 1.5, count), y.mean(axes), y.var(axes) + 0.1]
            drawn = [a.astype(np.float32) for a in found]
            place = at + 1 if len(weight) == 4 else at + 2
            self.weights[place:place] = drawn
            scale, mean, variance = [a.astype(np.float64).reshape(bias.shape) for a in drawn]
            y = (y - mean) / np.sqrt(variance + 1e-5) * scale
        return ACTIVATIONS[o.get("activation", "logistic")](y + bias)

    def convolutional(self, x: Array, o: Options) -> Array:
        size, n, groups, d = int(o["size"]), int(o["filters"]), int(o.get("groups", 1)), int(o.get("dilation", 1))
        stride = int(o.get("stride_y", o.get("stride", 1))), int(o.get("stride_x", o.get("stride", 1)))
        pad = (size // 2 if o.get("pad") == "1" else int(o.get("padding", 0))) * d

        def product(w: Array) -> Array:
            parts = zip(np.split(x, groups, 1), np.split(w, groups), strict=True)
            return np.concatenate(
                [
                    np.einsum(
                        "nckhw,ock->nohw", windows(a, size, stride, (pad, pad), 0, d), b.reshape(*b.shape[:2], -1)
                    )
                    for a, b in parts
                ],
                1,
            )

        channels = x.shape[1] // groups
        return self._affine(o, n, (n, channels, size, size), channels * size * size, product)

    def deconvolutional(self, x: Array, o: Options) -> Array:
        size, n, stride, pad = int(o["size"]), int(o["filters"]), int(o["stride"]), int(o.get("padding", 0))
        h, w = [(e - 1) * stride + size for e in x.shape[2:]]

        def product(weight: Array) -> Array:
            y = np.zeros((x.shape[0], n, h, w))
            for i in range(size):
                for j in range(size):
                    part = np.einsum("nchw,co->nohw", x, weight[:, :, i, j])
                    y[
                        :,
                        :,
                        i : i + (x.shape[2] - 1) * stride + 1 : stride,
                        j : j + (x.shape[3] - 1) * stride + 1 : stride,
                    ] += part
            return y[:, :, pad : h - pad, pad : w - pad]

        return self._affine(o, n, (x.shape[1], n, size, size), x.shape[1] * size, product)

    def connected(self, x: Array, o: Options) -> Array:
        flat, n = x.reshape(x.shape[0], -1), int(o["output"])
        return self._affine(o, n, (n, flat.shape[1]), flat.shape[1], lambda w: flat @ w.T)

    def batchnorm(self, x: Array, o: Options) -> Array:
        shape = (x.shape[1],)
        b, s, m, v = [self._draw(shape, 0.5) for _ in range(4)]
        self.weights[-1] = np.abs(self.weights[-1]) + np.float32(0.1)
        v = self.weights[-1].astype(np.float64)
        b, s, m, v = [a.reshape(-1, 1, 1) for a in (b, s, m, v)]
        return (x - m) / np.sqrt(v + 1e-5) * s + b

    def _pooled(self, x: Array, o: Options, fill: float) -> Array:
        stride = int(o.get("stride", 1))
        size = int(o.get("size", stride))
        padding = int(o.get("padding", size - 1))
        both = int(o.get("stride_y", stride)), int(o.get("stride_x", stride))
        return windows(x, size, both, (padding // 2, padding - padding // 2), fill)

    def maxpool(self, x: Array, o: Options) -> Array:
        return self._pooled(x, o, -np.inf).max(2)

    def local_avgpool(self, x: Array, o: Options) -> Array:
        return np.nanmean(self._pooled(x, o, np.nan), 2)

    def avgpool(self, x: Array, o: Options) -> Array:
        return x.mean((2, 3), keepdims=True)

    def lrn(self, x: Array, o: Options) -> Array:
        half, c = int(o["size"]) // 2, x.shape[1]
        sums = np.stack([(x[:, max(k - half, 0) : min(k + half + 1, c)] ** 2).sum(1) for k in range(c)], 1)
        sums -= x[:, half : half + 1] ** 2  # which the first of the running sums lacks
        return x * (float(o["kappa"]) + float(o["alpha"]) * sums) ** -float(o["beta"])

    def softmax(self, x: Array, o: Options) -> Array:
        y = x if o.get("spatial") == "1" else x.reshape(x.shape[0], -1)
        groups = int(o.get("groups", 1))
        e = [np.exp(p / float(o.get("temperature", 1))) for p in np.split(y, groups, 1)]
        return np.concatenate([p / p.sum(1, keepdims=True) for p in e], 1)

    def activation(self, x: Array, o: Options) -> Array:
        return ACTIVATIONS[o["activation"]](x)

    def logxent(self, x: Array, o: Options) -> Array:
        return sigmoid(x)

    def l2norm(self, x: Array, o: Options) -> Array:
        return x / np.sqrt((x**2).sum(1, keepdims=True))

    def _from(self, text: str) -> Array:
        n = int(text)
        return self.results[n if n >= 0 else len(self.results) + n]

    def route(self, x: Array, o: Options) -> Array:
        groups, part = int(o.get("groups", 1)), int(o.get("group_id", 0))
        return np.concatenate([np.split(self._from(t), groups, 1)[part] for t in o["layers"].split(",")], 1)

    def shortcut(self, x: Array, o: Options) -> Array:
        y = x.copy()
        for t in o["from"].split(","):
            other = self._from(t)
            step, c = max(other.shape[3] // x.shape[3], 1), min(other.shape[1], x.shape[1])
            y[:, :c] += other[:, :c, ::step, ::step]
        return ACTIVATIONS[o.get("activation", "linear")](y)

    def scale_channels(self, x: Array, o: Options) -> Array:
        return ACTIVATIONS[o.get("activation", "linear")](self._from(o["from"]) * x)

    sam = scale_channels

    def upsample(self, x: Array, o: Options) -> Array:
        return x.repeat(int(o["stride"]), 2).repeat(int(o["stride"]), 3) * float(o.get("scale", 1))

    def reorg(self, x: Array, o: Options) -> Array:
        """The loop of blas.c, its index arithmetic as it stands there."""
        s = int(o["stride"])
        n, c, h, w = x.shape
        out, flat = np.zeros((n, c * h * w)), x.reshape(n, -1)
        for k in range(c):
            c2, offset = k % (c // (s * s)), k // (c // (s * s))
            for j in range(h):
                for i in range(w):
                    w2, h2 = i * s + offset % s, j * s + offset // s
                    out[:, i + w * (j + h * k)] = flat[:, w2 + w * s * (h2 + h * s * c2)]
        return out.reshape(n, c * s * s, h // s, w // s)

    def reorg3d(self, x: Array, o: Options) -> Array:
        s = int(o["stride"])
        return np.concatenate([x[:, :, i::s, j::s] for i in range(s) for j in range(s)], 1)

    def crop(self, x: Array, o: Options) -> Array:
        h, w = int(o["crop_height"]), int(o["crop_width"])
        top, left = (x.shape[2] - h) // 2, (x.shape[3] - w) // 2
        y = x[:, :, top : top + h, left : left + w]
        return y if o.get("noadjust") == "1" else 2 * y - 1

    def dropout(self, x: Array, o: Options) -> Array:
        return x

    cost = empty = silence = dropout

    def yolo(self, x: Array, o: Options) -> Array:
        n, s = len(o["mask"].split(",")), float(o.get("scale_x_y", 1))
        y = x.reshape(x.shape[0], n, -1, *x.shape[2:]).copy()
        if o.get("new_coords") != "1":
            y[:, :, :2], y[:, :, 4:] = sigmoid(y[:, :, :2]), sigmoid(y[:, :, 4:])
        y[:, :, :2] = y[:, :, :2] * s - 0.5 * (s - 1)
        return y.reshape(x.shape)

    def region(self, x: Array, o: Options) -> Array:
        y = x.reshape(x.shape[0], int(o["num"]), -1, *x.shape[2:]).copy()
        y[:, :, :2], y[:, :, 4] = sigmoid(y[:, :, :2]), sigmoid(y[:, :, 4])
        if o.get("softmax") == "1":
            e = np.exp(y[:, :, 5:])
            y[:, :, 5:] = e / e.sum(2, keepdims=True)
        else:
            y[:, :, 5:] = sigmoid(y[:, :, 5:])
        return y.reshape(x.shape)

    def detection(self, x: Array, o: Options) -> Array:
        return x.reshape(x.shape[0], -1)

    conv, deconv, conn, max, local_avg, avg = convolutional, deconvolutional, connected, maxpool, local_avgpool, avgpool
    normalization, soft, residual, reorg_old = lrn, softmax, shortcut, reorg
