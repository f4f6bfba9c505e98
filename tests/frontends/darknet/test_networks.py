"""Whole Darknet networks against NumPy: compiled, and interpreted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.frontends.darknet.networks import NETWORKS, image_of, write
from tests.frontends.ways import ways

import weft
from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

DETECTORS = ("yolo", "region", "detection")
TOLERANCE = 1e-4
COMPILED = ("yolov4_tiny", "yolov1", "squeeze_and_excite")


@pytest.mark.parametrize(("name", "how"), ways(NETWORKS, COMPILED))
def test_equals_numpy(name: str, how: str, tmp_path: Path) -> None:
    sections, x = NETWORKS[name], image_of(NETWORKS[name])
    path, results = write(sections, tmp_path, x)
    graph = to_graph(path)
    layers = [(n, kind) for n, (kind, _) in enumerate(sections[1:])]
    wanted = {f"{kind}_{n}": results[n] for n, kind in layers if kind in DETECTORS or n == len(layers) - 1}
    assert graph.output_names == list(wanted)
    made = run_graph(graph, {"data": x}) if how == "interpreted" else weft.compile(path).run([x])
    for y, (layer, expected) in zip(made, wanted.items(), strict=True):
        assert y.shape == expected.shape, layer
        assert np.ptp(expected) > 0.05, f"{layer} is nearly constant: {np.ptp(expected)}"
        assert np.abs(y - expected).max() <= TOLERANCE * np.abs(expected).max(), layer
