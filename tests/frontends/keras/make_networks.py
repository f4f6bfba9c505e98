"""Makes the networks beside this file with Keras, each with inputs and the outputs that Keras computes for them.

Run in an environment with Keras and TensorFlow, which the tests do not need: `python make_networks.py networks`. Seeds are fixed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers


def images() -> Any:
    """A residual network of depthwise and separable convolutions."""
    x = given = keras.Input((16, 16, 3), name="image")
    x = layers.Rescaling(1 / 127.5, offset=-1)(x)
    x = layers.ZeroPadding2D(((0, 1), (0, 1)))(x)
    x = layers.Conv2D(8, 3, strides=2, use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = left = layers.ReLU(6.0)(x)
    x = layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2)(x)
    x = layers.LeakyReLU(0.1)(x)
    x = layers.SeparableConv2D(8, 3, padding="same", activation="hard_swish")(x)
    x = layers.Add()([x, left])
    pooled = layers.MaxPooling2D(3, 2, padding="same")(x)
    mean = layers.AveragePooling2D(3, 2, padding="same")(x)
    x = layers.Concatenate()([pooled, mean])
    x = layers.Conv2D(16, 3, groups=2, padding="same", strides=2)(x)
    x = layers.PReLU()(x)
    gate = layers.GlobalAveragePooling2D(keepdims=True)(x)
    gate = layers.Conv2D(16, 1, activation="sigmoid")(gate)
    x = layers.Multiply()([x, gate])
    x = layers.Dropout(0.2)(x)
    return keras.Model(given, layers.Dense(10, activation="softmax")(layers.Flatten()(x)))


def segmentation() -> Any:
    """A network down and up again: transposed convolutions, upsampling, cropping, group norm; two outputs."""
    given = keras.Input((12, 12, 2), name="picture")
    down = layers.Conv2D(6, 3, strides=2, padding="same", activation="gelu")(given)
    deep = layers.Conv2D(8, 3, dilation_rate=2, padding="same", activation="silu")(down)
    deep = layers.GroupNormalization(4)(deep)
    up = layers.Conv2DTranspose(6, 3, strides=2, padding="same", activation="elu")(deep)
    other = layers.UpSampling2D(2, interpolation="bilinear")(deep)
    other = layers.Conv2DTranspose(6, 4, strides=1, padding="valid")(layers.Cropping2D(((1, 2), (2, 1)))(other))
    other = layers.UpSampling2D((2, 1))(layers.Resizing(6, 12)(other))
    x = layers.Concatenate()([up, other, given])
    x = layers.Maximum()([x, layers.LayerNormalization()(x)])
    mask = layers.Softmax()(layers.Conv2D(3, 1)(x))
    return keras.Model(given, [mask, layers.GlobalMaxPooling2D()(x)])


def sequences() -> Any:
    """Recurrent layers in one direction and both."""
    given = keras.Input((7,), dtype="int32", name="tokens")
    x = layers.Embedding(20, 6)(given)
    x = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(x)
    x = layers.SpatialDropout1D(0.1)(x)
    x = layers.Conv1D(8, 3, padding="causal", dilation_rate=2, activation="relu")(x)
    x, h, _ = layers.LSTM(6, return_sequences=True, return_state=True)(x)
    y = layers.GRU(6, return_sequences=True, go_backwards=True)(x, initial_state=h)
    x = layers.Subtract()([x, y])
    z = layers.Bidirectional(layers.GRU(4, reset_after=False), merge_mode="ave")(x)
    x = layers.TimeDistributed(layers.Dense(5, activation="softsign"))(x)
    x = layers.SimpleRNN(4, activation="tanh")(x)
    return keras.Model(given, layers.Dense(3)(layers.Average()([x, z])))


def transformer() -> Any:
    """A block of an encoder, and attention between two inputs."""
    given, memory = keras.Input((6, 12), name="queries"), keras.Input((4, 12), name="memory")
    x = layers.LayerNormalization(epsilon=1e-6)(given)
    x = layers.MultiHeadAttention(3, 4, value_dim=5)(x, x, use_causal_mask=True)
    x = layers.Add()([x, given])
    x = layers.MultiHeadAttention(2, 6)(x, memory)
    y = layers.Dense(24, activation="gelu")(layers.LayerNormalization(scale=False)(x))
    x = layers.Add()([x, layers.Dense(12)(y)])
    x = layers.Attention(use_scale=True)([x, memory])
    x = layers.Dot(axes=2)([x, memory])
    return keras.Model([given, memory], layers.UnitNormalization()(x * 2.0 + 1.0))


def nested() -> Any:
    """Models in models, called twice, and layers that are shared."""
    block = keras.Sequential(
        [keras.Input((8, 8, 4)), layers.Conv2D(4, 3, padding="same"), layers.BatchNormalization(scale=False)],
        name="block",
    )
    inner = keras.Input((8, 8, 4))
    both = keras.Model(inner, [layers.ReLU()(block(inner)), layers.Activation("tanh")(inner)], name="both")
    x = given = keras.Input((8, 8, 4), name="x")
    a, b = both(x)
    a, b = both(layers.Minimum()([a, b]))
    dense = layers.Dense(5)
    left, right = dense(layers.GlobalAveragePooling2D()(a)), dense(layers.GlobalMaxPooling2D()(b))
    return keras.Model(given, layers.Concatenate()([left, right, layers.Flatten()(a)]))


def other_ranks() -> Any:
    """Layers over one and three dimensions, and those that move elements, in a sequence."""
    normal = layers.Normalization(mean=[0.1, -0.2], variance=[1.5, 0.5])
    return keras.Sequential(
        [
            keras.Input((24, 2), name="signal"),
            normal,
            layers.SeparableConv1D(4, 3, padding="same"),
            layers.Conv1DTranspose(4, 3, strides=2, padding="same"),
            layers.UpSampling1D(2),
            layers.MaxPooling1D(2),
            layers.Reshape((4, 4, 3, -1)),
            layers.Conv3D(4, 3, padding="same", activation="softplus"),
            layers.ZeroPadding3D(1),
            layers.AveragePooling3D(2),
            layers.Cropping3D(((0, 0), (1, 0), (0, 1))),
            layers.Conv3DTranspose(2, 2, strides=2),
            layers.Permute((2, 1, 4, 3)),
            layers.ELU(0.5),
            layers.GlobalMaxPooling3D(),
            layers.RepeatVector(3),
            layers.ZeroPadding1D((1, 2)),
            layers.DepthwiseConv1D(2),
            layers.GlobalAveragePooling1D(),
            layers.GaussianNoise(0.1),
            layers.Dense(4, activation="log_softmax"),
        ]
    )


NETWORKS: dict[str, Callable[[], Any]] = {
    f.__name__: f for f in (images, segmentation, sequences, transformer, nested, other_ranks)
}


def make(name: str, folder: Path, suffix: str) -> None:
    """Saves a network, with its inputs and outputs."""
    keras.utils.set_random_seed(7)
    model, rng = NETWORKS[name](), np.random.default_rng(7)
    for v in model.weights:
        if "variance" in v.path:
            v.assign(rng.uniform(0.5, 2, v.shape))
        elif any(part in v.path for part in ("gamma", "beta", "bias", "mean", "alpha", "scale")):
            v.assign(rng.normal(0.5, 0.3, v.shape))
    arrays = [
        rng.integers(0, 20, (2, *t.shape[1:])).astype(np.int32)
        if "int" in t.dtype
        else rng.normal(size=(2, *t.shape[1:]))
        for t in model.inputs
    ]
    given = [a if a.dtype == np.int32 else a.astype(np.float32) for a in arrays]
    made = model(given if len(given) > 1 else given[0], training=False)
    outputs = made if isinstance(made, list | tuple) else [made]
    model.save(folder / f"{name}{suffix}")
    held = {f"input_{k}": a for k, a in enumerate(given)} | {
        f"output_{k}": np.asarray(a) for k, a in enumerate(outputs)
    }
    np.savez_compressed(folder / f"{name}.npz", **held)


if __name__ == "__main__":
    for name in NETWORKS:
        for suffix in (".h5", ".keras") if name in ("nested", "sequences") else (".keras",):
            make(name, Path(sys.argv[1]), suffix)
