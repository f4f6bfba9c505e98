"""Networks of Keras's layers that prepare data: categories and images; and of cells and pools that others have not."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


def categories() -> Any:
    """Bins, encodings and vocabularies, given and learned from data."""
    whole, real = keras.Input((3,), dtype="int32", name="whole"), keras.Input((3,), name="real")
    learned = layers.Discretization(num_bins=4)
    learned.adapt(np.linspace(-2, 2, 40))
    found = layers.IntegerLookup(output_mode="multi_hot")
    found.adapt(np.array([3, 3, 9, 9, 9, 14]))
    table = layers.ReversibleEmbedding(20, 4, logit_soft_cap=2.0)
    normal = layers.Normalization(mean=[0.5, 1.0, 2.0], variance=[1.0, 4.0, 0.25], invert=True)
    rows = table(whole)
    made = [
        layers.CategoryEncoding(20, output_mode="multi_hot")(whole),
        layers.CategoryEncoding(20, output_mode="count")(whole, count_weights=real),
        layers.CategoryEncoding(20, output_mode="one_hot")(whole[:, :1]),
        *(learned(real), layers.Discretization([-0.5, 0.5], output_mode="count")(real)),
        *(found(whole), layers.IntegerLookup(vocabulary=[12, 0, 5, 17, 1], num_oov_indices=3, mask_token=2)(whole)),
        layers.IntegerLookup(vocabulary=[3, 4, 9], output_mode="tf_idf", idf_weights=[0.5, 1.0, 2.0])(whole),
        layers.IntegerLookup(vocabulary=[-7, 12, 90], invert=True)(whole),
        *(normal(real), rows, table(rows * 3.0, reverse=True)),
    ]
    return keras.Model([whole, real], [ops.cast(y, "float32") for y in made])


def pictures() -> Any:
    """Images resized in their aspect ratio and by all filters, and adaptive pools."""
    given = keras.Input((12, 10, 2), name="picture")
    made = [
        layers.Resizing(7, 9, interpolation="nearest", pad_to_aspect_ratio=True, fill_value=0.5)(given),
        layers.Resizing(5, 9, interpolation="bicubic", crop_to_aspect_ratio=True)(given),
        layers.Resizing(5, 4, antialias=True)(given),
        layers.UpSampling2D(2, interpolation="lanczos3")(given),
        layers.Resizing(9, 13, interpolation="lanczos5", antialias=True)(given),
        layers.CenterCrop(14, 9)(given),
        layers.Pipeline([layers.Rescaling(0.5), layers.Resizing(4, 3)])(layers.RandomCrop(12, 10)(given)),
        layers.AdaptiveAveragePooling2D((5, 3))(given),
        layers.AdaptiveMaxPooling2D(4)(layers.Solarization()(given)),
        layers.AdaptiveMaxPooling1D(5)(layers.Reshape((12, 20))(given)),
        layers.AdaptiveAveragePooling3D((2, 3, 2), data_format="channels_first")(layers.Reshape((2, 4, 6, 5))(given)),
        layers.Softmax(axis=(1, 2))(given),
        *[layers.Activation(f)(given * 2.0) for f in ("celu", "glu", "hard_shrink", "soft_shrink", "squareplus")],
        *[layers.Activation(f)(given * 2.0) for f in ("sparse_plus", "sparse_sigmoid")],
    ]
    return keras.Model(given, made)


def mixed() -> Any:
    """Layers that change images in training alone, and adaptive pools of other ranks."""
    given = keras.Input((12, 10, 3), name="picture")
    x = given
    for layer in (
        layers.AugMix((0, 1)),
        layers.CutMix(),
        layers.MixUp(),
        layers.RandAugment((0, 1)),
        layers.RandomElasticTransform(),
    ):
        x = layer(x)
    made = [
        layers.Conv2D(2, 3)(x),
        layers.AdaptiveAveragePooling1D(4)(layers.Reshape((12, 30))(x)),
        layers.AdaptiveMaxPooling3D((2, 3, 2))(layers.Reshape((4, 5, 6, 3))(x)),
    ]
    return keras.Model(given, made)


def steps() -> Any:
    """Cells called by themselves, states of several cells, and layers of low-rank changes."""
    x, h, memory = (keras.Input((n,), name=name) for n, name in ((3, "x"), (4, "h"), (4, "memory")))
    y, (h1, memory1) = layers.LSTMCell(4)(x, [h, memory])
    z, (h2,) = layers.GRUCell(4)(y, [h1])
    w, _ = layers.SimpleRNNCell(4)(z, [h2])
    sequence = layers.RepeatVector(3)(layers.Dense(4, lora_rank=2)(w))
    cells = [layers.LSTMCell(4), layers.GRUCell(5)]
    made = layers.RNN(cells, return_state=True, return_sequences=True)(sequence)
    return keras.Model([x, h, memory], [memory1, *keras.tree.flatten(made)])


def spectra() -> Any:
    """Spectrograms of signals of one and two channels, and transforms of their frames and back."""
    sound, stereo = keras.Input((400,), name="sound"), keras.Input((120, 2), name="stereo")
    mel = layers.MelSpectrogram(64, 24, sequence_length=48, num_mel_bins=12, sampling_rate=4000)(sound)
    plain = layers.MelSpectrogram(32, 16, window="hamming", num_mel_bins=6, power_to_db=False, max_freq=5000)(sound)
    made = [
        layers.STFTSpectrogram(mode, 16, 8, padding="same" if mode == "psd" else "valid", expand_dims=mode == "log")(
            stereo
        )
        for mode in ("log", "magnitude", "psd", "real", "imag", "stft")
    ]
    frames = ops.extract_sequences(sound, 16, 12)
    real, imaginary = ops.stft(sound, 24, 10, 32)
    back = ops.istft((real * 0.5, imaginary), 24, 10, 32)
    half = ops.rfft(frames)
    made += [
        mel,
        plain,
        frames,
        real,
        imaginary,
        back,
        *half,
        ops.irfft((half[0], half[1] * 0.5)),
        *ops.fft((real, imaginary)),
    ]
    made += [
        *ops.ifft2(ops.fft2((frames, frames * 0.5))),
        ops.istft((real, imaginary), 24, 10, 32, length=300, window=None),
    ]
    return keras.Model([sound, stereo], made)


WORDS = ("cat", "dog", "", "the", "a bird", "Zebra", "\u00e9t\u00e9", "x" * 70)
TEXTS = (
    "The CAT sat on the mat.",
    "nothing here; the dog?",
    "A bird, a bird - \u00c9t\u00e9!",
    "  the   cat  and the dog sat on the mat by the sea ",
)


def strings() -> Any:
    """Strings looked up, hashed and crossed."""
    words, whole = keras.Input((2,), dtype="string", name="words"), keras.Input((1,), dtype="int64", name="whole")
    known, first = ["cat", "dog", "bird"], words[:, :1]
    learned = layers.StringLookup(output_mode="tf_idf")
    learned.adapt(np.array([["cat", "dog"], ["the", "cat"], ["dog", "mouse"]]))
    made = [
        layers.StringLookup(vocabulary=known)(words),
        layers.StringLookup(vocabulary=known, mask_token="", num_oov_indices=3)(words),
        layers.StringLookup(vocabulary=known, output_mode="one_hot")(first),
        layers.StringLookup(vocabulary=known, output_mode="count", max_tokens=6, pad_to_max_tokens=True)(words),
        layers.StringLookup(vocabulary=known, output_mode="tf_idf", idf_weights=[0.5, 0.2, 0.7])(words),
        learned(words),
        *(
            layers.Hashing(10)(words),
            layers.Hashing(7, salt=[133, 137])(words),
            layers.Hashing(5, mask_value="")(words),
        ),
        *(layers.Hashing(8, output_mode="multi_hot")(whole), layers.Hashing(9, salt=42, mask_value=3)(whole)),
        *(layers.HashedCrossing(10)([first, whole]), layers.HashedCrossing(6, output_mode="one_hot")([whole, first])),
        layers.HashedCrossing(11)([layers.Concatenate(axis=0)([first])[:, 0], whole[:, 0]]),
    ]
    names = layers.StringLookup(vocabulary=known, invert=True, mask_token="")(ops.abs(whole) % 5)
    return keras.Model([words, whole], [*[ops.cast(y, "float32") for y in made], names])


def texts() -> Any:
    """Texts taken apart into words or letters, as numbers and as bags of words."""
    text, made = keras.Input((1,), dtype="string", name="text"), []
    for settings in (
        {"output_sequence_length": 6, "max_tokens": 12},
        {"output_mode": "multi_hot"},
        {"output_mode": "count", "ngrams": 2, "standardize": "lower"},
        {"output_mode": "tf_idf", "standardize": "strip_punctuation"},
        {"split": "character", "output_sequence_length": 9, "standardize": None},
        {"split": None, "standardize": None},
        {"ngrams": (1, 3), "output_sequence_length": 9},
        {"ngrams": 2},
    ):
        layer = layers.TextVectorization(**settings)
        layer.adapt([TEXTS[0], "a dog sat", "the dog, and the cat!"])
        made.append(ops.cast(layer(text), "float32"))
    layer = layers.TextVectorization(vocabulary=["cat", "dog", "the"])
    x = layers.Embedding(6, 4, mask_zero=True)(layer(text))
    return keras.Model(text, [*made, layers.LSTM(3)(x)])


def features() -> Any:
    """Features of several kinds, encoded and joined by Keras's feature space."""
    space = keras.utils.FeatureSpace
    kinds = {
        "real": space.float_normalized(),
        "words": space.string_categorical(num_oov_indices=1),
        "bins": space.float_discretized(num_bins=4),
        "hashed": space.string_hashed(num_bins=5),
    }
    made = space(kinds, crosses=[space.cross(("words", "hashed"), 16)], output_mode="concat")
    rng = np.random.default_rng(3)
    data = {"real": rng.normal(size=20), "bins": rng.normal(size=20), "words": rng.choice(WORDS[:4], 20)}
    data["hashed"] = rng.choice(WORDS[3:], 20)
    made.adapt(tf.data.Dataset.from_tensor_slices(data))
    inputs = made.get_inputs()
    return keras.Model(list(inputs.values()), layers.Dense(3)(made.get_encoded_features()))


def painted() -> Any:
    """Colours, means of areas, and images of any size."""
    fixed, open_ = keras.Input((9, 12, 3), name="fixed"), keras.Input((None, None, 3), name="open")
    hues = ops.image.rgb_to_hsv(ops.sigmoid(fixed))
    areas = [layers.Resizing(*size, interpolation="area")(fixed) for size in ((4, 5), (18, 7))]
    x = layers.Conv2D(4, 3, strides=2, padding="same", activation="relu")(open_)
    pools = [layers.MaxPooling2D(3, 2, padding="same")(x), layers.AveragePooling2D(3, 2, padding="same")(x)]
    x = layers.DepthwiseConv2D(5, strides=3, padding="same")(layers.Concatenate()(pools))
    return keras.Model(
        [fixed, open_], [hues, ops.image.hsv_to_rgb(hues), ops.image.rgb_to_grayscale(fixed), *areas, *pools, x]
    )
