"""Boxes chosen for several classes, in graphs that TensorFlow wrote (`make_boxes_of_classes`), equal what it computed."""

from __future__ import annotations

import numpy as np
import pytest
from tests.frontends.tensorflow.test_operators import FOLDER

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph


@pytest.mark.parametrize("case", ["apart", "shared"])
def test_equals_tensorflow(case: str) -> None:
    with np.load(FOLDER / "boxes_of_classes.npz") as held:
        graph = to_graph(held[f"{case}.graph"].tobytes())
        given = [held[f"{case}.input{k}"] for k in range(2)]
        wanted = [held[f"{case}.output{k}"] for k in range(4)]
    made = run_graph(graph, dict(zip([v.name for v in graph.inputs], given, strict=True)))
    assert wanted[3].min() > 3
    for got, want in zip(made, wanted, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
