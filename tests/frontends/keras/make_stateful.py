"""Makes a stateful network with Keras, and what it computes in three calls.

    python -m tests.frontends.keras.make_stateful

Needs Keras and TensorFlow. Writes `stateful/remembering.keras` and `stateful/remembering.npz`.
"""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
from keras import layers

FOLDER = Path(__file__).parent / "stateful"


def main() -> None:
    keras.utils.set_random_seed(7)
    x = given = keras.Input(batch_shape=(2, 5, 3), name="x")
    x = layers.LSTM(4, stateful=True, return_sequences=True)(x)
    x = layers.GRU(3, stateful=True, return_sequences=True)(x)
    model = keras.Model(given, layers.SimpleRNN(3, stateful=True)(x))
    arrays = np.random.default_rng(7).normal(size=(3, 2, 5, 3)).astype(np.float32)
    FOLDER.mkdir(exist_ok=True)
    model.save(FOLDER / "remembering.keras")
    np.savez_compressed(FOLDER / "remembering.npz", inputs=arrays, outputs=[np.asarray(model(a)) for a in arrays])


if __name__ == "__main__":
    main()
