"""Makes networks with TensorFlow, saves them in its formats, and keeps inputs with the outputs that TensorFlow computes.

    python tests/frontends/tensorflow/make_networks.py FOLDER NETWORK ...

Needs TensorFlow 2.21. Weights are random, batch normalisations calibrated by a batch, so that outputs spread. For each network
the folder has NAME.saved (a saved model), NAME.pb (a frozen graph), NAME.tflite, NAME.int8.tflite (integers throughout, for those
that are made so) and .npz files with inputs and outputs for each of these.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

layers = tf.keras.layers


def mobilenet(size: int = 32) -> Any:
    x = inputs = layers.Input((size, size, 3))
    x = layers.Conv2D(16, 3, 2, "same", use_bias=False)(x)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    for channels, stride in ((32, 1), (64, 2), (64, 1), (128, 2)):
        x = layers.DepthwiseConv2D(3, stride, "same", use_bias=False)(x)
        x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
        x = layers.Conv2D(channels, 1, use_bias=False)(x)
        x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    x = layers.GlobalAveragePooling2D()(x)
    return tf.keras.Model(inputs, layers.Dense(10, activation="softmax")(x))


def resnet() -> Any:
    x = inputs = layers.Input((32, 32, 3))
    x = layers.Conv2D(16, 7, 2, "same")(layers.ZeroPadding2D(1)(x))
    x = layers.MaxPooling2D(3, 2, "same")(layers.ReLU()(layers.BatchNormalization()(x)))
    for channels, stride in ((16, 1), (32, 2)):
        y = layers.Conv2D(channels, 3, stride, "same")(x)
        y = layers.ReLU()(layers.BatchNormalization()(y))
        y = layers.BatchNormalization()(layers.Conv2D(channels, 3, 1, "same")(y))
        x = layers.ReLU()(layers.Add()([y, layers.Conv2D(channels, 1, stride)(x)]))
    gate = layers.GlobalAveragePooling2D(keepdims=True)(x)
    x = layers.Multiply()([x, layers.Conv2D(32, 1, activation="sigmoid")(gate)])
    x = layers.Concatenate()([layers.AveragePooling2D(2)(x), layers.MaxPooling2D(2)(x)])
    return tf.keras.Model(inputs, layers.Dense(10)(layers.Flatten()(x)))


def lstm() -> Any:
    x = inputs = layers.Input((24, 8))
    x = layers.LSTM(16, return_sequences=True)(x)
    x = layers.LSTM(12)(x)
    return tf.keras.Model(inputs, layers.Dense(5)(x))


def gru() -> Any:
    x = inputs = layers.Input((20, 8))
    x = layers.Bidirectional(layers.GRU(16, return_sequences=True))(x)
    return tf.keras.Model(inputs, layers.Dense(5)(layers.SimpleRNN(6)(x)))


def transformer() -> Any:
    inputs = layers.Input((16,), dtype="int32")
    x = layers.Embedding(50, 32)(inputs)
    for _ in range(2):
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(4, 8)(y, y, use_causal_mask=True)])
        y = layers.Dense(64, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(32)(y)])
    return tf.keras.Model(inputs, layers.Dense(50)(layers.LayerNormalization()(x)))


def segmenter() -> Any:
    x = inputs = layers.Input((24, 24, 3))
    skip = x = layers.Conv2D(8, 3, padding="same", activation="elu")(x)
    x = layers.Conv2D(16, 3, 2, "same", activation="relu")(x)
    x = layers.Conv2D(16, 3, padding="same", dilation_rate=2, activation="swish")(x)
    x = layers.Conv2DTranspose(8, 3, 2, "same")(x)
    x = layers.Concatenate()([x, skip])
    x = layers.UpSampling2D(2, interpolation="bilinear")(x)
    return tf.keras.Model(inputs, layers.Conv2D(3, 1)(x))


NETWORKS: dict[str, Callable[[], Any]] = {f.__name__: f for f in (mobilenet, resnet, lstm, gru, transformer, segmenter)}
INTEGERS = ("mobilenet", "resnet")
"""Networks that are also quantised to integers throughout."""
RECURRENT = ("lstm", "gru")


def example(model: Any, seed: int, count: int) -> Any:
    rng = np.random.default_rng(seed)
    shape = (count, *model.inputs[0].shape[1:])
    if model.inputs[0].dtype == "int32":
        return rng.integers(0, 50, shape).astype(np.int32)
    return rng.standard_normal(shape).astype(np.float32)


def calibrated(make: Callable[[], Any]) -> Any:
    tf.keras.utils.set_random_seed(1)
    model = make()
    model.compile(loss="mse")
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.momentum = 0.1
    batch = example(model, 2, 32)
    for _ in range(4):
        model(batch, training=True)
    return model


def save_frozen(model: Any, path: Path) -> None:
    function = tf.function(model.call).get_concrete_function(
        tf.TensorSpec((None, *model.inputs[0].shape[1:]), model.inputs[0].dtype)
    )
    frozen = convert_variables_to_constants_v2(function, lower_control_flow=False)
    path.write_bytes(frozen.graph.as_graph_def().SerializeToString())


def run_lite(path: Path, x: Any) -> Any:
    interpreter = tf.lite.Interpreter(
        str(path), experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def converter_of(name: str, model: Any) -> Any:
    """Returns a converter; recurrent layers become one operator for a batch of known size."""
    if name not in RECURRENT:
        return tf.lite.TFLiteConverter.from_keras_model(model)
    whole = layers.Input(batch_shape=(1, *model.inputs[0].shape[1:]))
    return tf.lite.TFLiteConverter.from_keras_model(tf.keras.Model(whole, model(whole)))


def convert(folder: Path, name: str, model: Any) -> None:
    converter = converter_of(name, model)
    path = folder / f"{name}.tflite"
    path.write_bytes(converter.convert())
    x = example(model, 3, 1)
    np.savez(folder / f"{name}.tflite.npz", input=x, output=run_lite(path, x))
    if name not in INTEGERS:
        return
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([example(model, s, 1)] for s in range(10, 30))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    path = folder / f"{name}.int8.tflite"
    path.write_bytes(converter.convert())
    q = np.random.default_rng(4).integers(-128, 128, x.shape).astype(np.int8)
    np.savez(folder / f"{name}.int8.tflite.npz", input=q, output=run_lite(path, q))


def main(folder: Path, names: list[str]) -> None:
    for name in names:
        model = calibrated(NETWORKS[name])
        x = example(model, 3, 2)
        np.savez(folder / f"{name}.npz", input=x, output=model(x).numpy())
        model.export(str(folder / f"{name}.saved"), verbose=False)
        save_frozen(model, folder / f"{name}.pb")
        convert(folder, name, model)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(NETWORKS))
