"""Merging layers give tensors of fewer dimensions ones of size 1 behind the first, as Keras does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.frontends.keras.saved import archive, layer

from weft.driver.checking.reference import run_graph
from weft.frontends import to_graph


def tensor(name: str) -> dict[str, Any]:
    return {
        "class_name": "__keras_tensor__",
        "config": {"shape": [], "dtype": "float32", "keras_history": [name, 0, 0]},
    }


def merging(kind: str) -> bytes:
    """Returns a model of images and of a number for each of their channels, with as many samples as columns."""
    shapes = {"a": (2, 3, 2, 4), "b": (2, 4)}
    given = [layer("InputLayer", name, batch_shape=list(shape), dtype="float32") for name, shape in shapes.items()]
    nodes = [{"args": [[tensor("a"), tensor("b")]], "kwargs": {}}]
    layers = [{**x, "name": x["config"]["name"], "inbound_nodes": []} for x in given]
    layers.append({**layer(kind, "m"), "name": "m", "inbound_nodes": nodes})
    config = {
        "name": "model",
        "layers": layers,
        "input_layers": [["a", 0, 0], ["b", 0, 0]],
        "output_layers": [["m", 0, 0]],
    }
    return archive({"class_name": "Functional", "config": config})


@pytest.mark.parametrize(("kind", "function"), [("Multiply", np.multiply), ("Average", lambda a, b: (a + b) / 2)])
def test_tensors_of_two_ranks(kind: str, function: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3, 2, 4), np.float32), rng.standard_normal((2, 4), np.float32)
    (found,) = run_graph(to_graph(merging(kind)), {"a": a, "b": b})
    np.testing.assert_allclose(found, function(a, b[:, None, None, :]), rtol=1e-6)
