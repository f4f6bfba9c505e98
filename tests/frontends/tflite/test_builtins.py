"""Operators that TensorFlow Lite's converter seldom writes equal its interpreter's; see `make_builtins`."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from tests.frontends.tflite.flat_writer import buffer_of

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph
from weft.frontends.tflite.schema import BUILTINS

with np.load(io.BytesIO(lzma.decompress((Path(__file__).parent / "builtins.npz.xz").read_bytes()))) as _archive:
    ARRAYS: Final[dict[str, Any]] = dict(_archive)


@pytest.mark.parametrize("case", sorted(name.removesuffix(".model") for name in ARRAYS if name.endswith(".model")))
def test_operator(case: str) -> None:
    graph, want = to_graph(ARRAYS[f"{case}.model"].tobytes()), ARRAYS[f"{case}.output0"]
    (got,) = run_graph(graph, {v.name: ARRAYS[f"{case}.input{k}"] for k, v in enumerate(graph.inputs)})
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_products_of_complex_numbers() -> None:
    codes = [(min(BUILTINS.index(kind), 127), None, 1, BUILTINS.index(kind)) for kind in ("RFFT2D", "MUL")]
    tensors = [([4, 8], 0, None, "x"), ([2], 2, 1, "n"), ([4, 5], 8, None, "t"), ([4, 5], 8, None, "y")]
    graph = (tensors, [0], [3], [(0, [0, 1], [2]), (1, [2, 2], [3])])
    lengths = np.array([4, 8], np.int32).tobytes()
    made = to_graph(buffer_of((3, codes, [graph], "", [(), (lengths,)]), b"TFL3"))
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    (got,) = run_graph(made, {"x": x})
    want = np.fft.rfft2(x) ** 2
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=1e-4, atol=1e-4)
