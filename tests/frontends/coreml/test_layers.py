"""Layers of neural networks, as files of before 2019 have them, interpreted, and compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.frontends.coreml.messages import array, image, layer, message, network

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Wanted: TypeAlias = Callable[[Array], Array]

X = np.random.default_rng(0).standard_normal((2, 4, 6)).astype(np.float32)
PAIRS = X.reshape(2, 2, 2, 3, 2)
"""The pixels in windows of 2 x 2, as [channels, rows, 2, columns, 2]."""


def floats(*values: float) -> bytes:
    return message((1, np.array(values, "<f4").tobytes()))


CASES: dict[str, tuple[bytes, Wanted]] = {
    "max pool": (layer(120, message((10, b"\2\2"), (20, b"\2\2"), (30, b""))), lambda x: PAIRS.max((2, 4))),
    "mean pool": (layer(120, message((1, 1), (10, b"\2\2"), (20, b"\2\2"), (30, b""))), lambda x: PAIRS.mean((2, 4))),
    "global pool": (layer(120, message((1, 1), (60, 1))), lambda x: x.mean((1, 2), keepdims=True)),
    "upsample": (layer(210, message((1, b"\2\2"))), lambda x: x.repeat(2, 1).repeat(2, 2)),
    "add a number": (layer(230, message((1, 1.5))), lambda x: x + np.float32(1.5)),
    "multiply": (layer(231, inputs=("x", "x")), lambda x: x * x),
    "average": (layer(240, inputs=("x", "x")), lambda x: x),
    "max": (layer(260, inputs=("x", "x")), lambda x: x),
    "min": (layer(261, inputs=("x", "x")), lambda x: x),
    "concat": (layer(320, inputs=("x", "x")), lambda x: np.concatenate([x, x])),
    "batch norm": (
        layer(
            160,
            message(
                (1, 2), (10, 0.5), (15, floats(1, 2)), (16, floats(3, 4)), (17, floats(0.1, 0.2)), (18, floats(1, 2))
            ),
        ),
        lambda x: (x - [[[0.1]], [[0.2]]]) / np.sqrt([[[1.5]], [[2.5]]]) * [[[1]], [[2]]] + [[[3]], [[4]]],
    ),
    "scale": (
        layer(245, message((1, 2), (2, floats(2, 3)), (3, 1), (4, 1), (5, floats(0.5)))),
        lambda x: x * [[[2]], [[3]]] + 0.5,
    ),
    "softmax": (layer(175), lambda x: np.exp(x) / np.exp(x).sum(0)),
    "flatten": (layer(301), lambda x: x.reshape(-1, 1, 1)),
    "permute": (layer(310, message((1, b"\0\1\3\2"))), lambda x: x.transpose(0, 2, 1)),
    "reshape": (layer(300, message((1, b"\3\4\4"))), lambda x: x.reshape(3, 4, 4)),
    "line": (layer(130, message((5, message((1, 2.0), (2, 1.0))))), lambda x: 2 * x + 1),
    "hard sigmoid": (layer(130, message((41, message((1, 0.2), (2, 0.5))))), lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    "power": (layer(220, message((1, 3), (2, 2.0), (4, 1.0), (5, 2.0))), lambda x: (2 * x + 1) ** 2),
    "crop of a border": (
        layer(
            200,
            message(
                (1, message((1, 7.0))), (10, message((10, message((1, 1), (2, 2))), (10, message((1, 0), (2, 1)))))
            ),
        ),
        lambda x: np.pad(x, ((0, 0), (1, 2), (0, 1)), constant_values=7),
    ),
    "mvn": (
        layer(165, message((2, 1), (3, 0.5))),
        lambda x: (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 0.5),
    ),
    "mvn of all": (layer(165, message((1, 1))), lambda x: x - x.mean()),
    "l2 normalize": (layer(170, message((1, 0.5))), lambda x: x / np.sqrt((x * x).sum() + 0.5)),
    "reduce": (layer(280, message((1, 1), (3, 1))), lambda x: x.mean((1, 2), keepdims=True)),
}


@pytest.mark.parametrize("name", CASES)
def test_layer_equals_numpy(name: str) -> None:
    made, wanted = CASES[name]
    (got,) = run_graph(to_graph(network(array("x", *X.shape), made)), {"x": X})
    np.testing.assert_allclose(got[0], wanted(X), rtol=1e-5, atol=1e-6)


def test_vectors_times_a_matrix() -> None:
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    made = layer(140, message((1, 3), (2, 2), (10, 1), (20, floats(*w.flat)), (21, floats(1, -1))))
    x = np.array([1, 2, 3], np.float32)
    (got,) = run_graph(to_graph(network(array("x", 3), made)), {"x": x})
    np.testing.assert_allclose(got.reshape(-1), w @ x + [1, -1])


def test_images_are_prepared() -> None:
    """The biases of red, green and blue are added to the channels in the image's order."""
    prepared = message((1, "x"), (10, message((10, 0.5), (20, 3.0), (21, 2.0), (22, 1.0))))
    graph = to_graph(network(image("x", 4, 6), layer(130, message((5, message((1, 1.0))))), prepared=prepared))
    assert graph.inputs[0].static_shape == (1, 3, 4, 6)
    x = np.ones((1, 3, 4, 6), np.float32)
    (got,) = run_graph(graph, {"x": x})
    np.testing.assert_allclose(got[0, :, 0, 0], [1.5, 2.5, 3.5])
