#!/usr/bin/env python3
"""Write networks of Keras in its own formats, with channels last, and as ONNX, with channels first, of the same seeded weights.

    venv-tensorflow/bin/python nhwc_networks.py [--out DIRECTORY] [name ...]    after ./setup.sh tensorflow

Each network becomes NAME.keras, NAME.tflite, NAME.pb (a frozen graph), NAME.onnx (by tf2onnx, which keeps channels first between
layers), and NAME.npz with an input and what Keras computes for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tf2onnx
from keras import applications, layers
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2


def unet() -> Any:
    """A U-Net of two levels (Ronneberger et al., 2015): transposed convolutions and concatenations."""
    given = keras.Input((128, 128, 3))
    high = _twice(given, 32)
    middle = _twice(layers.MaxPooling2D()(high), 64)
    low = _twice(layers.MaxPooling2D()(middle), 128)
    up = layers.Conv2DTranspose(64, 2, strides=2)(low)
    up = _twice(layers.Concatenate()([up, middle]), 64)
    up = layers.Conv2DTranspose(32, 2, strides=2)(up)
    up = _twice(layers.Concatenate()([up, high]), 32)
    return keras.Model(given, layers.Conv2D(2, 1)(up))


def _twice(x: Any, channels: int) -> Any:
    for _ in range(2):
        x = layers.Conv2D(channels, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    return x


def pyramid() -> Any:
    """A pyramid of features (Lin et al., 2017) on a narrow backbone: resized maps are added, heads have softmax and PReLU."""
    x = given = keras.Input((128, 128, 3))
    maps = []
    for channels in (32, 64, 96, 128):
        x = layers.Conv2D(channels, 3, strides=2, padding="same")(x)
        x = layers.PReLU(shared_axes=[1, 2])(layers.BatchNormalization()(x))
        x = layers.SeparableConv2D(channels, 3, padding="same", activation="swish")(x)
        maps.append(layers.Conv2D(64, 1)(x))
    made = maps.pop()
    for lateral in reversed(maps):
        made = layers.Add()([layers.UpSampling2D(interpolation="nearest")(made), lateral])
        made = layers.Conv2D(64, 3, padding="same", activation="relu")(made)
    scores = layers.Conv2D(20, 1, kernel_initializer=keras.initializers.RandomNormal(stddev=2.0))(made)
    return keras.Model(given, layers.Softmax()(scores))


def _of_keras(make: Callable[..., Any], size: int = 224, **options: Any) -> Callable[[], Any]:
    settings = {"weights": None, "input_shape": (size, size, 3), "classifier_activation": None, **options}
    return lambda: make(**settings)


NETWORKS: dict[str, Callable[[], Any]] = {
    "mobilenet": _of_keras(applications.MobileNet),
    "mobilenet_v2": _of_keras(applications.MobileNetV2),
    "mobilenet_v3": _of_keras(applications.MobileNetV3Small, include_preprocessing=False),
    "efficientnet_b0": _of_keras(applications.EfficientNetB0),
    "resnet50_v2": _of_keras(applications.ResNet50V2),
    "densenet121": _of_keras(applications.DenseNet121),
    "inception_v3": _of_keras(applications.InceptionV3),
    "unet": unet,
    "pyramid": pyramid,
}


def randomize(model: Any) -> None:
    """Gives batch normalizations statistics and scales, which are those of no data, so that none is left out."""
    rng = np.random.default_rng(7)
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            ranges = {
                "gamma": (0.7, 1.2),
                "beta": (-0.2, 0.2),
                "moving_mean": (-0.2, 0.2),
                "moving_variance": (0.7, 1.4),
            }
            layer.set_weights([rng.uniform(*ranges[w.name], w.shape).astype(np.float32) for w in layer.weights])


def write(name: str, folder: Path) -> None:
    """Writes a network in all formats."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(11)
    model = NETWORKS[name]()
    randomize(model)
    x = np.random.default_rng(3).uniform(-1, 1, (1, *model.input_shape[1:])).astype(np.float32)
    y = model.predict(x, verbose=0)
    np.savez(folder / f"{name}.npz", x=x, y=y)
    model.save(folder / f"{name}.keras")
    spec = tf.TensorSpec(x.shape, tf.float32, name="image")
    function = tf.function(lambda image: model(image, training=False), input_signature=[spec])
    frozen = convert_variables_to_constants_v2(function.get_concrete_function())
    (folder / f"{name}.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString())
    converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen])
    (folder / f"{name}.tflite").write_bytes(converter.convert())
    found, _ = tf2onnx.convert.from_graph_def(
        frozen.graph.as_graph_def(),
        input_names=["image:0"],
        output_names=[t.name for t in frozen.outputs],
        inputs_as_nchw=["image:0"],
        opset=17,
        output_path=str(folder / f"{name}.onnx"),
    )
    kinds = [node.op_type for node in found.graph.node]
    print(
        f"{name}: {model.count_params()} weights, spread {y.std():.2g}, {kinds.count('Transpose')} transposes in ONNX"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "cache" / "nhwc")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.names or NETWORKS:
        write(name, given.out)


if __name__ == "__main__":
    main()
