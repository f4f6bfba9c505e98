"""Kernels of small models of odd sizes: whatever tile the rules choose, it is lowered, compiled, and right."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.driver.device.test_models_on_device import check_on
from tests.support.devices import needs_opencl, needs_webgpu

SIZES = (1, 2, 3, 5, 7, 8, 11, 16, 20, 23, 32, 37, 49, 50, 64, 96, 100, 128, 196, 257, 300)
TARGETS = [pytest.param("opencl -device=any", marks=needs_opencl), pytest.param("webgpu", marks=needs_webgpu)]
Draw = Callable[[random.Random], onnx.ModelProto]


def model(
    nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Sequence[int | str]], **weights: Sequence[int]
) -> onnx.ModelProto:
    """Returns a model that makes `y`, with seeded weights of such shapes, whose sums have the size of their terms."""
    rng = np.random.default_rng(0)
    made = {n: rng.standard_normal(s) * prod(s[1:]) ** -0.5 for n, s in weights.items()}
    values = [numpy_helper.from_array(x.astype(np.float32), n) for n, x in made.items()]
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(list(nodes), "model", given, [output], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], **attributes)


def gemm(r: random.Random) -> onnx.ModelProto:
    m, n, k = r.choices(SIZES, k=3)
    across = r.choice([0, 1])
    nodes = [node("Gemm", "x w b", "t", transB=across), node("Relu", "t", "y")]
    return model(nodes, {"x": (m, k)}, w=(n, k) if across else (k, n), b=(n,))


def batched(r: random.Random) -> onnx.ModelProto:
    m, n, k = r.choices(SIZES, k=3)
    b = r.choice([1, 2, 3, 12])
    return model([node("MatMul", "a b", "y")], {"a": (b, m, k), "b": (b, k, n)})


def convolution(r: random.Random) -> onnx.ModelProto:
    c, o, k, s = r.choice([1, 3, 4, 8, 17, 32]), r.choice([1, 5, 8, 24, 64]), r.choice([1, 3, 5]), r.choice([1, 2])
    image = (r.choice([1, 2]), c, r.choice([7, 9, 14, 20, 28]), r.choice([7, 11, 14, 28]))
    nodes = [node("Conv", "x w", "t", strides=[s, s], pads=[k // 2] * 4), node("Relu", "t", "y")]
    return model(nodes, {"x": image}, w=(o, c, k, k))


def softmax(r: random.Random) -> onnx.ModelProto:
    shape = r.choices(SIZES[:14], k=r.choice([1, 2, 3]))
    return model([node("Softmax", "x", "y", axis=r.randrange(len(shape)))], {"x": shape})


def norm(r: random.Random) -> onnx.ModelProto:
    rows, width = r.choices(SIZES, k=2)
    return model([node("LayerNormalization", "x s b", "y")], {"x": (rows, width)}, s=(width,), b=(width,))


def symbolic(r: random.Random) -> onnx.ModelProto:
    n, k = r.choices(SIZES, k=2)
    nodes = [node("MatMul", "x w", "t"), node("Softmax", "t", "y", axis=-1)]
    return model(nodes, {"x": ("n", r.choice([1, 3, 8, 50]), k)}, w=(k, n))


def attention(r: random.Random) -> onnx.ModelProto:
    heads, depth = r.choice([1, 3, 12]), r.choice([8, 16, 20, 64])
    rows, keys = r.choices(SIZES, k=2)
    nodes = [
        node("Transpose", "k", "t", perm=[0, 1, 3, 2]),
        node("MatMul", "q t", "s"),
        node("Softmax", "s", "p", axis=-1),
        node("MatMul", "p v", "y"),
    ]
    return model(nodes, {"q": (1, heads, rows, depth), "k": (1, heads, keys, depth), "v": (1, heads, keys, depth)})


DRAWS: dict[str, Draw] = {
    draw.__name__: draw for draw in (gemm, batched, convolution, softmax, norm, symbolic, attention)
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DRAWS)
def test_results_are_those_of_the_processor(name: str, target: str) -> None:
    check_on(target, partial(DRAWS[name], random.Random(name)))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DRAWS)
def test_results_of_many_shapes(name: str, target: str) -> None:
    for seed in range(40):
        check_on(target, partial(DRAWS[name], random.Random(seed)))


@needs_opencl
def test_columns_of_rows_that_only_a_call_counts() -> None:
    """A hundred columns of each row are no multiple of a warp, whatever the number of rows."""
    nodes = [node("MatMul", "x w", "y")]
    check_on("opencl -device=any", lambda: model(nodes, {"x": ("n", 1, 37)}, w=(37, 100)))


@needs_webgpu
def test_places_of_an_image_that_a_vector_does_not_reach_in_a_row() -> None:
    nodes = [node("Conv", "x w", "y", strides=[2, 2])]
    check_on("webgpu", lambda: model(nodes, {"x": (1, 32, 7, 14)}, w=(24, 32, 1, 1)))
