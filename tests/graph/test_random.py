"""Random graphs of many kinds of operators through all passes, fusion and the memory plan, against their own meaning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from tests.graph.checks import constant, random_inputs, scalar
from tests.graph.oracle import Oracle, run_graph, run_planned
from tests.support.sampling import tried

from weft.graph import Graph, Value, find_in_place, fuse, optimize, plan_memory, verify_graph
from weft.support.dtypes import f32
from weft.targets import cpu

FOUR = cpu("sse4")
Draw = Callable[[int], int]
"""Returns a number below another, chosen by hypothesis."""


class Random:
    """A graph that grows by one random step at a time; values keep a modest size."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.graph = Graph("random")
        x = self.graph.input("x", (1, (3, 4, 8)[draw(3)], 5, 5), f32)
        y = self.graph.input("y", (2, 6, 4), f32)
        self.values: list[Value] = [x, y]
        self.seed = 0

    def pick(self, rank: int | None = None) -> Value | None:
        found = [v for v in self.values if rank is None or v.rank == rank]
        return found[-1 - self.draw(min(len(found), 4))] if found else None

    def constant(self, *shape: int) -> Value:
        self.seed += 1
        return constant(self.graph, *shape, seed=self.seed)

    def add(self, op: str, inputs: list[Value | None], **attributes: object) -> None:
        self.values += self.graph.add_many(op, inputs, **attributes)  # type: ignore[arg-type]

    def map(self, x: Value) -> None:
        self.add(("relu", "tanh", "sigmoid", "erf", "square", "neg")[self.draw(6)], [x])

    def scale(self, x: Value) -> None:
        shapes = [(), shape_of(x)[1:2] + (1,) * (x.rank - 2), shape_of(x)[-1:], shape_of(x)]
        other = self.constant(*shapes[self.draw(4)])
        op = ("mul", "add", "sub", "maximum")[self.draw(4)]
        self.add(op, [x, other] if self.draw(2) else [other, x])

    def combine(self, x: Value) -> None:
        fitting = [v for v in self.values if v.shape == x.shape]
        self.add(("add", "mul")[self.draw(2)], [x, fitting[self.draw(len(fitting))]])

    def convolve(self, x: Value) -> None:
        channels, size = shape_of(x)[1], min(shape_of(x)[2:])
        kernel = (1, 3)[self.draw(2)] if size >= 3 else 1
        group = channels if self.draw(3) == 0 else 1
        made = channels if group > 1 else (2, 4, 6, 8)[self.draw(4)]
        bias = self.constant(made) if self.draw(2) else None
        pad = self.draw(2) * (kernel // 2)
        stride = 1 + self.draw(2)
        weight = self.constant(made, channels // group, kernel, kernel)
        self.add("conv2d", [x, weight, bias], pads=(pad,) * 4, strides=(stride,) * 2, group=group)

    def normalize(self, x: Value) -> None:
        channels = shape_of(x)[1]
        variance = constant(self.graph, channels, positive=True)
        self.add("batch_norm", [x, *[self.constant(channels) for _ in range(3)], variance])

    def pool(self, x: Value) -> None:
        op = ("max_pool2d", "avg_pool2d")[self.draw(2)]
        self.add(op, [x], kernel=(2, 2), strides=(1, 1), pads=(1, 1, 1, 1))

    def reduce(self, x: Value) -> None:
        op = ("reduce_mean", "reduce_max", "reduce_sum")[self.draw(3)]
        self.add(op, [x], axes=((-1,), (2,), (1, 2))[self.draw(3)], keepdims=bool(self.draw(2)))

    def join(self, x: Value) -> None:
        self.add("concat", [x, x, self.constant(*shape_of(x))], axis=1)

    def transpose(self, x: Value) -> None:
        order = list(range(x.rank))
        a, b = self.draw(x.rank), self.draw(x.rank)
        order[a], order[b] = order[b], order[a]
        self.add("transpose", [x], perm=tuple(order))

    def reshape(self, x: Value) -> None:
        first, *rest = shape_of(x)
        shapes = [
            (first, int(np.prod(rest))),
            (1, first, *rest),
            (int(np.prod([first, *rest])),),
            (first * rest[0], *rest[1:]),
        ]
        self.add("reshape", [x], shape=shapes[self.draw(4)])

    def cut(self, x: Value) -> None:
        axis = self.draw(x.rank)
        size = shape_of(x)[axis]
        if size > 1:
            self.add("split", [x], axis=axis, sizes=(size // 2, size - size // 2))

    def multiply(self, x: Value) -> None:
        if self.draw(2):
            self.add("matmul", [x, self.constant(shape_of(x)[-1], (3, 8)[self.draw(2)])])
        else:
            perm = (*range(x.rank - 2), x.rank - 1, x.rank - 2)
            self.add("matmul", [x, self.graph.add("transpose", [x], perm=perm)])

    def rows(self, x: Value) -> None:
        last = shape_of(x)[-1]
        if self.draw(2):
            self.add("softmax", [self.graph.add("mul", [x, scalar(self.graph, 0.5)])])
        else:
            self.add("layer_norm", [x, self.constant(last), self.constant(last)], epsilon=1e-2)

    def step(self) -> None:
        """Adds one node (or two) to a value that it fits."""
        kinds = [self.map, self.scale, self.combine, self.convolve, self.normalize, self.pool, self.reduce, self.join,
                 self.transpose, self.reshape, self.cut, self.multiply, self.rows, self.convolve]  # fmt: skip
        kind = kinds[self.draw(len(kinds))]
        wanted = 4 if kind in (self.convolve, self.normalize, self.pool) else None
        x = self.pick(wanted)
        least = (
            3
            if kind == self.reduce
            else 2
            if kind in (self.scale, self.join, self.reshape, self.multiply, self.rows)
            else 1
        )
        if x is not None and x.rank >= least and int(np.prod(shape_of(x))) <= 600:
            kind(x)


def shape_of(v: Value) -> tuple[int, ...]:
    assert v.static_shape is not None
    return v.static_shape


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    made = Random(lambda n: draw(st.integers(0, n - 1)))
    for _ in range(draw(st.integers(1, 14))):
        made.step()
    outputs = [made.values[-1], *([made.values[len(made.values) // 2]] if draw(st.booleans()) else [])]
    for k, v in enumerate(outputs):
        made.graph.output(v, f"out{k}")
    return made.graph


@tried(38, 150, graphs())
def test_a_compiled_graph_means_what_it_did(graph: Graph) -> None:
    verify_graph(graph)
    optimized = optimize(graph, FOUR, Oracle())
    verify_graph(optimized)
    fused = fuse(optimized)
    inputs = random_inputs(graph)
    expected = run_graph(graph, inputs)
    for in_place in (None, find_in_place(fused)):
        found = run_planned(fused, plan_memory(fused, in_place=in_place), inputs)
        for a, b in zip(expected, found, strict=True):
            scale = max(1.0, float(np.abs(a).max(initial=0)))
            np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-4 * scale)
