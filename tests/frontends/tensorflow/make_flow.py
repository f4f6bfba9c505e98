"""Makes graphs with control flow of TensorFlow 1, with inputs and the outputs that TensorFlow computes.

    python tests/frontends/tensorflow/make_flow.py tests/frontends/tensorflow/cases

Needs TensorFlow 2.21. The folder gets flow.npz.xz, an archive, compressed as a whole, of `NAME.graph`, and for each of its three
runs `NAME.0.input0` ... and `NAME.0.output0` .... Graphs are frozen as TensorFlow 1 does, but for those called lowered, which
TensorFlow 2 makes of functions.
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

v1 = tf.compat.v1
RNG = np.random.default_rng(0)
WEIGHTS = {n: RNG.standard_normal((n, n)).astype(np.float32) / n for n in (4, 6)}
Model = Callable[..., Any]


def total(x: Any) -> Any:
    return tf.reduce_sum(x)


def cond(x: Any) -> Any:
    w = tf.constant(WEIGHTS[4])
    return v1.cond(total(x) > 0.0, lambda: tf.matmul(x, w) + 1.0, lambda: tf.nn.relu(-x))


def cond_of_constants(x: Any) -> Any:
    a, b = v1.cond(total(x) > 0.0, lambda: (tf.constant(2.0), x), lambda: (tf.constant(-3.0), x * x))
    return a * b


def conds_in_turn(x: Any) -> Any:
    p = total(x) > 0.0
    y = v1.cond(p, lambda: x * 2.0, lambda: x - 1.0)
    return v1.cond(p, lambda: (y + x, y), lambda: (y * x, x))


def nested_cond(x: Any) -> Any:
    def inner() -> Any:
        return v1.cond(tf.reduce_max(x) > 1.0, lambda: x * 3.0, lambda: tf.constant(0.5) + x)

    return v1.cond(total(x) > 0.0, inner, lambda: v1.cond(x[0, 0] > 0.0, lambda: -x, lambda: tf.zeros_like(x)))


def case_of_three(x: Any) -> Any:
    s = total(x)
    return v1.case([(s > 2.0, lambda: x + 1.0), (s > 0.0, lambda: x * 2.0)], default=lambda: tf.exp(x))


def while_loop(x: Any) -> Any:
    w = tf.constant(WEIGHTS[4])

    def step(i: Any, v: Any) -> Any:
        return i + 1, tf.abs(v + tf.matmul(v, w)) + 1.0

    return v1.while_loop(lambda i, v: (total(v) < 50.0) & (i < 90), step, [0, x])


def bounded_while(x: Any) -> Any:
    return v1.while_loop(lambda v: total(v) < 1e6, lambda v: v + tf.abs(x) + 0.1, [x], maximum_iterations=40)


def short_while(x: Any) -> Any:
    return v1.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, tf.tanh(v) + x), [0, x])[1]


def nested_while(x: Any) -> Any:
    def outer(i: Any, v: Any) -> Any:
        inner = v1.while_loop(lambda j, u: j < i, lambda j, u: (j + 1, tf.sin(u) + x), [tf.constant(0), v])
        return i + 1, inner[1] * 0.9

    return v1.while_loop(lambda i, v: i < 20, outer, [0, x])[1]


def while_in_cond(x: Any) -> Any:
    def loop() -> Any:
        return v1.while_loop(lambda v: total(v) < 30.0, lambda v: v * 1.5 + x, [x])

    return v1.cond(total(x) > 0.0, loop, lambda: x - 2.0)


def cond_in_while(x: Any) -> Any:
    def step(i: Any, v: Any) -> Any:
        return i + 1, v1.cond(tf.equal(i % 2, 0), lambda: v + x, lambda: tf.nn.relu(v) * tf.constant(0.5))

    return v1.while_loop(lambda i, v: i < 30, step, [0, x])[1]


def arrays_in_while(x: Any) -> Any:
    given = tf.TensorArray(tf.float32, 20).unstack(x)
    made = tf.TensorArray(tf.float32, 20)
    w = tf.constant(WEIGHTS[4])

    def step(i: Any, state: Any, kept: Any) -> Any:
        state = tf.tanh(tf.linalg.matvec(w, state) + given.read(i))
        return i + 1, state, kept.write(i, state)

    _, last, rows = v1.while_loop(lambda i, s, k: i < 20, step, [0, tf.zeros(4), made])
    return last, rows.stack()


def mapped(x: Any) -> Any:
    return tf.map_fn(lambda v: tf.cumsum(v) * 2.0, x)


def scanned(x: Any) -> Any:
    return tf.scan(lambda a, v: a * 0.5 + v, x)


def dynamic_rnn(x: Any) -> Any:
    """The loop of `dynamic_rnn` with lengths: steps behind a sequence's end pass its state on, all of them by a branch."""
    lengths = tf.constant([20, 7])
    rows = tf.TensorArray(tf.float32, tf.shape(x)[1], element_shape=[2, 4])
    given = tf.TensorArray(tf.float32, tf.shape(x)[1], element_shape=[2, 4]).unstack(tf.transpose(x, [1, 0, 2]))
    w = tf.constant(WEIGHTS[4])

    def step(t: Any, state: Any, kept: Any) -> Any:
        def new() -> Any:
            return tf.tanh(tf.matmul(state, w) + given.read(t))

        def part() -> Any:
            return tf.where((t < lengths)[:, None], new(), state)

        after = v1.cond(t < tf.reduce_min(lengths), new, part)
        return t + 1, after, kept.write(t, after)

    loop = v1.while_loop(lambda t, s, k: t < tf.shape(x)[1], step, [0, tf.zeros([2, 4]), rows])
    return tf.transpose(loop[2].stack(), [1, 0, 2]), loop[1]


SHAPES: dict[Model, tuple[int, ...]] = {
    **dict.fromkeys([cond, cond_of_constants, conds_in_turn, nested_cond, case_of_three], (3, 4)),
    **dict.fromkeys([while_loop, bounded_while, short_while, nested_while, while_in_cond, cond_in_while], (3, 4)),
    **dict.fromkeys([arrays_in_while, mapped, scanned], (20, 4)),
    dynamic_rnn: (2, 20, 4),
}
LOWERED: dict[str, Model] = {
    "cond lowered": lambda x: tf.cond(total(x) > 0.0, lambda: x * 2.0, lambda: tf.constant(1.0) - x),
    "while lowered": lambda x: tf.while_loop(
        lambda i, v: i < 30, lambda i, v: (i + 1, tf.tanh(v + x)), [tf.constant(0), x]
    )[1],
    "map lowered": mapped,
}


def examples(shape: tuple[int, ...]) -> list[Any]:
    x = RNG.standard_normal(shape).astype(np.float32)
    return [np.abs(x) * 0.4, -np.abs(x) * 0.4, x]


def frozen_in_1(model: Model, shape: tuple[int, ...]) -> tuple[bytes, list[list[Any]], list[Any]]:
    """Returns a graph as TensorFlow 1 freezes it, with inputs and its outputs."""
    given = examples(shape)
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        x = v1.placeholder(tf.float32, (None, *shape[1:]) if model is dynamic_rnn else shape, name="x")
        made = model(x)
        ends = [tf.identity(y, f"y{k}") for k, y in enumerate(made if isinstance(made, list | tuple) else [made])]
        results = [session.run(ends, {x: g}) for g in given]
        names = [e.op.name for e in ends]
        small = v1.graph_util.extract_sub_graph(graph.as_graph_def(), names)
    return small.SerializeToString(), [[g] for g in given], results


def lowered(model: Model, shape: tuple[int, ...]) -> tuple[bytes, list[list[Any]], list[Any]]:
    """Returns a graph as TensorFlow 2 freezes it by default, with inputs and its outputs."""
    given = examples(shape)
    function = tf.function(model).get_concrete_function(tf.TensorSpec(shape, tf.float32, name="x"))
    frozen = convert_variables_to_constants_v2(function)
    results = [[function(tf.constant(g)).numpy()] for g in given]
    return frozen.graph.as_graph_def().SerializeToString(), [[g] for g in given], results


def main(folder: Path) -> None:
    arrays: dict[str, Any] = {}
    cases = {name: lowered(f, (20, 4) if f is mapped else (3, 4)) for name, f in LOWERED.items()}
    v1.disable_control_flow_v2()
    cases |= {f.__name__.replace("_", " "): frozen_in_1(f, shape) for f, shape in SHAPES.items()}
    for name, (graph, inputs, outputs) in cases.items():
        arrays[f"{name}.graph"] = np.frombuffer(graph, np.uint8)
        for run, (given, made) in enumerate(zip(inputs, outputs, strict=True)):
            arrays |= {f"{name}.{run}.input{k}": v for k, v in enumerate(given)}
            arrays |= {f"{name}.{run}.output{k}": v for k, v in enumerate(made)}
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    (folder / "flow.npz.xz").write_bytes(lzma.compress(packed.getvalue(), preset=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
