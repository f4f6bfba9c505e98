"""Operators of MXNet, interpreted, and compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.frontends.mxnet.saved import Array, chain, save

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

X = np.random.default_rng(0).standard_normal((2, 4, 3, 5)).astype(np.float32)
ROWS = np.random.default_rng(1).standard_normal((4, 7)).astype(np.float32)

CASES: dict[str, tuple[str, dict[str, str], Array, Callable[[Array], Array]]] = {
    "plus a number": ("_plus_scalar", {"scalar": "1.5"}, X, lambda x: x + np.float32(1.5)),
    "a number minus": ("_rminus_scalar", {"scalar": "2"}, X, lambda x: 2 - x),
    "a number over": ("_rdiv_scalar", {"scalar": "2"}, X, lambda x: 2 / x),
    "power": ("_power_scalar", {"scalar": "3"}, X, lambda x: x**3),
    "greater": ("_greater_scalar", {"scalar": "0.1"}, X, lambda x: (x > np.float32(0.1)).astype(np.float32)),
    "not equal": ("_not_equal_scalar", {"scalar": "0"}, X, lambda x: (x != 0).astype(np.float32)),
    "clip": ("clip", {"a_min": "-0.5", "a_max": "0.5"}, X, lambda x: np.clip(x, -0.5, 0.5)),
    "arctan": ("arctan", {}, X, np.arctan),
    "reshape 0 -1": ("Reshape", {"shape": "(0, -1)"}, X, lambda x: x.reshape(2, -1)),
    "reshape -2": ("Reshape", {"shape": "(0, -2)"}, X, lambda x: x),
    "reshape -3": ("Reshape", {"shape": "(-3, 0, 0)"}, X, lambda x: x.reshape(8, 3, 5)),
    "reshape -4": ("Reshape", {"shape": "(0, -4, 2, -1, 0, 0)"}, X, lambda x: x.reshape(2, 2, 2, 3, 5)),
    "transpose": ("transpose", {}, X, lambda x: x.T),
    "swap axes": ("SwapAxis", {"dim1": "1", "dim2": "3"}, X, lambda x: x.swapaxes(1, 3)),
    "flatten": ("Flatten", {}, X, lambda x: x.reshape(2, -1)),
    "expand dims": ("expand_dims", {"axis": "-1"}, ROWS, lambda x: x[..., None]),
    "slice": ("slice", {"begin": "(None, 1)", "end": "(None, 3)", "step": "(-1, 1)"}, X, lambda x: x[::-1, 1:3]),
    "slice axis": ("slice_axis", {"axis": "1", "begin": "1", "end": "None"}, X, lambda x: x[:, 1:]),
    "pad": (
        "Pad",
        {"pad_width": "(0,0,0,0,1,2,0,1)", "mode": "constant", "constant_value": "3"},
        X,
        lambda x: np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 1)), constant_values=3),
    ),
    "tile": ("tile", {"reps": "(1, 2, 1, 1)"}, X, lambda x: np.tile(x, (1, 2, 1, 1))),
    "repeat": ("repeat", {"repeats": "2", "axis": "1"}, X, lambda x: x.repeat(2, 1)),
    "sum": ("sum", {"axis": "(1,)"}, X, lambda x: x.sum(1)),
    "mean of others": (
        "mean",
        {"axis": "1", "exclude": "True", "keepdims": "True"},
        X,
        lambda x: x.mean((0, 2, 3), keepdims=True),
    ),
    "max": ("max", {}, X, lambda x: x.max()),
    "softmax": ("softmax", {"axis": "1"}, X, lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "by channel": ("SoftmaxActivation", {"mode": "channel"}, X, lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "sum pool": (
        "Pooling",
        {"kernel": "(3, 5)", "pool_type": "sum"},
        X,
        lambda x: x.sum((2, 3), keepdims=True),
    ),
    "up": ("UpSampling", {"scale": "2", "sample_type": "nearest"}, X, lambda x: x.repeat(2, 2).repeat(2, 3)),
    "gelu": ("LeakyReLU", {"act_type": "gelu"}, np.zeros((2, 3), np.float32), lambda x: x),
    "cast": ("Cast", {"dtype": "int32"}, X, lambda x: x.astype(np.int32)),
}


@pytest.mark.parametrize("name", CASES)
def test_operator_equals_numpy(name: str, tmp_path: Path) -> None:
    op, attributes, x, wanted = CASES[name]
    graph = to_graph(save(tmp_path, chain((op, attributes, ())), {}), {"data": x.shape})
    (got,) = run_graph(graph, {"data": x})
    np.testing.assert_allclose(got, wanted(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_weights_of_all_versions_are_read(version: int, tmp_path: Path) -> None:
    w, b = np.arange(14, dtype=np.float32).reshape(2, 7), np.array([1, -1], np.float32)
    symbol = chain(("FullyConnected", {"num_hidden": "2"}, ("w", "b")))
    graph = to_graph(save(tmp_path, symbol, {"arg:w": w, "aux:b": b}, version), {"data": ROWS.shape})
    assert not any(c.array.flags.owndata for c in graph.constants() if c.name == "b")
    (got,) = run_graph(graph, {"data": ROWS})
    np.testing.assert_allclose(got, ROWS @ w.T + b, rtol=1e-5)
