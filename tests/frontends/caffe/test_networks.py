"""Whole Caffe networks against NumPy: compiled, and interpreted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.frontends.caffe.networks import NETWORKS, image_of, write
from tests.frontends.ways import ways

import weft
from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

TOLERANCE = 1e-4
COMPILED = ("resnet", "others", "forks")


@pytest.mark.parametrize(("name", "how"), ways(NETWORKS, COMPILED))
def test_equals_numpy(name: str, how: str, tmp_path: Path) -> None:
    layers, x = NETWORKS[name], image_of(NETWORKS[name])
    path, wanted = write(layers, tmp_path, x, old=name == "alexnet")
    graph = to_graph(path)
    assert graph.output_names == list(wanted)
    made = run_graph(graph, {"data": x}) if how == "interpreted" else weft.compile(path).run([x])
    for y, (blob, expected) in zip(made, wanted.items(), strict=True):
        assert y.shape == expected.shape, blob
        assert np.ptp(expected) > 0.05, f"{blob} is nearly constant: {np.ptp(expected)}"
        assert np.abs(y - expected).max() <= TOLERANCE * np.abs(expected).max(), blob
