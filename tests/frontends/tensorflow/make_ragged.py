"""Makes graphs of ragged and sparse tensors, and of lists that grow, with inputs and the outputs that TensorFlow computes.

    python tests/frontends/tensorflow/make_ragged.py tests/frontends/tensorflow/cases

Needs TensorFlow 2.21. The folder gets ragged.npz.xz, an archive, compressed as a whole, of `NAME.graph`, and for each of its two
runs `NAME.0.input.a0` ... and `NAME.0.output.Identity` ..., by the names in the graph.
"""

from __future__ import annotations

import io
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((20, 4)).astype(np.float32)
Inputs = tuple[Any, ...]
CASES: dict[str, tuple[Callable[..., Any], tuple[Inputs, Inputs]]] = {}


def case(*runs: Inputs) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters a function as a case, with the inputs of its two runs."""

    def enter(f: Callable[..., Any]) -> Callable[..., Any]:
        CASES[f.__name__.replace("_", " ")] = f, (runs[0], runs[1])
        return f

    return enter


def real(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def whole(*shape: int, most: int = 8) -> Any:
    return RNG.integers(0, most, shape).astype(np.int32)


def longs(*values: Any) -> Any:
    return np.array(values, np.int64)


TWO_OF_WORDS = [(whole(3, 5),), (whole(3, 5) // 4,)]
SPARSE = [(longs([0, 0], [0, 1], [2, 0]), real(3)), (longs([0, 1], [1, 0], [3, 1]), real(3))]


@case(*TWO_OF_WORDS)
def padded(x: Any) -> Any:
    rows = tf.RaggedTensor.from_tensor(x, padding=0)
    return rows.to_tensor(-1), rows.to_tensor(-1, shape=[3, 2]), rows.row_lengths(), tf.reduce_sum(rows, axis=1)


@case((whole(9), longs(0, 2, 2, 5, 9)), (whole(9), longs(0, 0, 6, 9, 9)))
def embedded_by_splits(v: Any, splits: Any) -> Any:
    rows = tf.RaggedTensor.from_row_splits(v, splits, validate=False)
    found = tf.gather(tf.constant(TABLE), rows)
    return tf.reduce_mean(found, axis=1), found.to_tensor()


@case((whole(9), longs(0, 0, 1, 1, 1, 3, 3, 4, 4)), (whole(9), longs(2, 2, 2, 2, 3, 3, 3, 3, 3)))
def by_row_numbers(v: Any, ids: Any) -> Any:
    rows = tf.RaggedTensor.from_value_rowids(v, ids, nrows=5, validate=False)
    return rows.to_tensor(), rows.row_starts(), tf.reduce_max(rows, axis=1)


@case(*TWO_OF_WORDS)
def joined_and_cut(x: Any) -> Any:
    rows = tf.RaggedTensor.from_tensor(x, padding=0)
    twice = tf.concat([rows, rows], axis=1)
    squares = tf.ragged.map_flat_values(lambda v: v * v, rows)
    return twice.to_tensor(), tf.ragged.range(rows.row_lengths()).to_tensor(), rows[:, :2].to_tensor(), squares.values


@case((longs(0, 2, 3), whole(6), longs(0, 2, 3, 6)), (longs(0, 0, 3), whole(6), longs(0, 1, 1, 6)))
def two_levels(outer: Any, v: Any, inner: Any) -> Any:
    parts = [tf.RaggedTensor.from_row_splits, tf.RaggedTensor.from_row_splits]
    rows = parts[0](parts[1](v, inner, validate=False), outer, validate=False)
    return rows.to_tensor(-1), tf.gather(rows, [1, 0]).to_tensor()


@case(*[(*s, np.maximum(s[1], -1)) for s in SPARSE])
def pairs(i: Any, v: Any, w: Any) -> Any:
    a, b = tf.SparseTensor(i, v, [4, 2]), tf.SparseTensor(i[::-1], w, [4, 2])
    a, b = tf.sparse.reorder(a), tf.sparse.reorder(b)
    joined, piece = tf.sparse.concat(0, [a, b]), tf.sparse.slice(a, [0, 0], [2, 2])
    dense = [tf.sparse.to_dense(s) for s in (tf.sparse.add(a, b), joined, piece, tf.sparse.maximum(a, b))]
    return *dense, tf.sparse.softmax(a).values, tf.sparse.to_dense(a * 2.0), tf.sparse.reduce_sum(a, axis=1)


@case(*[(i, longs(3, 1, 4), np.abs(w)) for i, w in SPARSE])
def looked_up(i: Any, v: Any, w: Any) -> Any:
    ids, weights, table = tf.SparseTensor(i, v, [4, 2]), tf.SparseTensor(i, w, [4, 2]), tf.constant(TABLE)
    kinds = ("mean", "sum", "sqrtn")
    return [tf.nn.safe_embedding_lookup_sparse(table, ids, combiner=k) for k in kinds] + [
        tf.nn.embedding_lookup_sparse(table, ids, weights, combiner="sum")
    ]


@case((real(2, 8, 5), whole(2) + 1), (real(2, 8, 5) * 2, whole(2) + 1))
def decoded(x: Any, lengths: Any) -> Any:
    (found,), score = tf.nn.ctc_greedy_decoder(tf.transpose(x, [1, 0, 2]), lengths)
    return tf.sparse.to_dense(found, default_value=-1), score


@case((real(5, 4),), (real(5, 4),))
def chosen_rows(x: Any) -> Any:
    rows = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(5):
        if tf.reduce_sum(x[i]) > 0.0:
            rows = rows.write(rows.size(), x[i])
    return rows.stack()


@case((real(6, 3), whole(6, most=3)), (real(6, 3), whole(6, most=2)))
def parts_and_counts(x: Any, k: Any) -> Any:
    parts, places = (tf.dynamic_partition(v, k, 3) for v in (x, tf.range(6)))
    again = tf.dynamic_stitch(places, [p * 2.0 for p in parts])
    pair = tf.reshape(k, [2, 3])
    counts = tf.math.bincount(k), tf.math.bincount(pair, minlength=2, maxlength=2, axis=-1)
    order = tf.sort(k)
    return parts[0], again, *counts, tf.math.segment_mean(x, order), tf.math.segment_max(x, order)


@case(*[(*s, np.linspace(1, 2, 8, dtype=np.float32).reshape(4, 2)) for s in SPARSE])
def beside_dense(i: Any, v: Any, y: Any) -> Any:
    a, raw = tf.SparseTensor(i, v, [4, 2]), tf.raw_ops
    operands = {"sp_indices": i, "sp_values": v, "sp_shape": a.dense_shape, "dense": y}
    least = tf.sparse.minimum(a, a * 2.0)
    return raw.SparseDenseCwiseAdd(**operands), raw.SparseDenseCwiseDiv(**operands), tf.sparse.to_dense(least)


def main(folder: Path) -> None:
    arrays: dict[str, Any] = {}
    for name, (f, runs) in CASES.items():
        given = [tf.TensorSpec(v.shape, v.dtype, name=f"a{k}") for k, v in enumerate(runs[0])]
        function = tf.function(lambda *a, f=f: tf.nest.flatten(f(*a)), input_signature=given).get_concrete_function()
        frozen = convert_variables_to_constants_v2(function, lower_control_flow=False)
        arrays[f"{name}.graph"] = np.frombuffer(frozen.graph.as_graph_def().SerializeToString(), np.uint8)
        for run, values in enumerate(runs):
            arrays |= {f"{name}.{run}.input.a{k}": v for k, v in enumerate(values)}
            made = frozen(*[tf.constant(v) for v in values])
            names = [t.op.name for t in frozen.outputs]
            arrays |= {f"{name}.{run}.output.{n}": y.numpy() for n, y in zip(names, made, strict=True)}
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    (folder / "ragged.npz.xz").write_bytes(lzma.compress(packed.getvalue(), preset=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
