"""Makes models of TensorFlow Lite whose calls change variables, with inputs and results of several calls in a row.

    python -m tests.frontends.tflite.make_stateful FOLDER

Needs TensorFlow 2.21, whose interpreter computes the results; the tests do not. A case is `NAME.npz` in the folder: the file, the
inputs `x` of all calls, and the results `y`. Seeds are fixed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tests.frontends.tflite.written import one_operator

CALLS = 5


class Running(tf.Module):  # type: ignore[misc]
    """Adds up what it is given, from a first value on, and counts its calls."""

    def __init__(self, first: Any) -> None:
        super().__init__()
        self.total = tf.Variable(first)
        self.count = tf.Variable(0)

    @tf.function(input_signature=[tf.TensorSpec((2, 3), tf.float32)])  # type: ignore[untyped-decorator]
    def call(self, x: Any) -> Any:
        before = self.total.read_value()
        self.count.assign_add(1)
        self.total.assign(0.5 * before + x)
        return self.total.read_value() * tf.cast(self.count.read_value(), tf.float32) - before


def variables(first: Any) -> bytes:
    """Returns a module with variables as the converter writes it."""
    module = Running(first)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.call.get_concrete_function()], module)
    converter.experimental_enable_resource_variables = True
    return bytes(converter.convert())


def svdf(rank: int, batch: int, rng: Any) -> bytes:
    """Returns two filters of memory in a row (Nakkiran et al., 2015), which the converter does not write by itself."""
    units, inputs, memory = 3, 4, 6
    filters = units * rank
    given = {
        "x": (batch, inputs),
        "feature": rng.standard_normal((filters, inputs)),
        "time": rng.standard_normal((filters, memory)),
        "bias": rng.standard_normal(units),
        "state": (batch, memory * filters),
        "y": (batch, units),
    }
    options = schema.SVDFOptionsT()
    options.rank, options.fusedActivationFunction = rank, schema.ActivationFunctionType.RELU
    return one_operator("SVDF", options, given, results=1, state="state")


def rnn(batch: int, rng: Any) -> bytes:
    """Returns a step of a recurrent layer."""
    units, inputs = 3, 4
    given = {
        "x": (batch, inputs),
        "weight": rng.standard_normal((units, inputs)),
        "recurrence": rng.standard_normal((units, units)),
        "bias": rng.standard_normal(units),
        "state": (batch, units),
        "y": (batch, units),
    }
    options = schema.RNNOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    return one_operator("RNN", options, given, results=1, state="state")


def save(path: Path, model: bytes, rng: Any) -> None:
    """Writes a model with the inputs and results of calls in a row."""
    interpreter = tf.lite.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    taken, made = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    given, found = [], []
    for _ in range(CALLS):
        x = rng.standard_normal(taken["shape"]).astype(np.float32)
        interpreter.set_tensor(taken["index"], x)
        interpreter.invoke()
        given.append(x)
        found.append(interpreter.get_tensor(made["index"]).copy())
    np.savez_compressed(path, model=np.frombuffer(model, np.uint8), x=np.stack(given), y=np.stack(found))


def main(folder: Path) -> None:
    """Makes all cases."""
    rng = np.random.default_rng(5)
    folder.mkdir(exist_ok=True)
    save(folder / "zeros.npz", variables(np.zeros((2, 3), np.float32)), rng)
    save(folder / "values.npz", variables(rng.standard_normal((2, 3)).astype(np.float32)), rng)
    save(folder / "svdf.npz", svdf(1, 1, rng), rng)
    save(folder / "svdf_of_ranks.npz", svdf(2, 3, rng), rng)
    save(folder / "rnn.npz", rnn(2, rng), rng)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
