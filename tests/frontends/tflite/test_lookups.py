"""Sparse weights, lookups and layers equal TensorFlow Lite's interpreter; see `make_lookups`."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from tests.support.damaged_files import damaged

import weft
from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

FOLDER = Path(__file__).parent / "lookups"
CASES = sorted(p.stem for p in FOLDER.glob("*.npz"))
MARKS = [b"\x00" * 4, b"\xff" * 4, b"\x04\x00\x00\x00", b"\x00\x00\x00\x80", b"\x01", b"\x02"]


@pytest.mark.parametrize("case", CASES)
def test_model(case: str) -> None:
    with np.load(FOLDER / f"{case}.npz") as held:
        model, x = held["model"].tobytes(), held["x"]
        wanted = [held[f"output_{k}"] for k in range(len(held.files) - 2)]
    graph = to_graph(model)
    found = run_graph(graph, {v.name: x for v in graph.inputs if v.shape})
    assert len(found) >= len(wanted)
    for got, want in zip(found, wanted, strict=False):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_damaged_sparse_weights() -> None:
    files = [np.load(FOLDER / f"{case}.npz")["model"].tobytes() for case in CASES]
    refused = 0
    for seed in range(300):
        random_ = random.Random(seed)
        try:
            to_graph(damaged(random_, random_.choice(files), MARKS))
        except weft.WeftError:
            refused += 1
    assert refused > 100
