"""Makes small networks of TensorFlow Lite by its converter, floats and quantised ones, with inputs and its interpreter's results.

    python -m tests.frontends.tflite.make_networks [NAME ...]

Needs TensorFlow 2.21 and tf_keras 2.21, whose recurrent layers its converter takes for one operator; the tests need neither.
Writes `networks/NAME.npz` with `model`, `input0` and `output0`. Weights are random, batch normalisations calibrated by a batch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
from tests.frontends.tflite.make_quantised import kinds_of, run

FOLDER = Path(__file__).parent / "networks"
layers = tf.keras.layers


def gated(x: Any, channels: int, function: str) -> Any:
    """A squeeze-and-excitation block."""
    gate = layers.GlobalAveragePooling2D(keepdims=True)(x)
    gate = layers.Conv2D(channels // 2, 1, activation="relu")(gate)
    return layers.Multiply()([x, layers.Conv2D(channels, 1, activation=function)(gate)])


def hard_sigmoid(x: Any) -> Any:
    return tf.nn.relu6(x + 3.0) / 6.0


def hard_swish(x: Any) -> Any:
    return x * hard_sigmoid(x)


def inverted(function: Any, gate: Any, size: int = 24) -> Any:
    """Inverted residuals with gates, as MobileNetV3 and EfficientNet have them."""
    x = inputs = layers.Input(batch_shape=(1, size, size, 3))
    x = layers.Activation(function)(layers.BatchNormalization()(layers.Conv2D(8, 3, 2, "same", use_bias=False)(x)))
    for kernel, stride, channels in ((3, 1, 8), (5, 2, 12)):
        y = layers.Activation(function)(layers.BatchNormalization()(layers.Conv2D(24, 1, use_bias=False)(x)))
        y = layers.ZeroPadding2D(((kernel // 2 - (stride == 2), kernel // 2),) * 2)(y) if stride == 2 else y
        y = layers.DepthwiseConv2D(kernel, stride, "valid" if stride == 2 else "same", use_bias=False)(y)
        y = gated(layers.Activation(function)(layers.BatchNormalization()(y)), 24, gate)
        y = layers.BatchNormalization()(layers.Conv2D(channels, 1, use_bias=False)(y))
        x = layers.Add()([x, y]) if channels == x.shape[-1] else y
    x = layers.Activation(function)(layers.Conv2D(32, 1)(x))
    return tf.keras.Model(inputs, layers.Dense(6, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def mobilenet_v3() -> Any:
    return inverted(hard_swish, hard_sigmoid)


def efficientnet() -> Any:
    return inverted("swish", "sigmoid")


def unet() -> Any:
    x = inputs = layers.Input(batch_shape=(1, 16, 20, 3))
    kept = []
    for channels in (6, 10):
        x = layers.Conv2D(channels, 3, padding="same", activation="relu")(x)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.LeakyReLU(0.1)(layers.Conv2D(12, 3, padding="same")(x))
    x = layers.Conv2DTranspose(10, 3, 2, "same", activation="relu")(x)
    x = layers.Concatenate()([x, kept[1]])
    x = layers.UpSampling2D(interpolation="bilinear")(x)
    x = layers.Conv2D(6, 3, padding="same", activation="relu")(layers.Concatenate()([x, kept[0]]))
    return tf.keras.Model(inputs, layers.Conv2D(2, 1, activation="sigmoid")(x))


def bi_lstm() -> Any:
    x = inputs = layers.Input(batch_shape=(1, 9, 32))
    x = layers.Bidirectional(layers.LSTM(32, return_sequences=True))(x)
    return tf.keras.Model(inputs, layers.Dense(5)(x))


def gru() -> Any:
    """Recurrent units as a loop of a subgraph, behind convolutions along a sequence."""
    x = inputs = layers.Input(batch_shape=(1, 12, 6))
    x = layers.Conv1D(12, 3, padding="causal", dilation_rate=2, activation="elu")(x)
    return tf.keras.Model(inputs, layers.Dense(4)(layers.GRU(10)(layers.LayerNormalization()(x))))


def unrolled_gru() -> Any:
    """Recurrent units step by step: products of one weight with inputs of several scales, to which one bias is added."""
    inputs = layers.Input(batch_shape=(1, 6, 6))
    return tf.keras.Model(
        inputs,
        layers.Dense(8)(layers.GRU(8, unroll=True, bias_initializer=tf.keras.initializers.RandomNormal(0, 1))(inputs)),
    )


def encoder() -> Any:
    """Layers of a transformer over embedded tokens."""
    inputs = layers.Input(batch_shape=(1, 8), dtype="int32")
    x = layers.Embedding(20, 16)(inputs) + tf.constant(np.sin(np.arange(128.0).reshape(8, 16)), tf.float32)
    for _ in range(2):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(2, 8)(y, y)
        x = x + layers.Dense(16)(layers.Dense(32, activation="gelu")(layers.LayerNormalization()(x)))
    return tf.keras.Model(inputs, layers.Dense(3)(layers.GlobalMaxPooling1D()(x)))


NETWORKS: dict[str, Callable[[], Any]] = {
    f.__name__: f for f in (mobilenet_v3, efficientnet, unet, bi_lstm, gru, unrolled_gru, encoder)
}
SCHEMES = {
    "mobilenet_v3": ("i8", "f16"),
    "efficientnet": ("i16",),
    "unet": ("i8", "i16", "dynamic"),
    "bi_lstm": ("dynamic",),
    "unrolled_gru": ("i16",),
}
"""Schemes in which networks are made besides floats."""


def examples(model: Any, count: int) -> list[Any]:
    rng = np.random.default_rng(7)
    shape, dtype = model.inputs[0].shape, model.inputs[0].dtype
    tokens = dtype == "int32"
    return [
        rng.integers(0, 20, shape).astype(np.int32) if tokens else rng.standard_normal(shape).astype(np.float32)
        for _ in range(count)
    ]


def calibrated(make: Callable[[], Any]) -> Any:
    tf.keras.utils.set_random_seed(2)
    model = make()
    for layer in model.layers:
        layer.momentum = 0.5
    for batch in examples(model, 12):
        model(batch, training=True)
    return model


def converted(model: Any, scheme: str) -> bytes:
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if scheme:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if scheme in ("i8", "i16"):
        of_16 = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [of_16 if scheme == "i16" else tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.representative_dataset = lambda: ([x] for x in examples(model, 20))
        converter.inference_input_type = converter.inference_output_type = tf.int16 if scheme == "i16" else tf.int8
    if scheme == "f16":
        converter.target_spec.supported_types = [tf.float16]
    return bytes(converter.convert())


def of_bytes_without_sign() -> bytes:
    """A network with ranges among its operators, as TensorFlow 1 trained it for integers without sign."""
    v1, rng = tf.compat.v1, np.random.default_rng(6)

    def within(x: Any, low: float, high: float) -> Any:
        return tf.quantization.fake_quant_with_min_max_args(x, low, high)

    def weight(*shape: int) -> Any:
        values = rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))
        return within(tf.constant(values, tf.float32), -float(np.abs(values).max()), float(np.abs(values).max()))

    with tf.Graph().as_default(), v1.Session() as session:
        given = v1.placeholder(tf.float32, (1, 16, 16, 3), "given")
        x = within(given, -2, 2)
        x = within(tf.nn.relu6(tf.nn.conv2d(x, weight(3, 3, 3, 8), 2, "SAME") + 0.1), 0, 6)
        y = within(tf.nn.relu6(tf.nn.depthwise_conv2d(x, weight(3, 3, 8, 1), [1, 1, 1, 1], "SAME") + 0.2), 0, 6)
        y = within(tf.nn.conv2d(y, weight(1, 1, 8, 8), 1, "SAME") + 0.05, -3, 3)
        x = within(x + y, -3, 7)
        x = within(tf.concat([tf.nn.avg_pool2d(x, 2, 2, "VALID"), tf.nn.max_pool2d(x, 2, 2, "VALID")], 3), -3, 7)
        x = within(tf.matmul(tf.reshape(x, [1, 256]), weight(256, 6)) + 0.3, -6, 6)
        made = tf.nn.softmax(x, name="made")
        converter = v1.lite.TFLiteConverter.from_session(session, [given], [made])
        converter.inference_type = tf.uint8
        converter.quantized_input_stats = {"given": (127.5, 63.75)}
        return bytes(converter.convert())


def main(names: list[str]) -> None:
    """Makes all networks, or those that are named."""
    FOLDER.mkdir(exist_ok=True)
    models: dict[str, bytes] = {} if names else {"bytes_without_sign.u8": of_bytes_without_sign()}
    for name in names or NETWORKS:
        if name == "u8":
            models = {"bytes_without_sign.u8": of_bytes_without_sign()}
            continue
        model = calibrated(NETWORKS[name])
        models |= {f"{name}.{scheme}".strip("."): converted(model, scheme) for scheme in ("", *SCHEMES.get(name, ()))}
    for name, model in models.items():
        held = run(model, 1, 20 if name == "encoder" else None, reference=name.endswith(("8", "16")))
        np.savez_compressed(FOLDER / f"{name}.npz", model=np.frombuffer(model, np.uint8), **held)
        path = FOLDER / f"{name}.npz"
        print(f"{name}: {path.stat().st_size} bytes, {sorted({k for k, _ in kinds_of(model)})}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
