"""Operators that TensorFlow Lite's converter seldom writes equal its interpreter's; see `make_builtins`."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

with np.load(io.BytesIO(lzma.decompress((Path(__file__).parent / "builtins.npz.xz").read_bytes()))) as _archive:
    ARRAYS: Final[dict[str, Any]] = dict(_archive)


@pytest.mark.parametrize("case", sorted(name.removesuffix(".model") for name in ARRAYS if name.endswith(".model")))
def test_operator(case: str) -> None:
    graph, want = to_graph(ARRAYS[f"{case}.model"].tobytes()), ARRAYS[f"{case}.output0"]
    (got,) = run_graph(graph, {v.name: ARRAYS[f"{case}.input{k}"] for k, v in enumerate(graph.inputs)})
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
