"""Makes models of TensorFlow Lite of sparse weights, of lookups and of layers that its converter does not write.

    python -m tests.frontends.tflite.make_lookups FOLDER

Needs TensorFlow 2.21, whose interpreter computes the results; the tests do not. A case is `NAME.npz` in the folder: the file
`model`, the input `x`, and the results `output_0` ... Seeds are fixed.
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
from tests.frontends.tflite.written import Sparse, model_of, one_operator


def options(kind: str, **values: Any) -> Any:
    """Returns the options of an operator."""
    made = getattr(schema, f"{kind}OptionsT")()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def sparse(rng: Any, rows: int, columns: int, block: tuple[int, int] | None, dtype: Any = np.float32) -> Sparse:
    """Returns a matrix of which a third, or a third of its blocks, is not zero."""
    size = block or (1, 1)
    kept = rng.random((rows // size[0], columns // size[1])) < 0.35
    whole = rng.integers(1, 100, (rows, columns)).astype(dtype) * kept.repeat(size[0], 0).repeat(size[1], 1).astype(
        dtype
    )
    return Sparse(whole, block)


def densified(matrix: Sparse, letter: str = "f") -> bytes:
    """Returns a model that makes a matrix dense, and adds it to its input."""
    shape = matrix.matrix.shape
    tensors = {"x": (letter, shape), "w": matrix, "d": (letter, shape), "y": (letter, shape)}
    steps = [("DENSIFY", options("Densify"), ["w"], ["d"]), ("MAXIMUM", options("MaximumMinimum"), ["x", "d"], ["y"])]
    return model_of(steps, tensors)


def of_weights(matrix: Sparse, rng: Any) -> bytes:
    """Returns a fully connected layer of sparse weights."""
    units, inputs = matrix.matrix.shape
    given = {"x": (2, inputs), "w": matrix, "b": rng.standard_normal(units), "y": (2, units)}
    return one_operator("FULLY_CONNECTED", options("FullyConnected"), given, 1)


def looked_up(rng: Any) -> bytes:
    given = {"x": ("i", (5,)), "k": np.array([-3, 0, 4, 9]), "v": rng.standard_normal((4, 2, 3))}
    return one_operator("HASHTABLE_LOOKUP", None, given | {"y": (5, 2, 3), "hits": ("B", (5,))}, 2)


def embedded(rng: Any, combiner: int) -> bytes:
    indices = np.array([[0, 0, 1], [0, 1, 0], [0, 1, 2], [1, 1, 0], [1, 1, 1]])
    given = {"x": ("i", (5,)), "i": indices, "s": np.array([2, 2, 3]), "w": rng.uniform(0.5, 2, 5)}
    given |= {"p": rng.standard_normal((6, 4)), "y": (2, 2, 4)}
    return one_operator("EMBEDDING_LOOKUP_SPARSE", options("EmbeddingLookupSparse", combiner=combiner), given, 1)


def both_ways(rng: Any, merged: bool) -> bytes:
    units, inputs = 3, 4
    one = {"w": (units, inputs), "r": (units, units), "b": (units,)}
    given: dict[str, Any] = {"x": (2, 5, inputs)}
    for way in ("f", "b"):
        given |= {f"{way}{n}": rng.standard_normal(s) for n, s in one.items()} | {f"{way}h": (2, units)}
    results = {"y": (2, 5, 2 * units)} if merged else {"y": (2, 5, units), "z": (2, 5, units)}
    tanh = schema.ActivationFunctionType.TANH
    how = options("BidirectionalSequenceRNN", fusedActivationFunction=tanh, mergeOutputs=merged, timeMajor=False)
    return model_of([("BIDIRECTIONAL_SEQUENCE_RNN", how, [*given, "", "", ""], [*results])], given | results, "fh bh")


def forwards(rng: Any) -> bytes:
    units, inputs = 3, 4
    given = {"x": (2, 5, inputs), "w": rng.standard_normal((units, inputs)), "r": rng.standard_normal((units, units))}
    given |= {"b": rng.standard_normal(units), "h": (2, units), "y": (2, 5, units)}
    how = options("SequenceRNN", fusedActivationFunction=schema.ActivationFunctionType.RELU6, timeMajor=False)
    return one_operator("UNIDIRECTIONAL_SEQUENCE_RNN", how, given, 1, "h")


def memory(rng: Any, ways: str, prefix: str) -> bytes:
    """Returns a layer of long short-term memory in one direction, or both, the first with peepholes.

    Both are of steps first: where batches are, the interpreter leaves out results of the second one.
    """
    units, inputs, both = 3, 4, len(ways) == 2
    lead = (5, 2) if both else (2, 5)
    given: dict[str, Any] = {"x": (*lead, inputs)}
    names = ["x"]
    for way in ways:
        parts: dict[str, Any] = {f"w{k}": (units, inputs) for k in range(4)} | {
            f"r{k}": (units, units) for k in range(4)
        }
        parts |= {f"p{k}": (units,) for k in range(3) if way == "f"} | {f"b{k}": (units,) for k in range(4)}
        given |= {f"{way}{n}": rng.standard_normal(s) for n, s in parts.items()}
        order = [*[f"w{k}" for k in range(4)], *[f"r{k}" for k in range(4)], *[f"p{k}" for k in range(3)]]
        order += [*[f"b{k}" for k in range(4)], "projection", "projected"]
        names += [f"{way}{n}" if n in parts else "" for n in order]
    states = [f"{way}{s}" for way in ways for s in ("h", "c")]
    given |= dict.fromkeys(states, (2, units)) | {"y": (*lead, units * len(ways))}
    names += [*states, *[""] * (9 if both else 4)]
    how = options(f"{prefix}SequenceLSTM", fusedActivationFunction=schema.ActivationFunctionType.TANH, timeMajor=both)
    if both:
        how.mergeOutputs = True
    return model_of([(f"{prefix.upper()}_SEQUENCE_LSTM", how, names, ["y"])], given, " ".join(states))


def in_buckets() -> bytes:
    how = options("Bucketize", boundaries=[-1.5, 0, 0.5, 2])
    return one_operator("BUCKETIZE", how, {"x": (4, 5), "y": ("i", (4, 5))}, 1)


def save(path: Path, model: bytes, rng: Any) -> None:
    """Writes a model with an input and its results."""
    resolver = (
        tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )  # XNNPACK takes sparse weights for dense
    interpreter = tf.lite.Interpreter(model_content=model, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    taken = interpreter.get_input_details()[0]
    x = rng.standard_normal(taken["shape"]) * 2
    if taken["dtype"] != np.float32:
        x = rng.integers(0, 6, taken["shape"])
    x = x.astype(taken["dtype"])
    interpreter.set_tensor(taken["index"], x)
    interpreter.invoke()
    made = {f"output_{k}": interpreter.get_tensor(d["index"]) for k, d in enumerate(interpreter.get_output_details())}
    np.savez_compressed(path, model=np.frombuffer(model, np.uint8), x=x, **made)
    print(path.name, {k: v.shape for k, v in made.items()})


def main(folder: Path) -> None:
    """Makes all cases."""
    rng = np.random.default_rng(11)
    folder.mkdir(exist_ok=True)
    cases = {
        "densify": densified(sparse(rng, 6, 9, None)),
        "densify_of_blocks": densified(sparse(rng, 8, 12, (4, 2))),
        "densify_of_bytes": densified(sparse(rng, 6, 9, None, np.int8), "b"),
        "sparse_weights": of_weights(sparse(rng, 6, 9, None), rng),
        "sparse_blocks": of_weights(sparse(rng, 8, 16, (1, 4)), rng),
        "lookup": looked_up(rng),
        **{f"embedding_{k}": embedded(rng, k) for k in range(3)},
        "buckets": in_buckets(),
        "rnn_both_ways": both_ways(rng, False),
        "rnn_merged": both_ways(rng, True),
        "rnn": forwards(rng),
        "lstm": memory(rng, "f", "Unidirectional"),
        "lstm_both_ways": memory(rng, "fb", "Bidirectional"),
    }
    for name, model in cases.items():
        save(folder / f"{name}.npz", model, rng)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
