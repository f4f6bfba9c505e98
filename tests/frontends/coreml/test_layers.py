"""Layers of neural networks, as files of before 2019 have them, interpreted, and compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.frontends.coreml.messages import array, image, layer, message, model, network

import weft
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


def constant(name: str, array: object) -> bytes:
    """Returns a layer that gives an array."""
    a = np.asarray(array, np.float32)
    return layer(1070, message((1, bytes(a.shape)), (2, floats(*a.flat))), inputs=(), output=name, name=name)


CONSTANTS = (
    constant("at", [1, -1]),
    constant("pair", [[0, 1]]),
    constant("places", np.full((1, 2, 4, 1), 5)),
    constant("hot", [2, 0]),
    constant("index", np.full((1, 1, 1, 1), 1)),
    constant("rows", [[1], [0]]),
    constant("volume", np.arange(8).reshape(1, 1, 2, 2, 2)),
)
CASES.update(
    {
        "equal": (layer(815, message((1, float(X[0, 0, 0])))), lambda x: x == X[0, 0, 0]),
        "not equal": (layer(820, inputs=("x", "x")), lambda x: x != x),
        "less": (layer(825, message((2, 0.5))), lambda x: x < 0.5),
        "less or equal": (layer(827, inputs=("x", "x")), lambda x: x <= x),
        "greater": (layer(830, message((2, 0.5))), lambda x: x > 0.5),
        "greater or equal": (layer(832, message((2, 0.5))), lambda x: x >= 0.5),
        "or": (layer(840, inputs=("x", "x")), lambda x: x != 0),
        "xor": (layer(845, inputs=("x", "x")), lambda x: x * 0),
        "not": (layer(850), lambda x: x == 0),
        "and": (layer(855, inputs=("x", "x")), lambda x: x != 0),
        "where": (layer(1330, inputs=("x", "x", "x")), lambda x: x),
        "mod": (layer(865, inputs=("x", "x")), lambda x: x * 0),
        "floor of a quotient": (layer(895, inputs=("x", "x")), lambda x: x * 0 + 1),
        "exp2": (layer(700), lambda x: 2**x),
        "tile": (layer(920, message((1, b"\1\1\2\3"))), lambda x: np.tile(x, (1, 2, 3))),
        "embedding": (
            layer(150, message((1, 2), (2, 3), (20, floats(*range(6)))), inputs=("index",)),
            lambda _: np.array([1, 3, 5]).reshape(3, 1, 1),
        ),
        "embedding of any shape": (
            layer(
                1040, message((1, 2), (2, 3), (3, 1), (20, floats(*range(6))), (21, floats(1, 1, 1))), inputs=("rows",)
            ),
            lambda _: np.array([2, 4, 6]),
        ),
        "convolution of volumes": (
            layer(
                1471,
                message((1, 1), (2, 1), (20, 2), (21, 1), (22, 1), (70, 1), (60, floats(2, 3))),
                inputs=("volume",),
            ),
            lambda _: np.array([[[[12, 17], [22, 27]]]]),
        ),
        "pool of volumes": (
            layer(1465, message((1, 1), (2, 2), (3, 1), (4, 2), (15, 1)), inputs=("volume",)),
            lambda _: np.array([[[[2.5], [4.5]]]]),
        ),
        "pool of whole volumes": (layer(1466, inputs=("volume",)), lambda _: np.array([[[[7]]]])),
        "gather": (layer(930, message((1, 3)), inputs=("x", "at")), lambda x: x[..., [1, -1]]),
        "gather at coordinates": (layer(940, inputs=("x", "pair")), lambda x: x[1]),
        "gather along": (layer(952, message((1, 3)), inputs=("x", "places")), lambda x: x[..., [5]]),
        "reverse": (layer(960, message((1, b"\0\0\1\1"))), lambda x: x[:, ::-1, ::-1]),
        "largest": (layer(1015, message((1, 3), (2, 2))), lambda x: np.sort(x, -1)[..., :3:-1]),
        "smallest": (layer(1015, message((1, 2), (2, 1), (3, 1))), lambda x: x.min(1, keepdims=True)),
        "argmin": (layer(1020, message((1, 3))), lambda x: x.argmin(-1)[..., None]),
        "argmax": (layer(1025, message((1, 2), (2, 1))), lambda x: x.argmax(1)),
        "argsort": (layer(1461, message((1, 3), (2, 1))), lambda x: (-x).argsort(-1)),
        "one hot": (layer(1450, message((1, 3), (2, 1), (3, 1.0)), inputs=("hot",)), lambda _: np.array([0, 0, 1])),
        "cumsum": (layer(1455, message((1, 3))), lambda x: x.cumsum(-1)),
        "cumsum of those behind": (
            layer(1455, message((1, 3), (2, 1), (3, 1))),
            lambda x: x[..., ::-1].cumsum(-1)[..., ::-1] - x,
        ),
        "lower triangle": (layer(1320, message((1, 1))), lambda x: np.tril(x, 1)),
        "upper triangle": (layer(1325), np.triu),
        "band": (layer(1315, message((1, 1), (2, 2))), lambda x: np.triu(np.tril(x, 2), -1)),
        "shape": (layer(1065), lambda x: np.array(1)),
        "fill": (layer(1080, message((1, 2.5))), lambda x: x * 0 + 2.5),
        "broadcast": (layer(1105, message((1, b"\1\2\4\6"))), lambda x: x),
        "broadcast like": (layer(1100, inputs=("x", "x")), lambda x: x),
        "reshape like": (layer(1135, inputs=("x", "x")), lambda x: x),
        "pad": (
            layer(1155, message((1, 7.0), (2, b"\0\0\0\0\1\2\3\0"))),
            lambda x: np.pad(x, ((0, 0), (1, 2), (3, 0)), constant_values=7),
        ),
        "space to depth": (
            layer(345, message((1, 0), (2, 2))),
            lambda x: PAIRS.transpose(2, 4, 0, 1, 3).reshape(8, 2, 3),
        ),
        "depth to space": (layer(345, message((1, 1), (2, 1))), lambda x: x),
    }
)


@pytest.mark.parametrize("name", CASES)
def test_layer_equals_numpy(name: str) -> None:
    made, wanted = CASES[name]
    (got,) = run_graph(to_graph(network(array("x", *X.shape), *CONSTANTS, made)), {"x": X})
    np.testing.assert_allclose(got[0], wanted(X), rtol=1e-5, atol=1e-6)


def test_vectors_times_a_matrix() -> None:
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    made = layer(140, message((1, 3), (2, 2), (10, 1), (20, floats(*w.flat)), (21, floats(1, -1))))
    x = np.array([1, 2, 3], np.float32)
    (got,) = run_graph(to_graph(network(array("x", 3), made)), {"x": x})
    np.testing.assert_allclose(got.reshape(-1), w @ x + [1, -1])


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        (message((101, message((1, floats(2)[2:]), (2, floats(-1)[2:])))), [[-1, 1, 3], [5, 7, 29]]),
        (message((101, message((1, floats(2, 3)[2:]), (2, floats(0, 1)[2:])))), [[0, 2, 4], [10, 13, 46]]),
        (message((102, message((1, floats(*[k * k for k in range(16)])[2:])))), [[0, 1, 4], [9, 16, 225]]),
    ],
)
def test_weights_of_four_bits(how: bytes, wanted: list[list[float]]) -> None:
    """The integers 0, 1, 2 and 3, 4, 15, the highest bits first: in steps, steps of each row, and in a table."""
    packed = message((30, bytes([0x01, 0x23, 0x4F])), (40, message((1, 4)) + how))
    made = layer(140, message((1, 3), (2, 2), (20, packed)))
    x = np.array([1, 10, 100], np.float32)
    (got,) = run_graph(to_graph(network(array("x", 3), made)), {"x": x})
    np.testing.assert_allclose(got.reshape(-1), np.array(wanted) @ x)


def test_weights_of_a_few_bits_that_are_too_few_are_damaged() -> None:
    packed = message((30, bytes([0x01, 0x23])), (40, message((1, 4), (102, message((1, floats(1, 2)[2:]))))))
    with pytest.raises(weft.ModelError, match="its weights are damaged"):
        to_graph(network(array("x", 3), layer(140, message((1, 3), (2, 2), (20, packed)))))


def test_images_are_prepared() -> None:
    """The biases of red, green and blue are added to the channels in the image's order."""
    prepared = message((1, "x"), (10, message((10, 0.5), (20, 3.0), (21, 2.0), (22, 1.0))))
    graph = to_graph(network(image("x", 4, 6), layer(130, message((5, message((1, 1.0))))), prepared=prepared))
    assert graph.inputs[0].static_shape == (1, 3, 4, 6)
    x = np.ones((1, 3, 4, 6), np.float32)
    (got,) = run_graph(graph, {"x": x})
    np.testing.assert_allclose(got[0, :, 0, 0], [1.5, 2.5, 3.5])


ROWS = np.random.default_rng(1).standard_normal((5, 1, 3)).astype(np.float32)
W = [np.random.default_rng(k).standard_normal((2, 3)).astype(np.float32) for k in range(4)]
U = [np.random.default_rng(k).standard_normal((2, 2)).astype(np.float32) for k in range(4)]
B = [np.random.default_rng(k).standard_normal(2).astype(np.float32) for k in range(4)]
SIGMOID, TANH = message((40, b"")), message((30, b""))


def gates(first: int, weights: list[Array]) -> list[tuple[int, bytes]]:
    return [(first + k, floats(*w.flat)) for k, w in enumerate(weights)]


def elman(rows: Array) -> Array:
    h, made = np.zeros(2), list[Array]()
    for x in rows:
        h = np.tanh(W[0] @ x[0] + U[0] @ h + B[0])
        made.append(h)
    return np.array(made)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gru(rows: Array) -> Array:
    h, made = np.zeros(2), list[Array]()
    for x in rows:
        z, r = (sigmoid(W[k] @ x[0] + U[k] @ h + B[k]) for k in range(2))
        h = (1 - z) * np.tanh(W[2] @ x[0] + U[2] @ (r * h) + B[2]) + z * h
        made.append(h)
    return np.array(made)


def lstm(rows: Array, bound: float = 500.0) -> Array:
    """Gates are input, forget, candidate and output."""
    h, c, made = np.zeros(2), np.zeros(2), list[Array]()
    for x in rows:
        i, f, g, o = (W[k] @ x[0] + U[k] @ h + B[k] for k in range(4))
        c = np.clip(sigmoid(f) * c + sigmoid(i) * np.tanh(g), -bound, bound)
        h = sigmoid(o) * np.tanh(c)
        made.append(h)
    return np.array(made)


MEMORY = message(*gates(1, W), *gates(20, U), *gates(40, B))
ALL = message((10, 1), (20, 1), (60, 500.0))
LITTLE = message((10, 1), (20, 1), (60, 0.1))
"""Memories are no further than 0.1 from zero."""
SIZES = ((1, 3), (2, 2))
RECURRENT: dict[str, tuple[bytes, Wanted]] = {
    "elman": (
        layer(
            400, message(*SIZES, (10, TANH), (15, 1), (20, 1), *gates(30, W[:1]), *gates(31, U[:1]), *gates(32, B[:1]))
        ),
        elman,
    ),
    "gru": (
        layer(
            410,
            message(
                *SIZES, (10, SIGMOID), (10, TANH), (20, 1), *gates(30, W[:3]), *gates(50, U[:3]), *gates(70, B[:3])
            ),
        ),
        lambda x: gru(x)[-1:],
    ),
    "lstm backwards": (
        layer(420, message(*SIZES, *[(10, f) for f in (SIGMOID, TANH, TANH)], (15, ALL), (20, MEMORY), (100, 1))),
        lambda x: lstm(x[::-1]),
    ),
    "lstm clipped": (
        layer(420, message(*SIZES, *[(10, f) for f in (SIGMOID, TANH, TANH)], (15, LITTLE), (20, MEMORY))),
        lambda x: lstm(x, 0.1),
    ),
    "lstm both ways": (
        layer(430, message(*SIZES, *[(10, f) for f in (SIGMOID, TANH, TANH)], (15, ALL), (20, MEMORY), (20, MEMORY))),
        lambda x: np.concatenate([lstm(x), lstm(x[::-1])[::-1]], 1),
    ),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layer_equals_numpy(name: str) -> None:
    made, wanted = RECURRENT[name]
    graph = to_graph(model(500, message((1, made), (5, 1)), array("x", 5, 1, 3, 1, 1)))
    (got,) = run_graph(graph, {"x": ROWS.reshape(5, 1, 3, 1, 1)})
    np.testing.assert_allclose(got[:, 0, :, 0, 0], wanted(ROWS), rtol=1e-5, atol=1e-6)


def test_recurrent_layers_of_old_networks_are_refused() -> None:
    with pytest.raises(weft.ModelError, match="recurrent layers in networks of before 2019 are not supported"):
        to_graph(network(array("x", *X.shape), RECURRENT["elman"][0]))
