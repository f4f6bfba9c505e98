"""Graphs of quantised tensors as frontends build them, and bytes to run them on."""

from __future__ import annotations

import numpy as np
from tests.graph.oracle import run_graph

from weft.graph import Array, Graph, Value
from weft.support.dtypes import DType, f32, i32


def number(g: Graph, value: float, dtype: DType = f32) -> Value:
    return g.constant(np.asarray(value, dtype.numpy))


def whole(g: Graph, dtype: DType, *shape: int, seed: int = 0) -> Value:
    return g.constant(random_bytes(dtype, shape, seed), "w")


def random_bytes(dtype: DType, shape: tuple[int, ...], seed: int = 0) -> Array:
    low, high = dtype.int_range
    return np.random.default_rng(seed).integers(low, high + 1, shape).astype(dtype.numpy)


def centred(g: Graph, q: Value, zero: Value | int | None) -> Value:
    wide = g.add("cast", [q], dtype=i32)
    given = number(g, zero, i32) if isinstance(zero, int) else zero
    return wide if given is None else g.add("sub", [wide, given])


def dequantized(g: Graph, q: Value, scale: Value | float, zero: Value | int | None) -> Value:
    factor = scale if isinstance(scale, Value) else number(g, scale)
    return g.add("mul", [g.add("cast", [centred(g, q, zero)], dtype=f32), factor])


def quantized(g: Graph, x: Value, scale: float, zero: int, dtype: DType) -> Value:
    low, high = dtype.int_range
    steps = g.add("add", [g.add("round", [g.add("div", [x, number(g, scale)])]), number(g, zero)])
    return g.add("cast", [g.add("clip", [steps, number(g, low), number(g, high)])], dtype=dtype)


def run_on_bytes(graph: Graph, seed: int = 3) -> list[Array]:
    """What *graph* makes of random bytes, and of floats of a few steps."""
    given = []
    for n, v in enumerate(graph.inputs):
        shape = v.static_shape or ()
        floats = np.random.default_rng(seed + n).uniform(-3, 3, shape).astype(np.float32)
        given.append(random_bytes(v.dtype, shape, seed + n) if v.dtype.is_int else floats)
    return run_graph(graph, given)
