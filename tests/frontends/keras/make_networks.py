"""Makes the networks beside this file with Keras, each with inputs and the outputs that Keras computes for them.

Run in an environment with Keras and TensorFlow, which the tests do not need:
`python -m tests.frontends.keras.make_networks tests/frontends/keras/networks [NAME ...]`.
Seeds are fixed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops
from tests.frontends.keras.operator_networks import further, operators, remaining
from tests.frontends.keras.preparing_networks import (
    TEXTS,
    WORDS,
    categories,
    features,
    mixed,
    painted,
    pictures,
    spectra,
    steps,
    strings,
    texts,
)


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


def masks() -> Any:
    """Steps that do not count: in recurrent layers, attention and means, from embeddings, numbers and an argument."""
    tokens, signal = keras.Input((9,), dtype="int32", name="masked_tokens"), keras.Input((9, 4), name="masked_signal")
    x = layers.Dropout(0.1)(layers.Embedding(20, 6, mask_zero=True)(tokens))
    x = layers.Concatenate()([x, layers.Dense(5, activation="tanh")(layers.Masking()(signal))])
    x = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(x)
    y, h = layers.GRU(6, return_sequences=True, return_state=True, go_backwards=True)(x)
    z = layers.GRU(6, return_sequences=True)(x, initial_state=h, mask=ops.not_equal(tokens, 0))
    x = layers.Add()([y, z])
    x = layers.LayerNormalization()(layers.MultiHeadAttention(2, 4)(x, x))
    tags = layers.TimeDistributed(layers.Dense(3, activation="softmax"))(x)
    both = layers.Attention()([x, layers.AdditiveAttention()([x, x])])
    means = [layers.GlobalAveragePooling1D()(x), layers.GlobalAveragePooling1D(keepdims=True)(both)]
    return keras.Model([tokens, signal], [tags, *means, layers.SimpleRNN(4)(x)])


def masked_sequence() -> Any:
    """Layers in a row that pass on which steps count, in a loop of more steps than are written out."""
    return keras.Sequential(
        [
            keras.Input((40, 3), name="masked_steps"),
            layers.Masking(0.0),
            layers.LSTM(7, return_sequences=True),
            layers.Activation("relu"),
            layers.BatchNormalization(),
            layers.Bidirectional(layers.GRU(4), merge_mode="mul"),
            layers.Dense(2),
        ]
    )


def translation() -> Any:
    """An encoder in both directions whose states a decoder begins with, and attention to its steps."""
    source = keras.Input((6,), dtype="int32", name="masked_source")
    target = keras.Input((5,), dtype="int32", name="masked_target")
    embed = layers.Embedding(20, 8, mask_zero=True)
    encoder = layers.Bidirectional(layers.LSTM(4, return_sequences=True, return_state=True))
    y, fh, fc, bh, bc = encoder(embed(source))
    states = [layers.Concatenate()([fh, bh]), layers.Concatenate()([fc, bc])]
    decoded = layers.LSTM(8, return_sequences=True)(embed(target), initial_state=states)
    attended = layers.MultiHeadAttention(2, 4)(decoded, y, use_causal_mask=True)
    apart = layers.Bidirectional(layers.GRU(3), merge_mode=None)(decoded)
    return keras.Model([source, target], [layers.Dense(15)(layers.Concatenate()([decoded, attended])), *apart])


def patches() -> Any:
    """A transformer of patches of an image, written in operators."""
    image = keras.Input((16, 16, 3), name="image")
    x = ops.reshape(layers.Conv2D(12, 4, strides=4)(image), (-1, 16, 12))
    x = ops.concatenate([ops.mean(x, axis=1, keepdims=True), x], axis=1)
    x = x + layers.Embedding(17, 12)(ops.convert_to_tensor(np.arange(17)[None]))
    heads = [
        ops.transpose(ops.reshape(t, (-1, 17, 3, 4)), (0, 2, 1, 3))
        for t in ops.split(layers.Dense(36)(layers.LayerNormalization()(x)), 3, axis=-1)
    ]
    shares = ops.softmax(ops.matmul(heads[0], ops.transpose(heads[1], (0, 1, 3, 2))) / 2.0, axis=-1)
    x = x + layers.Dense(12)(ops.reshape(ops.transpose(ops.matmul(shares, heads[2]), (0, 2, 1, 3)), (-1, 17, 12)))
    gate, value = ops.split(layers.Dense(48)(x), 2, axis=-1)
    x = x + layers.Dense(12)(ops.gelu(gate) * value)
    first = x[:, 0]
    spread = ops.std(ops.squeeze(x[:, 1::2, ..., None], -1), axis=1)
    length = ops.normalize(ops.where(first > 0, first, ops.zeros_like(first)) + ops.max(x, axis=1))
    y = layers.Dense(5)(ops.stack([first, spread, length], axis=1))
    return keras.Model(image, [y, ops.einsum("bij,bkj->bik", x, x), ops.clip(first, -0.5, 0.5) ** 2])


def siamese() -> Any:
    """One encoder of two images, whose codes are compared in several ways, by a shared layer too."""
    encoder = keras.Sequential(
        [
            keras.Input((10, 10, 2)),
            layers.Conv2D(6, 3, strides=2, padding="same"),
            layers.BatchNormalization(),
            layers.Activation("relu"),
            layers.DepthwiseConv2D(3, activation="swish"),
            layers.GlobalAveragePooling2D(),
        ],
        name="encoder",
    )
    left, right = keras.Input((10, 10, 2), name="left"), keras.Input((10, 10, 2), name="right")
    a, b = encoder(left), encoder(right)
    shared = layers.Dense(4, activation="tanh", name="shared")
    likeness = layers.Dot(axes=1, normalize=True)([a, b])
    both = layers.Concatenate()([shared(a), shared(b), likeness, layers.Subtract()([a, b]), ops.abs(a - b)])
    return keras.Model([left, right], [layers.Dense(3)(both), likeness])


def reader() -> Any:
    """Recurrent layers in both directions, heads of queries that share those of keys, and operators between layers."""
    tokens = keras.Input((9,), dtype="int32", name="tokens")
    x = layers.Embedding(20, 8)(tokens)
    x = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)
    x = x * ops.sigmoid(layers.Dense(8)(x))
    x = layers.LayerNormalization()(x + layers.GroupQueryAttention(4, 4, 2)(x, x, use_causal_mask=True))
    y = layers.Bidirectional(layers.GRU(3), merge_mode="sum")(x[:, ::2])
    z = ops.softmax(ops.matmul(x, ops.transpose(x, (0, 2, 1))), axis=-1)
    return keras.Model(tokens, [layers.Dense(4)(y), ops.mean(z, axis=1)])


def augmented() -> Any:
    """Changes of images by chance, which are none after training, the middle of images, and a weight of norm 1."""
    x = given = keras.Input((10, 12, 3), name="image")
    x = layers.RandomFlip()(layers.RandomTranslation(0.1, 0.1)(x))
    for name in ("Brightness", "Contrast", "Hue", "Rotation", "Saturation", "Sharpness", "Zoom", "ColorDegeneration"):
        x = getattr(layers, f"Random{name}")(0.2)(x)
    for name in ("Erasing", "GaussianBlur", "Grayscale", "Invert", "Perspective", "Shear", "ColorJitter"):
        x = getattr(layers, f"Random{name}")()(x)
    x = layers.CenterCrop(7, 8)(layers.RandomPosterization(4)(x))
    x = layers.SpectralNormalization(layers.Conv2D(6, 3))(x)
    return keras.Model(given, layers.Dense(4)(layers.Flatten()(x)))


def films() -> Any:
    """Long short-term memory of images, of lines in a loop, and of cubes."""
    film, lines, cubes = keras.Input((4, 7, 6, 2)), keras.Input((20, 6, 2)), keras.Input((2, 4, 4, 3, 1))
    x = layers.ConvLSTM2D(3, 3, padding="same", strides=2, return_sequences=True)(film)
    x = layers.ConvLSTM2D(4, (2, 3), recurrent_activation="hard_sigmoid")(x)
    y = layers.ConvLSTM1D(3, 3, go_backwards=True, return_sequences=True, return_state=True)(lines)
    z = layers.ConvLSTM3D(2, 2, dilation_rate=2, use_bias=False, activation="relu")(cubes)
    return keras.Model([film, lines, cubes], [layers.Flatten()(x), *y, z])


def cells() -> Any:
    """Layers of several cells, with a mask and backwards, and long short-term memory of images in both directions."""
    words, lines = keras.Input((6,), dtype="int32", name="masked"), keras.Input((3, 6, 2))
    x = layers.Embedding(20, 4, mask_zero=True)(words)
    x = layers.RNN([layers.LSTMCell(3), layers.GRUCell(4)], return_sequences=True)(x)
    x = layers.RNN(layers.StackedRNNCells([layers.SimpleRNNCell(3), layers.LSTMCell(4)]))(x)
    y = layers.RNN([layers.GRUCell(3, reset_after=False), layers.GRUCell(3)], go_backwards=True)(
        layers.Reshape((3, 12))(lines)
    )
    z = layers.Bidirectional(layers.ConvLSTM1D(3, 3, return_sequences=True))(lines)
    z = layers.Bidirectional(layers.ConvLSTM1D(2, 2), merge_mode="ave")(z)
    return keras.Model([words, lines], [x, y, layers.Flatten()(z)])


NETWORKS: dict[str, Callable[[], Any]] = {
    f.__name__: f
    for f in (
        *(images, segmentation, sequences, transformer, nested, other_ranks),
        *(
            masks,
            masked_sequence,
            translation,
            patches,
            operators,
            remaining,
            siamese,
            reader,
            augmented,
            further,
            films,
            cells,
            categories,
            pictures,
            mixed,
            steps,
            spectra,
            strings,
            texts,
            features,
            painted,
        ),
    )
}

OLD = ("nested", "sequences", "siamese", "reader", "further", "cells")
"""Networks that are saved as `.h5` files too."""

LARGER = {"images": 1.0, "masked_sequence": 3.0, "other_ranks": 1.5, "sequences": 3.0}
"""By how much the weights of networks are multiplied whose results would hardly depend on their inputs."""


def texts_or_numbers(array: Any) -> Any:
    return array.astype(bytes).astype(str) if array.dtype == object else array


def make(name: str, folder: Path, suffix: str) -> None:
    """Saves a network, with its inputs and outputs."""
    keras.utils.set_random_seed(7)
    model, rng = NETWORKS[name](), np.random.default_rng(7)
    for v in [] if name == "features" else model.weights:  # which layers that were adapted have computed from already
        if "variance" in v.path:
            v.assign(rng.uniform(0.5, 2, v.shape))
        elif any(part in v.path for part in ("gamma", "beta", "bias", "mean", "alpha", "scale")):
            v.assign(rng.normal(0.5, 0.3, v.shape))
        elif name in LARGER:
            v.assign(v * LARGER[name])
    count = 4 if any(t.dtype == "string" for t in model.inputs) else 2
    arrays = [
        rng.integers(0, 20, (count, *t.shape[1:])).astype(np.int32)
        if "int" in t.dtype
        else rng.normal(size=(count, *[13 + 4 * d if n is None else n for d, n in enumerate(t.shape[1:])]))
        for t in model.inputs
    ]
    given: list[Any] = [a if a.dtype == np.int32 else a.astype(np.float32) for a in arrays]
    for k, t in enumerate(model.inputs):
        if t.dtype == "string":
            given[k] = rng.choice(TEXTS if t.name == "text" else WORDS, (count, *t.shape[1:]))
        elif t.dtype == "int64":
            given[k] = rng.integers(-9, 30, (count, *t.shape[1:]))
    if name == "images":
        given = [a * 100 + 128 for a in given]
    for a, t in zip(given, model.inputs, strict=True):
        if t.name.startswith("masked"):
            a[rng.random(a.shape[:2]) < 0.4] = 0
    tensors = [keras.ops.convert_to_tensor(a) if a.dtype.kind != "U" else tf.constant(a) for a in given]
    made = model(tensors if len(given) > 1 else tensors[0], training=False)
    outputs = made if isinstance(made, list | tuple) else [made]
    model.save(folder / f"{name}{suffix}")
    held = {f"input_{k}": a for k, a in enumerate(given)} | {
        f"output_{k}": texts_or_numbers(np.asarray(a)) for k, a in enumerate(outputs)
    }
    np.savez_compressed(folder / f"{name}.npz", **held)


if __name__ == "__main__":
    for name in sys.argv[2:] or NETWORKS:
        for suffix in (".h5", ".keras") if name in OLD else (".keras",):
            make(name, Path(sys.argv[1]), suffix)
