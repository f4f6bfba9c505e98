"""Networks that MXNet saved, compiled, and compared with MXNet's outputs (`make_networks`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import weft
from weft.frontends.dispatch import files_of, to_graph

FOLDER = Path(__file__).parent / "networks"
NAMES = sorted(p.stem for p in FOLDER.glob("*.npz"))


@pytest.mark.parametrize("name", NAMES)
def test_network_equals_mxnet(name: str) -> None:
    held = np.load(FOLDER / f"{name}.npz")
    model = weft.compile(FOLDER / f"{name}-symbol.json", shapes={"data": held["x"].shape})
    got = model(held["x"])
    assert isinstance(got, np.ndarray)
    assert got.shape == held["y"].shape
    assert held["y"].std() > 0.01
    assert np.abs(got - held["y"]).max() <= 1e-5 * np.abs(held["y"]).max()


def test_both_files_are_the_model_and_a_batch_may_be_symbolic() -> None:
    symbol = FOLDER / "classic-symbol.json"
    assert files_of(symbol) == [symbol, FOLDER / "classic-0000.params"]
    graph = to_graph((symbol, FOLDER / "classic-0000.params"), {"data": ("batch", 7)})
    assert [(v.name, v.shape[0]) for v in graph.inputs] == [("data", graph.dim("batch"))]
    assert [v.name for v in graph.outputs] == ["softmax"]
