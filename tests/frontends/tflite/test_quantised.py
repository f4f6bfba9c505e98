"""Quantised operators equal TensorFlow Lite's interpreter, by its reference kernels without a delegate; see `make_quantised`."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

FOLDER = Path(__file__).parent

with np.load(io.BytesIO(lzma.decompress((FOLDER / "quantised.npz.xz").read_bytes()))) as _archive:
    ARRAYS: Final[dict[str, Any]] = dict(_archive)
CASES = sorted(name.removesuffix(".model") for name in ARRAYS if name.endswith(".model"))

STEPS: Final = {"i16.tanh": 2, "i16.resize": 2 * (1 << 16 >> 10)}
"""Steps by which results of the interpreter may lie beside the nearest integer, where these are more than one: it has `tanh` of
16 bits from a table, and interpolates by fractions of 10 bits, along two dimensions."""

RUN_TIME: Final = 0.02
"""How far results may be from those of the interpreter's hybrid kernels, of the largest: these round activations to 8 bits when
they run, each a row or an image by its largest element, to multiply them by weights of 8 bits; Weft multiplies floats."""


def results(case: str) -> list[Any]:
    """Returns what Weft computes of a case."""
    graph = to_graph(ARRAYS[f"{case}.model"].tobytes())
    return list(run_graph(graph, {v.name: ARRAYS[f"{case}.input{k}"] for k, v in enumerate(graph.inputs)}))


def wanted(case: str, kind: str) -> list[Any]:
    return [ARRAYS[name] for name in sorted(ARRAYS) if name.startswith(f"{case}.{kind}")]


@pytest.mark.parametrize("case", [c for c in CASES if c.startswith(("i8.", "i16.", "u8."))])
def test_integers(case: str) -> None:
    for got, want in zip(results(case), wanted(case, "output"), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert len(np.unique(want)) > 5
        assert np.abs(got.astype(int) - want).max() <= STEPS.get(case, 1)


@pytest.mark.parametrize("case", [c for c in CASES if c.startswith("dynamic.")])
def test_weights_of_integers(case: str) -> None:
    """Products of floats by the numbers that weights stand for, which are exact, and near those of the interpreter."""
    for got, exact, hybrid in zip(results(case), wanted(case, "exact"), wanted(case, "output"), strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())
        assert 0 < np.abs(got - hybrid).max() <= RUN_TIME * np.abs(exact).max()


@pytest.mark.parametrize("case", [c for c in CASES if c.startswith("f16.")])
def test_weights_of_halves(case: str) -> None:
    for got, want in zip(results(case), wanted(case, "output"), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


def test_each_scheme_has_its_operators() -> None:
    """The converter has no integers of 16 bits for PRELU, HARD_SWISH and LSTM, and old files none for BATCH_MATMUL and LSTM."""
    names = {
        scheme: {c.partition(".")[2] for c in CASES if c.startswith(f"{scheme}.")} for scheme in ("i8", "i16", "u8")
    }
    assert names["i8"] - names["i16"] == {"prelu", "hard_swish", "lstm"}
    assert names["i8"] - names["u8"] == {"batch_matmul", "batch_matmul_by_weights", "lstm"}
