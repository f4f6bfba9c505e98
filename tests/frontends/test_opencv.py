"""Networks of Darknet and Caffe, interpreted, against OpenCV (`make_opencv`): what detectors decode, and whole networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.frontends.caffe import networks as caffe
from tests.frontends.darknet import networks as darknet

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

with np.load(Path(__file__).parent / "opencv.npz") as _archive:
    ARRAYS: dict[str, Any] = dict(_archive)

EPSILON = 1e-6
"""What OpenCV adds to variances, where Darknet's maintained fork, and Weft, add 1e-5."""
TOLERANCE = 1e-5


def difference(got: Any, wanted: Any) -> float:
    """Returns the greatest difference, of the largest element."""
    assert got.size == wanted.size
    return float(np.abs(got.reshape(wanted.shape) - wanted).max() / np.abs(wanted).max())


MAPS = [n if "yolov4" in n else pytest.param(n, marks=pytest.mark.slow) for n in ARRAYS if n.startswith("darknet/")]


@pytest.mark.parametrize("name", MAPS)
def test_maps_of_boxes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, network, number = name.split("/")
    sections = darknet.NETWORKS[network]
    ends = [k for k, (kind, _) in enumerate(sections) if kind in ("yolo", "region")]
    path, _ = darknet.write(sections[: ends[int(number)]], tmp_path, x := darknet.image_of(sections))
    monkeypatch.setattr("weft.frontends.darknet.ops.convolution.EPSILON", EPSILON)
    *_, got = run_graph(to_graph(path), {"data": x})
    assert difference(got, ARRAYS[name]) < TOLERANCE


@pytest.mark.parametrize("network", sorted({n.split("/")[1] for n in ARRAYS if n.startswith("caffe/")}))
def test_networks_of_caffe(network: str, tmp_path: Path) -> None:
    x = caffe.image_of(caffe.NETWORKS[network])
    path, _ = caffe.write(caffe.NETWORKS[network], tmp_path, x)
    made = run_graph(to_graph(path), {"data": x})
    for k, got in enumerate(made):
        assert difference(got, ARRAYS[f"caffe/{network}/{k}"]) < TOLERANCE
