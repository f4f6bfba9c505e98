"""Makes small networks with TensorFlow, each saved as a model and frozen, and keeps inputs with the outputs that it computes.

    python -m tests.frontends.tensorflow.make_small_networks

Needs TensorFlow 2.21. Writes `networks/small/NAME.tar.xz`, which has NAME.saved (a saved model) and NAME.pb (a frozen graph, in
which control flow is lowered, as TensorFlow does by default), and NAME.npz. Weights are random, batch normalisations calibrated.
"""

from __future__ import annotations

import lzma
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

FOLDER = Path(__file__).parent / "networks" / "small"
layers = tf.keras.layers
RNG = np.random.default_rng(5)


def normal(*shape: int, size: float = 1.0) -> Any:
    return tf.Variable((RNG.standard_normal(shape) * size / np.sqrt(max(shape[-2:]))).astype(np.float32))


def mobile() -> Any:
    """Inverted residuals with gates of channels."""
    x = inputs = layers.Input((16, 16, 3), name="x")
    x = layers.Activation("hard_silu")(layers.BatchNormalization()(layers.Conv2D(8, 3, 2, "same", use_bias=False)(x)))
    for channels, wide, size, stride in ((8, 12, 3, 1), (10, 16, 5, 2)):
        y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(wide, 1, use_bias=False)(x)))
        y = layers.BatchNormalization()(layers.DepthwiseConv2D(size, stride, "same", use_bias=False)(y))
        gate = layers.Conv2D(4, 1, activation="relu")(layers.GlobalAveragePooling2D(keepdims=True)(y))
        y = layers.Multiply()([y, layers.Conv2D(wide, 1, activation="hard_sigmoid")(gate)])
        y = layers.BatchNormalization()(layers.Conv2D(channels, 1, use_bias=False)(layers.Activation("hard_silu")(y)))
        x = layers.Add()([x, y]) if stride == 1 else y
    return tf.keras.Model(inputs, layers.Dense(6)(layers.GlobalAveragePooling2D()(x)))


def unet() -> Any:
    """Down and up again, with skips; joined branches of several windows between."""
    x = inputs = layers.Input((16, 12, 2), name="x")
    skip = x = layers.LeakyReLU(negative_slope=0.1)(layers.BatchNormalization()(layers.Conv2D(6, 3, padding="same")(x)))
    x = layers.MaxPooling2D(2)(x)
    branches = [layers.Conv2D(4, size, padding="same", activation="elu")(x) for size in (1, 3, (1, 5))]
    x = layers.Concatenate()([*branches, layers.AveragePooling2D(3, 1, "same")(x)])
    x = layers.GroupNormalization(3)(x)
    x = layers.Concatenate()([layers.Conv2DTranspose(6, 4, 2, "same")(x), skip])
    return tf.keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(layers.PReLU(shared_axes=[1, 2])(x)))


class Windows(tf.Module):  # type: ignore[misc]
    """Attention within windows of an image, which move."""

    spec = tf.TensorSpec((None, 16, 16, 3), tf.float32, name="x")

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.qkv, self.out = normal(4, 4, 3, 8, size=0.5), normal(8, 24), normal(8, 8)
        self.wide, self.narrow, self.bias = normal(8, 16), normal(16, 8), normal(2, 4, 4)

    def normalized(self, x: Any) -> Any:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-5)

    def attended(self, x: Any) -> Any:
        y = tf.transpose(tf.reshape(x, [-1, 2, 2, 2, 2, 8]), [0, 1, 3, 2, 4, 5])
        made = tf.tensordot(tf.reshape(y, [-1, 4, 8]), self.qkv, 1)
        q, k, v = tf.unstack(tf.transpose(tf.reshape(made, [-1, 4, 3, 2, 4]), [2, 0, 3, 1, 4]))
        shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 2.0 + self.bias)
        y = tf.reshape(tf.transpose(shares @ v, [0, 2, 1, 3]), [-1, 4, 8]) @ self.out
        return tf.reshape(tf.transpose(tf.reshape(y, [-1, 2, 2, 2, 2, 8]), [0, 1, 3, 2, 4, 5]), [-1, 4, 4, 8])

    def __call__(self, x: Any) -> Any:
        x = tf.nn.conv2d(x, self.patches, 4, "VALID")
        for by in (0, 1):
            moved = tf.roll(self.normalized(x), [-by, -by], [1, 2])
            x += tf.roll(self.attended(moved), [by, by], [1, 2])
            x += tf.nn.gelu(self.normalized(x) @ self.wide, approximate=True) @ self.narrow
        return tf.reduce_mean(x, [1, 2])


class Reader(tf.Module):  # type: ignore[misc]
    """Words of a sequence of any length: attention to those before each, a list that grows, and a recurrence of a loop."""

    spec = tf.TensorSpec((None, None), tf.int32, name="x")

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = normal(30, 8, size=5.0), normal(40, 8)
        self.qkv, self.step = normal(8, 24), normal(8, 8)

    def __call__(self, x: Any) -> Any:
        count = tf.shape(x)[1]
        h = tf.nn.embedding_lookup(self.words, x) + self.places[:count]
        q, k, v = tf.split(tf.einsum("btd,de->bte", h, self.qkv), 3, -1)
        seen = tf.linalg.band_part(tf.ones([count, count]), -1, 0) * tf.cast(x > 0, tf.float32)[:, None]
        shares = tf.nn.softmax(tf.where(seen > 0, tf.einsum("bqd,bkd->bqk", q, k), -1e9))
        h += tf.einsum("bqk,bkd->bqd", shares, v)
        state, kept = tf.zeros_like(h[:, 0]), tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for t in tf.range(20):
            state = tf.tanh(state @ self.step + h[:, t % count])
            kept = kept.write(t, tf.reduce_max(state, -1))
        return tf.concat([state, tf.transpose(kept.stack())], 1)


def calibrated(model: Any) -> Any:
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.momentum = 0.1
    for _ in range(4):
        model(RNG.standard_normal((32, *model.inputs[0].shape[1:])).astype(np.float32), training=True)
    return model


def written(name: str, model: Any, folder: Path) -> tuple[Any, Any]:
    """Writes a network in both ways; returns an input, and its output."""
    is_keras = isinstance(model, tf.keras.Model)
    spec = tf.TensorSpec((None, *model.inputs[0].shape[1:]), tf.float32, name="x") if is_keras else model.spec
    call = tf.function(model.__call__ if not is_keras else model, input_signature=[spec])
    if name == "mobile":
        model.export(str(folder / f"{name}.saved"), verbose=False)
    elif is_keras:
        tf.saved_model.save(model, str(folder / f"{name}.saved"))
    else:
        tf.saved_model.save(model, str(folder / f"{name}.saved"), signatures={"serving_default": call})
    frozen = convert_variables_to_constants_v2(call.get_concrete_function())
    (folder / f"{name}.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString())
    sizes = [3 if d == 0 else 9 if s is None else s for d, s in enumerate(spec.shape)]
    x: Any = RNG.integers(0, 30, sizes) if spec.dtype == tf.int32 else RNG.standard_normal(sizes)
    x = x.astype(spec.dtype.as_numpy_dtype)
    return x, call(tf.constant(x)).numpy()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    tf.keras.utils.set_random_seed(1)
    models = {"mobile": calibrated(mobile()), "unet": calibrated(unet()), "windows": Windows(), "reader": Reader()}
    for name, model in models.items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            x, y = written(name, model, folder)
            np.savez_compressed(FOLDER / f"{name}.npz", input=x, output=y)
            with (
                lzma.open(FOLDER / f"{name}.tar.xz", "w", preset=9) as whole,
                tarfile.open(mode="w", fileobj=whole) as tar,
            ):
                for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "fingerprint.pb"):
                    tar.add(path, str(path.relative_to(folder)))
        print(name, x.shape, y.shape, float(y.std()), flush=True)


if __name__ == "__main__":
    main()
