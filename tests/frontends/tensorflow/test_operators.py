"""Each operator of TensorFlow in a graph of its own (`make_cases` and the makers beside it) equals what TensorFlow computed."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

FOLDER = Path(__file__).parent / "cases"


def unpacked(name: str) -> dict[str, Any]:
    """Returns the arrays of an archive that is compressed as a whole."""
    with np.load(io.BytesIO(lzma.decompress((FOLDER / f"{name}.npz.xz").read_bytes()))) as archive:
        return dict(archive)


NAMES = ("graphs0", "graphs1", "named", "further", "signals", "pictures")
ARRAYS = {name: array for archive in NAMES for name, array in unpacked(archive).items()}
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
        size = np.abs(want[np.isfinite(want)]).max(initial=0)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * max(1e-3, size))


@pytest.mark.parametrize("case", CASES)
def test_operator(case: str) -> None:
    check(ARRAYS[f"{case}.graph"].tobytes(), case)


@pytest.mark.parametrize("name", ["gathered", "copied"])
def test_saved_variables(name: str) -> None:
    with np.load(FOLDER / name / "wanted.npz") as held:
        made = weft.compile(FOLDER / name)(held["input"])
        np.testing.assert_allclose(made, held["output"], rtol=1e-5, atol=1e-6)
