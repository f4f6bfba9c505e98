"""Networks of operators on tensors, and of layers that those of `make_networks` leave out."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers, ops


def operators() -> Any:
    """Operators on tensors, one by one."""
    x, n = keras.Input((8, 6), name="x"), keras.Input((8,), dtype="int32", name="n")
    made = [
        *[f(x) for f in (ops.abs, ops.ceil, ops.cos, ops.erf, ops.exp, ops.expm1, ops.floor, ops.negative, ops.sign)],
        *[f(x) for f in (ops.sin, ops.square, ops.tan, ops.cosh, ops.sinh, ops.arctan, ops.reciprocal, ops.ravel)],
        *[f(ops.abs(x) + 0.1) for f in (ops.log, ops.log1p, ops.rsqrt, ops.sqrt)],
        *[f(x) for f in (ops.relu6, ops.selu, ops.silu, ops.softplus, ops.softsign, ops.sigmoid, ops.log_sigmoid)],
        *[f(x) for f in (ops.elu, ops.hard_sigmoid, ops.hard_silu, ops.leaky_relu, ops.log_softmax, ops.tanh)],
        *[f(x, axis=1) for f in (ops.sum, ops.min, ops.prod, ops.logsumexp, ops.var, ops.norm, ops.argmax, ops.flip)],
        ops.gelu(x, approximate=False),
        ops.mean(x, axis=(1, 2), keepdims=True),
        ops.argmin(x, axis=-1),
        ops.cumsum(x, axis=1),
        *ops.top_k(x, 2),
        *ops.split(x, [1, 4], axis=1),
        *[f(x, 0.25) for f in (ops.maximum, ops.minimum, ops.mod, ops.floor_divide)],
        ops.power(ops.abs(x), 1.5),
        *[ops.cast(f(x, 0.0), "int32") for f in (ops.greater, ops.greater_equal, ops.less, ops.less_equal, ops.equal)],
        ops.cast(ops.logical_or(ops.logical_and(x > 0, x < 1), ops.logical_not(x > -1)), "float32"),
        ops.cast(ops.logical_xor(ops.any(x > 1.5, axis=1), ops.all(x > -1, axis=1)), "float32"),
        1.0 - x / 3,
        ops.isnan(ops.cast(x, "float32")),
        ops.swapaxes(x, 1, 2),
        ops.moveaxis(x[..., None], 1, 3),
        ops.repeat(x, 2, axis=1),
        ops.tile(x, (1, 2, 1)),
        ops.roll(x, 3, axis=1),
        ops.broadcast_to(ops.mean(x, axis=0, keepdims=True), (2, 8, 6)),
        ops.pad(x, ((0, 0), (1, 2), (0, 1)), constant_values=0.5),
        ops.pad(x, ((0, 0), (1, 2), (0, 1)), mode="reflect"),
        ops.expand_dims(x, (1, 3)),
        ops.take(x, np.array([0, 5, 2]), axis=1),
        ops.one_hot(ops.mod(n, 4) - 1, 3),
        ops.full_like(x, 2.5) + ops.ones_like(x),
        ops.dot(x, ops.transpose(x[0])),
        x[:, -1],
        x[..., ::-2],
        (n - 3) * n,
        n // 2,
        ops.maximum(n, 7),
    ]
    return keras.Model([x, n], made)


def remaining() -> Any:
    """Layers and operators that the other networks leave out."""
    line, cube, image = keras.Input((24, 3)), keras.Input((4, 6, 4, 2)), keras.Input((4, 6, 3))
    x = layers.AveragePooling1D(3, strides=2, padding="same")(line)
    x = layers.RMSNormalization()(layers.Cropping1D((1, 2))(x))
    x = layers.ActivityRegularization(0.1)(layers.AlphaDropout(0.2)(layers.GaussianDropout(0.2)(x)))
    y = layers.UpSampling3D((1, 2, 1))(layers.SpatialDropout3D(0.3)(layers.MaxPooling3D(2)(cube)))
    z = layers.SpatialDropout2D(0.4)(layers.Identity()(image))
    bounded = ops.tanh(z)
    return keras.Model(
        [line, cube, image],
        [
            *(layers.GlobalMaxPooling1D()(x), layers.GlobalAveragePooling3D()(y)),
            *(ops.arccos(bounded), ops.arcsin(bounded), ops.divide(z, 3.0), ops.relu(z)),
            *(ops.copy(z), ops.stop_gradient(z), ops.cast(ops.isinf(z), "float32")),
        ],
    )


def further() -> Any:
    """Recurrent layers of cells, a weight of several dimensions, attention as an operator, and more operators."""
    x = given = keras.Input((6, 8), name="x")
    heads = layers.EinsumDense("btd,dhk->bthk", (6, 2, 5), bias_axes="hk", activation="tanh")(x)
    mixed = ops.dot_product_attention(heads, ops.exp2(heads), ops.flip(heads, axis=1), is_causal=True)
    rows = layers.EinsumDense("...thk,hkd->...td", (6, 8), bias_axes="d")(mixed)
    y = layers.RNN(layers.LSTMCell(4), return_sequences=True)(rows)
    y = layers.RNN(layers.GRUCell(3, reset_after=False), return_sequences=True, go_backwards=True)(y)
    positive = ops.abs(x) + 0.1
    order = ops.argsort(x, axis=1)
    made = [
        layers.RNN(layers.SimpleRNNCell(5))(y),
        *[
            f(ops.tanh(x) * 0.9)
            for f in (ops.arctanh, ops.erfinv, ops.arcsinh, ops.erfc, ops.tanh_shrink, ops.hard_tanh)
        ],
        *[f(positive) for f in (ops.log10, ops.log2, ops.cbrt)],
        ops.arccosh(positive + 1.0),
        ops.arctan2(x, rows),
        ops.round(x * 3.0),
        ops.cast(ops.isfinite(x / ops.relu(x)), "int32"),
        *[f(x, axis=1) for f in (ops.amax, ops.amin, ops.sort, ops.cumprod)],
        *(order, ops.take_along_axis(x, order, axis=1)),
        *[f(x, k=-1) for f in (ops.tril, ops.triu)],
        *ops.unstack(x[:, :3], axis=1),
    ]
    return keras.Model(given, made)
