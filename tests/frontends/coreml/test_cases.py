"""Each of Core ML's operations in a program, and each layer in a network (`make_cases`), interpreted, equals its formula."""

from __future__ import annotations

import io
import json
import lzma
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

with np.load(io.BytesIO(lzma.decompress((Path(__file__).parent / "cases.npz.xz").read_bytes()))) as _archive:
    ARRAYS: dict[str, Array] = dict(_archive)
CASES = sorted({name.partition(":")[0] for name in ARRAYS})


def saved(case: str, folder: Path) -> Path:
    """Writes the package of a case."""
    inner = folder / "Data" / "com.apple.CoreML"
    inner.mkdir(parents=True)
    entries = {"a": {"path": "com.apple.CoreML/model.mlmodel"}, "b": {"path": "com.apple.CoreML/weights"}}
    (folder / "Manifest.json").write_text(json.dumps({"rootModelIdentifier": "a", "itemInfoEntries": entries}))
    (inner / "model.mlmodel").write_bytes(ARRAYS[f"{case}:model"].tobytes())
    if f"{case}:weights" in ARRAYS:
        (inner / "weights").mkdir()
        (inner / "weights" / "weight.bin").write_bytes(ARRAYS[f"{case}:weights"].tobytes())
    return folder


@pytest.mark.parametrize("case", CASES)
def test_operation(case: str, tmp_path: Path) -> None:
    is_network = case.startswith("layer ")
    graph = to_graph(ARRAYS[f"{case}:model"].tobytes() if is_network else saved(case, tmp_path / "a.mlpackage"))
    made = run_graph(graph, {v.name: ARRAYS[f"{case}:input {v.name}"] for v in graph.inputs})
    wanted = [a for n, a in ARRAYS.items() if n.startswith(f"{case}:output ")]
    assert len(made) == len(wanted)
    for got, want in zip(made, wanted, strict=True):
        assert got.shape == want.shape if not case.startswith("layer ") else got.size == want.size
        got = got.reshape(want.shape)  # images of networks of before 2019 have a first dimension of one
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * max(1e-3, float(np.abs(want).max(initial=0))))
