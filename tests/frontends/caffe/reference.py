"""Caffe's layers in plain NumPy, written from Caffe's documentation of them: the oracle of the importer.

`Reference` draws the blobs as it goes, and the statistics of normalisations from the values that they normalise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = Any
Fields = dict[str, Any]


class Layer(NamedTuple):
    """A layer of a network: the fields beside the first four are written as they are."""

    type: str
    name: str
    bottoms: list[str]
    tops: list[str]
    fields: Fields


class Reference:
    """Runs a network in double precision, and keeps the blobs of its layers and what is under each name."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.blobs: dict[str, list[Array]] = {}
        self.values: dict[str, Array] = {}

    def run(self, layers: list[Layer], inputs: dict[str, Array]) -> dict[str, Array]:
        """Returns the blobs that no layer takes."""
        unread: dict[str, None] = dict.fromkeys(inputs)
        self.values = dict(inputs)
        for one in layers:
            if one.type == "Input":
                continue
            self.blobs[one.name] = []
            own: Fields = next(
                (v for k, v in one.fields.items() if k.endswith("_param") and k != "transform_param"), {}
            )
            made = getattr(self, one.type)([self.values[b] for b in one.bottoms], own, one)
            for b in one.bottoms:
                unread.pop(b, None)
            for top, y in zip(one.tops, made if isinstance(made, list) else [made], strict=True):
                self.values[top] = y
                unread[top] = None
        return {name: self.values[name] for name in unread}

    def _draw(self, one: Layer, shape: tuple[int, ...], spread: float, middle: float = 0.0) -> Array:
        blob = (middle + self.rng.standard_normal(shape) * spread).astype(np.float32)
        self.blobs[one.name].append(blob)
        return blob.astype(np.float64)

    def Convolution(self, x: list[Array], p: Fields, one: Layer) -> Array:
        n, g, (kh, kw), (sh, sw), (ph, pw), (dh, dw) = _window(p)
        w = self._draw(one, (n, x[0].shape[1] // g, kh, kw), 1 / math.sqrt(x[0].shape[1] // g * kh * kw))
        b = self._draw(one, (n,), 0.3) if p.get("bias_term", True) else np.zeros(n)
        padded = np.pad(x[0], ((0, 0), (0, 0), (ph, ph), (pw, pw)))
        oh = (padded.shape[2] - dh * (kh - 1) - 1) // sh + 1
        ow = (padded.shape[3] - dw * (kw - 1) - 1) // sw + 1
        y = np.zeros((x[0].shape[0], n, oh, ow))
        for k, (part, weight) in enumerate(zip(np.split(padded, g, 1), np.split(w, g), strict=True)):
            out = y[:, k * n // g : (k + 1) * n // g]
            for i in range(kh):
                for j in range(kw):
                    at = part[:, :, i * dh :, j * dw :][:, :, : (oh - 1) * sh + 1 : sh, : (ow - 1) * sw + 1 : sw]
                    out += np.einsum("nchw,oc->nohw", at, weight[:, :, i, j])
        return y + b.reshape(-1, 1, 1)

    def DepthwiseConvolution(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return self.Convolution(x, {**p, "group": x[0].shape[1]}, one)

    ConvolutionDepthwise = DepthwiseConvolution

    def Deconvolution(self, x: list[Array], p: Fields, one: Layer) -> Array:
        n, g, (kh, kw), (sh, sw), (ph, pw), _ = _window(p)
        c, h, w = x[0].shape[1:]
        weight = self._draw(one, (c, n // g, kh, kw), 1 / math.sqrt(c // g * kh * kw / sh / sw))
        b = self._draw(one, (n,), 0.3) if p.get("bias_term", True) else np.zeros(n)
        y = np.zeros((x[0].shape[0], n, (h - 1) * sh + kh, (w - 1) * sw + kw))
        for channel in range(c):
            for o in range(n // g):
                to = channel // (c // g) * (n // g) + o
                for i in range(h):
                    for j in range(w):
                        patch = x[0][:, channel, i, j, None, None] * weight[channel, o]
                        y[:, to, i * sh : i * sh + kh, j * sw : j * sw + kw] += patch
        return y[:, :, ph : y.shape[2] - ph, pw : y.shape[3] - pw] + b.reshape(-1, 1, 1)

    def InnerProduct(self, x: list[Array], p: Fields, one: Layer) -> Array:
        flat = x[0].reshape(x[0].shape[0], -1)
        w = self._draw(one, (p["num_output"], flat.shape[1]), 1 / math.sqrt(flat.shape[1]))
        if p.get("transpose"):
            self.blobs[one.name][-1] = np.ascontiguousarray(self.blobs[one.name][-1].T)
        return flat @ w.T + self._draw(one, (p["num_output"],), 0.3)

    def Pooling(self, x: list[Array], p: Fields, one: Layer) -> Array:
        mean = p.get("pool", "MAX") == "AVE"
        if p.get("global_pooling"):
            return x[0].mean((2, 3), keepdims=True) if mean else x[0].max((2, 3), keepdims=True)
        _, _, (kh, kw), (sh, sw), (ph, pw), _ = _window(p)
        n, c, h, w = x[0].shape
        oh, ow = math.ceil((h + 2 * ph - kh) / sh) + 1, math.ceil((w + 2 * pw - kw) / sw) + 1
        oh -= bool(ph or pw) and (oh - 1) * sh >= h + ph
        ow -= bool(ph or pw) and (ow - 1) * sw >= w + pw
        y = np.zeros((n, c, oh, ow))
        for i in range(oh):
            for j in range(ow):
                top, left = i * sh - ph, j * sw - pw
                bottom, right = min(top + kh, h + ph), min(left + kw, w + pw)
                size = (bottom - top) * (right - left)
                part = x[0][:, :, max(top, 0) : min(bottom, h), max(left, 0) : min(right, w)]
                y[:, :, i, j] = part.sum((2, 3)) / size if mean else part.max((2, 3))
        return y

    def LRN(self, x: list[Array], p: Fields, one: Layer) -> Array:
        size, alpha, beta, k = p.get("local_size", 5), p.get("alpha", 1.0), p.get("beta", 0.75), p.get("k", 1.0)
        half, c = size // 2, x[0].shape[1]
        if p.get("norm_region") == "WITHIN_CHANNEL":
            squares = np.pad(x[0] ** 2, ((0, 0), (0, 0), (half, half), (half, half)))
            h, w = x[0].shape[2:]
            sums = sum(squares[:, :, i : i + h, j : j + w] for i in range(size) for j in range(size))
            return x[0] * (k + alpha / size**2 * sums) ** -beta
        sums = np.stack([(x[0][:, max(i - half, 0) : i + half + 1] ** 2).sum(1) for i in range(c)], 1)
        return x[0] * (k + alpha / size * sums) ** -beta

    def BatchNorm(self, x: list[Array], p: Fields, one: Layer) -> Array:
        axes = tuple(d for d in range(x[0].ndim) if d != 1)
        if not p.get("use_global_stats", True):
            return (x[0] - x[0].mean(axes, keepdims=True)) / np.sqrt(x[0].var(axes, keepdims=True) + p["eps"])
        factor = 3.5
        made = [(v * factor).astype(np.float32) for v in (x[0].mean(axes), x[0].var(axes))]
        self.blobs[one.name] = [*made, np.array([factor], np.float32)]
        mean, variance = [_per_channel(v.astype(np.float64) / factor, x[0]) for v in made]
        return (x[0] - mean) / np.sqrt(variance + p.get("eps", 1e-5))

    def BN(self, x: list[Array], p: Fields, one: Layer) -> Array:
        count, drawn = x[0].shape[1:2], range(2 if p.get("bn_mode") else 3)
        scale, bias, *mean = (_per_channel(self._draw(one, count, 0.3), x[0]) for _ in drawn)
        if not mean:
            return x[0] * scale + bias
        self.blobs[one.name].append(np.abs(self.blobs[one.name][0]) + np.float32(0.5))
        variance = _per_channel(self.blobs[one.name][3].astype(np.float64), x[0])
        return (x[0] - mean[0]) / np.sqrt(variance + p.get("eps", 1e-5)) * scale + bias

    def Scale(self, x: list[Array], p: Fields, one: Layer) -> Array:
        if len(x) == 2:
            return x[0] * x[1].reshape(*x[1].shape, *[1] * (x[0].ndim - x[1].ndim))
        y = x[0] * _per_channel(self._draw(one, x[0].shape[1:2], 0.3, 1.0), x[0])
        return y + _per_channel(self._draw(one, x[0].shape[1:2], 0.3), x[0]) if p.get("bias_term") else y

    def Bias(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return x[0] + _per_channel(self._draw(one, x[0].shape[1:2], 0.5), x[0])

    def ReLU(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return np.where(x[0] > 0, x[0], p.get("negative_slope", 0.0) * x[0])

    def PReLU(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return np.where(x[0] > 0, x[0], _per_channel(self._draw(one, x[0].shape[1:2], 0.2), x[0]) * x[0])

    def ReLU6(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return np.clip(x[0], 0, 6)

    def ELU(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return np.where(x[0] > 0, x[0], p.get("alpha", 1.0) * (np.exp(x[0]) - 1))

    def Clip(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return np.clip(x[0], p["min"], p["max"])

    def Sigmoid(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return 1 / (1 + np.exp(-x[0]))

    def TanH(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return np.tanh(x[0])

    def AbsVal(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return np.abs(x[0])

    def BNLL(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return np.log(1 + np.exp(x[0]))

    def Power(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return (p.get("shift", 0.0) + p.get("scale", 1.0) * x[0]) ** p.get("power", 1.0)

    def Exp(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return p.get("base", math.e) ** (p.get("shift", 0.0) + p.get("scale", 1.0) * x[0])

    def Log(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return np.log(p.get("shift", 0.0) + p.get("scale", 1.0) * x[0]) / math.log(p.get("base", math.e))

    def Softmax(self, x: list[Array], p: Fields, one: Layer) -> Array:
        e = np.exp(x[0])
        return e / e.sum(p.get("axis", 1), keepdims=True)

    def Eltwise(self, x: list[Array], p: Fields, one: Layer) -> Array:
        if p.get("operation") == "PROD":
            return math.prod(x)
        if p.get("operation") == "MAX":
            return np.maximum(*x)
        return sum(a * c for a, c in zip(x, p.get("coeff", [1.0] * len(x)), strict=True))

    def MVN(self, x: list[Array], p: Fields, one: Layer) -> Array:
        axes = (1, 2, 3) if p.get("across_channels") else (2, 3)
        return (x[0] - x[0].mean(axes, keepdims=True)) / (x[0].std(axes, keepdims=True) + 1e-9)

    def Normalize(self, x: list[Array], p: Fields, one: Layer) -> Array:
        length = np.sqrt((x[0] ** 2).sum(1, keepdims=True) + 1e-10)
        return x[0] / length * _per_channel(self._draw(one, x[0].shape[1:2], 0.3, 1.0), x[0])

    def Reduction(self, x: list[Array], p: Fields, one: Layer) -> Array:
        flat = x[0].reshape(*x[0].shape[: p["axis"]], -1)
        made = {"SUM": flat, "ASUM": np.abs(flat), "SUMSQ": flat**2, "MEAN": flat / flat.shape[-1]}
        return made[p["operation"]].sum(-1) * p.get("coeff", 1.0)

    def Concat(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return np.concatenate(x, p.get("axis", 1))

    def Slice(self, x: list[Array], p: Fields, one: Layer) -> list[Array]:
        return list(np.split(x[0], p.get("slice_point", len(one.tops)), p.get("axis", 1)))

    def Split(self, x: list[Array], p: Fields, one: Layer) -> list[Array]:
        return [x[0]] * len(one.tops)

    def Dropout(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return x[0]

    def Silence(self, x: list[Array], p: Fields, one: Layer) -> list[Array]:
        return []

    HDF5Output = Silence

    def Flatten(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return x[0].reshape(x[0].shape[0], -1)

    def Reshape(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return x[0].reshape([x[0].shape[k] if d == 0 else d for k, d in enumerate(p["shape"]["dim"])])

    def Permute(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return x[0].transpose(p["order"])

    def Crop(self, x: list[Array], p: Fields, one: Layer) -> Array:
        top, left = p["offset"]
        return x[0][:, :, top : top + x[1].shape[2], left : left + x[1].shape[3]]

    def Tile(self, x: list[Array], p: Fields, one: Layer) -> Array:
        return np.concatenate([x[0]] * p["tiles"], p.get("axis", 1))

    def ShuffleChannel(self, x: list[Array], p: Fields, one: Layer) -> Array:
        size = x[0].shape[1] // p["group"]
        return x[0][:, [g * size + k for k in range(size) for g in range(p["group"])]]


def _per_channel(v: Array, x: Array) -> Array:
    return v.reshape(-1, *[1] * (x.ndim - 2))


def _window(p: Fields) -> tuple[Any, ...]:
    pairs = []
    for name, short, default in (
        ("kernel_size", "kernel", 1),
        ("stride", "stride", 1),
        ("pad", "pad", 0),
        ("dilation", "-", 1),
    ):
        found = p.get(name, default)
        both = found if isinstance(found, list) else [found, found]
        pairs.append((p.get(f"{short}_h", both[0]), p.get(f"{short}_w", both[1])))
    return p.get("num_output", 0), p.get("group", 1), *pairs


def text_of(name: str, layers: list[Layer]) -> str:
    """Returns a network's text."""
    parts = [
        {"name": one.name, "type": one.type, "bottom": one.bottoms, "top": one.tops, **one.fields} for one in layers
    ]
    return f'name: "{name}"\n' + "".join(f"layer {{\n{_fields(p)}}}\n" for p in parts)


def _fields(message: Fields) -> str:
    lines = []
    for name, value in message.items():
        for v in value if isinstance(value, list) else [value]:
            quoted = f'"{v}"' if isinstance(v, str) and (name in ("name", "type", "bottom", "top")) else str(v)
            text = str(v).lower() if isinstance(v, bool) else quoted
            lines.append(f"  {name} {{\n{_fields(v)}  }}\n" if isinstance(v, dict) else f"  {name}: {text}\n")
    return "".join(lines)


def _varint(n: int) -> bytes:
    return bytes([n & 127 | 128]) + _varint(n >> 7) if n > 127 else bytes([n])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def weights_of(name: str, blobs: dict[str, list[Array]], old: bool = False) -> bytes:
    """Returns the bytes of a network's weights, or of one of the format of 2014."""
    made = _field(1, name.encode())
    for layer, found in blobs.items():
        content = b""
        for a in found:
            data = _field(5, a.astype("<f4").tobytes())
            four = (1,) * (4 - a.ndim) + a.shape
            sizes = (
                b"".join(_varint(k << 3) + _varint(n) for k, n in enumerate(four, 1))
                if old
                else _field(7, _field(1, b"".join(map(_varint, a.shape))))
            )
            content += _field(6 if old else 7, sizes + data)
        made += _field(2 if old else 100, _field(4 if old else 1, layer.encode()) + content)
    return made
