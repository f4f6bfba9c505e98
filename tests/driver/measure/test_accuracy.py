"""How far a model is from itself in another precision: as parts of an output's spread, over seeded inputs."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.cli.onnx_builder import GraphBuilder, gemm
from weft.driver.measure.accuracy import compare_models


def scaled(by: float) -> weft.Model:
    g = GraphBuilder("scaled")
    g.output(g.op("Mul", g.input("x", (4, 64)), g.scalar(by)), "y")
    return weft.compile(g.model().SerializeToString(), cache=False, threads=1)


def test_differences_are_parts_of_the_spread() -> None:
    (found,) = compare_models(scaled(1.01), scaled(1.0), seeds=(3,))
    x = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float32)
    assert found.output == "y"
    assert found.largest == pytest.approx(0.01 * np.abs(x).max() / np.ptp(x), rel=1e-3)
    assert found.mean == pytest.approx(0.01 * np.abs(x).mean() / np.ptp(x), rel=1e-3)


def test_a_model_is_at_no_distance_from_itself() -> None:
    (found,) = compare_models(scaled(2.0), scaled(2.0))
    assert (found.largest, found.mean) == (0.0, 0.0)


def test_bf16_is_some_thousandths_away() -> None:
    g = GraphBuilder("mlp")
    g.output(gemm(g, g.input("x", (1, 512)), (512, 512)), "y")
    narrow, exact = (
        weft.compile(g.model().SerializeToString(), cache=False, threads=1, precision=p) for p in ("bf16", "model")
    )
    (found,) = compare_models(narrow, exact)
    assert 0.0 <= found.mean <= found.largest < 0.01
