"""Each of TensorFlow's operators in a graph of its own (`make_cases`), interpreted, equals what TensorFlow computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.reference import run_graph

from weft.frontends.dispatch import to_graph

FOLDER = Path(__file__).parent / "cases"


def held() -> dict[str, Any]:
    """Returns the arrays of all cases."""
    with np.load(FOLDER / "graphs.npz") as archive:
        return dict(archive)


ARRAYS = held()
CASES = sorted({name.rpartition(".")[0] for name in ARRAYS})


def arrays(case: str, kind: str) -> list[Any]:
    """Returns the inputs, or the outputs, of a case."""
    return [ARRAYS[f"{case}.{kind}{k}"] for k in range(len(ARRAYS)) if f"{case}.{kind}{k}" in ARRAYS]


def check(model: bytes, case: str) -> None:
    graph = to_graph(model)
    given = dict(zip([v.name for v in graph.inputs], arrays(case, "input"), strict=True))
    made, wanted = run_graph(graph, given), arrays(case, "output")
    assert len(made) == len(wanted)
    for got, want in zip(made, wanted, strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * max(1e-3, np.abs(want).max(initial=0)))


@pytest.mark.parametrize("case", CASES)
def test_operator(case: str) -> None:
    check(ARRAYS[f"{case}.graph"].tobytes(), case)
