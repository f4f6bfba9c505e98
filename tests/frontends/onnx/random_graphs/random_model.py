"""Random graphs of many operators, from a seed, and what their results are in double precision.

All functions are continuous: where a rounding error decides between two values, there is nothing to compare.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from weft.cli.onnx_builder import GraphBuilder

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Shape: TypeAlias = tuple[int, ...]

MOST_ELEMENTS: Final = 4096
UNARY: Final = (
    "Relu",
    "Sigmoid",
    "Tanh",
    "Abs",
    "Neg",
    "Softplus",
    "Erf",
    "HardSigmoid",
    "Elu",
    "LeakyRelu",
    "HardSwish",
    "Atan",
    "Identity",
)
BINARY: Final = ("Add", "Sub", "Mul", "Max", "Min")
REDUCTIONS: Final = ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp")


@dataclass
class RandomGraph:
    """A graph that grows: its values with their shapes, and those that no node reads."""

    rng: random.Random
    g: GraphBuilder
    shapes: dict[str, Shape] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

    def add(self, shape: Shape, op: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node with a result of *shape*."""
        made = self.g.op(op, *inputs, **attributes)
        self._keep(made, shape)
        self.unread = [v for v in self.unread if v not in inputs]
        return made

    def input(self, shape: Shape) -> None:
        """Adds an input."""
        self._keep(self.g.input(f"x{len(self.shapes)}", shape), shape)

    def pick(self, rank: int = 0) -> str | None:
        """Returns one of the last values of *rank* at least, rather one that nothing reads."""
        fit = [v for v in list(self.shapes)[-8:] if len(self.shapes[v]) >= rank]
        last = [v for v in fit if v in self.unread]
        return self.rng.choice(last or fit) if fit else None

    def _keep(self, name: str, shape: Shape) -> None:
        self.shapes[name] = shape
        self.unread.append(name)


Step: TypeAlias = Callable[[RandomGraph], None]


def unary(r: RandomGraph) -> None:
    if (x := r.pick()) is not None:
        r.add(r.shapes[x], r.rng.choice(UNARY), x)


def binary(r: RandomGraph) -> None:
    """With another value that fits, or with weights, some of whose sizes are one."""
    if (x := r.pick()) is None:
        return
    shape = r.shapes[x]
    fit = [v for v, s in r.shapes.items() if s == shape and v != x]
    if fit and r.rng.random() < 0.7:
        r.add(shape, r.rng.choice(BINARY), x, r.rng.choice(fit))
    else:
        cut = tuple([s if r.rng.random() < 0.6 else 1 for s in shape[r.rng.randrange(len(shape) or 1) :]])
        r.add(shape, r.rng.choice([*BINARY, "Div"]), x, r.g.uniform(cut, 0.5, 1.5))


def matrix_product(r: RandomGraph) -> None:
    if (x := r.pick(2)) is not None:
        *rows, k = r.shapes[x]
        n = r.rng.choice([1, 3, 8, 17])
        if prod(rows) * n <= MOST_ELEMENTS:
            r.add((*rows, n), "MatMul", x, r.g.normal((k, n), k**-0.5))


def convolution(r: RandomGraph) -> None:
    x = r.pick(4)
    if x is None or len(r.shapes[x]) != 4 or min(r.shapes[x][2:]) < 3:
        return
    n, c, h, w = r.shapes[x]
    depthwise = r.rng.random() < 0.3
    made, stride = c if depthwise else r.rng.choice([2, 5, 8]), r.rng.choice([1, 2])
    size = (n, made, (h - 1) // stride + 1, (w - 1) // stride + 1)
    weights = r.g.normal((made, 1 if depthwise else c, 3, 3), (9 if depthwise else 9 * c) ** -0.5)
    group = c if depthwise else 1
    bias = r.g.normal((made,), 0.1)
    if prod(size) <= MOST_ELEMENTS:
        r.add(size, "Conv", x, weights, bias, kernel_shape=[3, 3], pads=[1] * 4, strides=[stride] * 2, group=group)


def pooling(r: RandomGraph) -> None:
    x = r.pick(4)
    if x is not None and len(r.shapes[x]) == 4 and min(r.shapes[x][2:]) >= 2:
        n, c, h, w = r.shapes[x]
        op = r.rng.choice(["MaxPool", "AveragePool"])
        r.add((n, c, (h - 2) // 2 + 1, (w - 2) // 2 + 1), op, x, kernel_shape=[2, 2], strides=[2, 2])


def normalization(r: RandomGraph) -> None:
    x = r.pick(1)
    if x is None:
        return
    shape = r.shapes[x]
    if r.rng.random() < 0.5:
        r.add(shape, r.rng.choice(["Softmax", "LogSoftmax"]), x, axis=r.rng.randrange(len(shape)))
    elif shape[-1] > 2:  # of two elements, a step from -1 to 1
        scale, bias = r.g.uniform(shape[-1:], 0.5, 1.5), r.g.normal(shape[-1:], 0.1)
        r.add(shape, "LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-2)


def reduction(r: RandomGraph) -> None:
    if (x := r.pick(1)) is not None:
        shape = r.shapes[x]
        d, kept = r.rng.randrange(len(shape)), r.rng.randrange(2)
        made = shape[:d] + (1,) * kept + shape[d + 1 :]
        r.add(made, r.rng.choice(REDUCTIONS), x, axes=[d], keepdims=kept)


def movement(r: RandomGraph) -> None:
    """The same elements in other places, along a dimension or all."""
    if (x := r.pick(1)) is not None:
        d = r.rng.randrange(len(r.shapes[x]))
        r.rng.choice([transposed, reshaped, sliced, padded, gathered, doubled])(r, x, d)


def transposed(r: RandomGraph, x: str, _: int) -> None:
    shape = r.shapes[x]
    order = r.rng.sample(range(len(shape)), len(shape))
    r.add(tuple([shape[k] for k in order]), "Transpose", x, perm=order)


def reshaped(r: RandomGraph, x: str, d: int) -> None:
    shape = r.shapes[x]
    made = (prod(shape[: d + 1]), prod(shape[d + 1 :]))
    r.add(made, "Reshape", x, r.g.int64s(made))


def sliced(r: RandomGraph, x: str, d: int) -> None:
    size = r.shapes[x][d]
    first, step = r.rng.randrange(size), r.rng.choice([1, 2])
    made = resized(r.shapes[x], d, -((first - size) // step))
    r.add(made, "Slice", x, *[r.g.int64s([v]) for v in (first, size, d, step)])


def padded(r: RandomGraph, x: str, d: int) -> None:
    shape = r.shapes[x]
    made, pads = resized(shape, d, shape[d] + 2), [int(k == d) for k in range(len(shape))] * 2
    if prod(made) <= MOST_ELEMENTS:
        r.add(made, "Pad", x, r.g.int64s(pads), r.g.scalar(0.5))


def gathered(r: RandomGraph, x: str, d: int) -> None:
    size = r.shapes[x][d]
    chosen = [r.rng.randrange(-size, size) for _ in range(r.rng.randrange(1, 5))]
    made = resized(r.shapes[x], d, len(chosen))
    if prod(made) <= MOST_ELEMENTS:
        r.add(made, "Gather", x, r.g.int64s(chosen), axis=d)


def doubled(r: RandomGraph, x: str, d: int) -> None:
    made = resized(r.shapes[x], d, 2 * r.shapes[x][d])
    if prod(made) <= MOST_ELEMENTS:
        r.add(made, "Concat", x, x, axis=d)


def resized(shape: Shape, d: int, size: int) -> Shape:
    """Returns *shape* with another *size* of dimension *d*."""
    return (*shape[:d], size, *shape[d + 1 :])


OFTEN: Final[tuple[Step, ...]] = (unary, unary, binary, binary, matrix_product, convolution, convolution)
STEPS: Final = (*OFTEN, pooling, normalization, reduction, movement, movement)


def random_model(seed: int) -> tuple[ModelProto, dict[str, Array]]:
    """Returns a model of up to 20 nodes, of which all that no other node reads are outputs, and its inputs."""
    rng = random.Random(seed)
    r = RandomGraph(rng, GraphBuilder(f"random_{seed}", seed))
    for _ in range(rng.randrange(1, 3)):
        r.input(rng.choice([(1, 3, 8, 8), (2, 4, 9, 7), (3, 5), (2, 7, 6), (11,)]))
    for _ in range(rng.randrange(4, 20)):
        rng.choice(STEPS)(r)
    if all(v in r.unread for v in r.shapes):
        r.add(r.shapes[r.unread[0]], "Tanh", r.unread[0])
    for k, v in enumerate([v for v in r.unread if not v.startswith("x")]):
        r.g.output(v, f"y{k}")
    model = r.g.model()
    numbers = np.random.default_rng(seed)
    feed = {
        i.name: numbers.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32)
        for i in model.graph.input
    }
    return model, feed


def in_double(model: ModelProto, feed: Mapping[str, Array]) -> list[Array]:
    """Returns the results of *model* with all of its float32 numbers as float64, by ONNX's reference evaluator."""
    twin = ModelProto()
    twin.CopyFrom(model)
    constants = [a.t for n in twin.graph.node for a in n.attribute if a.name == "value"]
    for t in [*twin.graph.initializer, *constants]:
        if t.data_type == TensorProto.FLOAT:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name))
    for v in [*twin.graph.input, *twin.graph.output]:
        v.type.tensor_type.elem_type = TensorProto.DOUBLE
    wide = {name: a.astype(np.float64) for name, a in feed.items()}
    found: Any = ReferenceEvaluator(twin).run(None, wide)
    return list(found)
