"""An axis of any length compiles as fast as a short one: nothing goes through its elements, or through all ways to cut it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from tests.frontends.onnx.nodes import float_inputs, floats, int64s, model_of, node

import weft
from weft.cost import Layer
from weft.graph.layout.winograd_plans import winograd_plans
from weft.targets import cpu

LONG = 1 << 33
SECONDS = 10.0
"""Processor time that one of them may take: each takes well under one, and going through its axis takes minutes."""


def of(
    op: str, inputs: str, shape: tuple[int, ...], weights: dict[str, Any] | None = None, **attributes: Any
) -> ModelProto:
    return model_of([node(op, inputs, **attributes)], float_inputs(x=shape), weights=weights)


MODELS = {
    "rows": of("Gemm", "x w", (LONG, 24), {"w": floats(24, 32)}),
    "elements": of("Relu", "x", (3, LONG)),
    "sum": of("ReduceMean", "x", (LONG, 3), axes=[0]),
    "pool": of("MaxPool", "x", (1, 16, LONG, 16), kernel_shape=[2, 2]),
    "window": of("Conv", "x w", (1, 16, 16, LONG), {"w": floats(16, 1, 3, 3)}, group=16),
    "transposed": of("ConvTranspose", "x w", (1, 16, 16, LONG), {"w": floats(16, 16, 2, 2)}, strides=[2, 2]),
    "constant": of("Expand", "x s", (4, 1), {"s": int64s(4, LONG)}),
    "range": model_of(
        [node("Range", "a b c", "r"), node("Add", "r x")],
        {"x": (7, (1,))},
        weights={"a": np.array(0), "b": np.array(LONG), "c": np.array(1)},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_long_axes(name: str) -> None:
    began = time.process_time()
    weft.build(MODELS[name])
    assert time.process_time() - began < SECONDS


def test_plans_of_a_long_image() -> None:
    """The ways to cut an image for Winograd's method: each length once, so many fewer than there are rows."""
    target = cpu("avx512")
    plans = {size: winograd_plans(Layer(1, size, 32, 64, 64, 3, 576, (1, 1), 16), target) for size in (1000, 100_000)}
    for size, found in plans.items():
        for tile in (2, 4):
            rows = -(-size // tile)
            tried = {p.patch[1] for c in found if (p := c.decision).tile == tile and p.patch[2] == -(-32 // tile)}
            assert tried <= {-(-rows // n) for n in range(1, rows + 1)}
            assert len(tried) <= 2 * rows**0.5 + 1
    assert len(plans[1000]) > 1
