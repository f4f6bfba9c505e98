"""The cost of open sizes: operators, and one layer of an encoder, against models compiled for the very sizes of a call.

    python benchmarks/symbolic_sizes.py            all cases; a name of a case picks it

Each line has the processor time of a call of the model of that size, and the ratios to it of models with open sizes, and with the
range of them, of which all sizes are multiples of 16. One thread; the models are called in turns, and the fastest round of each
counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import process_time
from typing import Final

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import weft

ROUNDS, SECONDS = 30, 0.01
WIDTH, HEADS = 256, 4
Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def model(nodes: Sequence[NodeProto], inputs: dict[str, Sequence[int | str]], weights: dict[str, object]) -> ModelProto:
    """Returns a model of float32 inputs with one output, `y`."""
    graph = helper.make_graph(
        list(nodes),
        "case",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in inputs.items()],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def node(op: str, inputs: str, output: str = "y", **attributes: object) -> NodeProto:
    """Returns a node of one output."""
    return helper.make_node(op, inputs.split(), [output], **attributes)


def floats(*shape: int) -> Array:
    """Returns seeded normal numbers."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def encoder() -> ModelProto:
    """Returns one layer of a transformer's encoder, of a symbolic batch and sequence."""
    weights: dict[str, object] = {n: floats(WIDTH, WIDTH) / 16 for n in ("wq", "wk", "wv", "wo")}
    weights |= {
        "w1": floats(WIDTH, 4 * WIDTH) / 16,
        "w2": floats(4 * WIDTH, WIDTH) / 32,
        "one": floats(WIDTH),
        "nil": floats(WIDTH),
    }
    weights |= {
        "split": np.array([0, 0, HEADS, WIDTH // HEADS]),
        "join": np.array([0, 0, WIDTH]),
        "scale": np.float32(0.125),
    }
    nodes = list[NodeProto]()
    for name, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [node("MatMul", f"x w{name}", f"{name}0"), node("Reshape", f"{name}0 split", f"{name}1")]
        nodes.append(node("Transpose", f"{name}1", name, perm=perm))
    nodes += [
        node("MatMul", "q k", "s0"),
        node("Mul", "s0 scale", "s1"),
        node("Softmax", "s1", "s", axis=-1),
        node("MatMul", "s v", "a0"),
        node("Transpose", "a0", "a1", perm=[0, 2, 1, 3]),
        node("Reshape", "a1 join", "a2"),
        node("MatMul", "a2 wo", "a"),
        node("Add", "x a", "h0"),
        node("LayerNormalization", "h0 one nil", "h"),
        node("MatMul", "h w1", "f0"),
        node("Relu", "f0", "f1"),
        node("MatMul", "f1 w2", "f"),
        node("Add", "h f", "g"),
        node("LayerNormalization", "g one nil"),
    ]
    return model(nodes, {"x": ("b", "s", WIDTH)}, weights)


Case = tuple[Callable[[], ModelProto], Sequence[dict[str, int]]]
SIZES: Final = [{"n": 77}, {"n": 128}, {"n": 511}]
CASES: Final[dict[str, Case]] = {
    "elementwise": (lambda: model([node("Sigmoid", "x")], {"x": (64, "n")}, {}), SIZES),
    "softmax": (lambda: model([node("Softmax", "x", axis=-1)], {"x": (64, "n")}, {}), SIZES),
    "reduction": (lambda: model([node("ReduceMean", "x", axes=[1])], {"x": (64, "n")}, {}), SIZES),
    "layer norm": (
        lambda: model([node("LayerNormalization", "x a b")], {"x": ("n", 256)}, {"a": floats(256), "b": floats(256)}),
        SIZES,
    ),
    "matmul M": (lambda: model([node("MatMul", "x w")], {"x": ("n", 128)}, {"w": floats(128, 128)}), SIZES),
    "matmul N": (lambda: model([node("MatMul", "x w")], {"x": (64, 128), "w": (128, "n")}, {}), SIZES),
    "matmul K": (lambda: model([node("MatMul", "x w")], {"x": (64, "n"), "w": ("n", 128)}, {}), SIZES),
    "encoder": (encoder, [{"b": 1, "s": 16}, {"b": 4, "s": 77}, {"b": 8, "s": 128}, {"b": 2, "s": 511}]),
}


def times(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Returns the processor seconds of each call: the least of rounds in which they take turns."""
    counts = list[int]()
    for call in calls:
        call()
        start = process_time()
        call()
        counts.append(max(1, int(SECONDS / max(process_time() - start, 1e-6))))
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for k, call in enumerate(calls):
            start = process_time()
            for _ in range(counts[k]):
                call()
            best[k] = min(best[k], (process_time() - start) / counts[k])
    return best


def measure(name: str) -> None:
    """Prints a line for each size of a case."""
    make, sizes = CASES[name]
    made = make()
    symbols = list(sizes[0])
    opened = weft.compile(made, threads=1)
    longest = symbols[-1]
    ranged = weft.compile(made, threads=1, shapes={longest: weft.Dim(16, 1024, 16)})
    for given in sizes:
        static = weft.compile(made, threads=1, shapes=given)
        arrays = [floats(*[d if isinstance(d, int) else given[d] for d in s.shape]) for s in opened.inputs]
        models = [static, opened, *([ranged] if given[longest] % 16 == 0 else [])]
        found = times([partial(m.run, arrays) for m in models])
        ratios = " ".join(f"{t / found[0]:8.2f}" for t in found[1:])
        print(f"{name:12} {'x'.join(map(str, given.values())):>8} {found[0] * 1e6:10.1f} us {ratios}")


if __name__ == "__main__":
    print(f"{'case':12} {'size':>8} {'static':>13} {'open':>8} {'range':>8}")
    for case in sys.argv[1:] or CASES:
        measure(case)
