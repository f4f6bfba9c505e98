"""Whole networks of TensorFlow Lite, floats and quantised ones, give what its interpreter computes; see `make_networks`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pytest
from tests.frontends.tflite.test_quantised import RUN_TIME
from tests.frontends.ways import ways

import weft
from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

FOLDER = Path(__file__).parent / "networks"
NETWORKS = sorted(p.stem for p in FOLDER.glob("*.npz"))
STEPS: Final = 2
"""Steps by which integers of a whole network may differ: the interpreter rounds each layer's products twice, which adds up."""


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "how"), ways(NETWORKS, compiled=("gru", "encoder", "bi_lstm")))
def test_network(name: str, how: str) -> None:
    with np.load(FOLDER / f"{name}.npz") as held:
        model, given, want = held["model"].tobytes(), held["input0"], held["output0"]
    graph = to_graph(model)
    made = weft.compile(model)(given) if how == "compiled" else run_graph(graph, {graph.inputs[0].name: given})[0]
    assert isinstance(made, np.ndarray)
    assert (made.dtype, made.shape) == (want.dtype, want.shape)
    if want.dtype.kind in "iu":
        assert len(np.unique(want)) > 4
        assert np.abs(made.astype(int) - want).max() <= STEPS
    else:
        within = RUN_TIME if name.endswith(".dynamic") else 1e-5
        assert want.std() > 0.01
        assert np.abs(made - want).max() <= within * np.abs(want).max()


def test_each_scheme_has_a_network() -> None:
    assert {name.partition(".")[2] for name in NETWORKS} == {"", "i8", "i16", "u8", "dynamic", "f16"}
