"""Each of MXNet's operators in a symbol of its own (`make_cases`), interpreted, equals what MXNet computed."""

from __future__ import annotations

import io
import lzma
from pathlib import Path

import numpy as np
import pytest
from tests.frontends.mxnet.saved import Array, params

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

with np.load(io.BytesIO(lzma.decompress((Path(__file__).parent / "cases.npz.xz").read_bytes()))) as _archive:
    ARRAYS: dict[str, Array] = dict(_archive)
CASES = sorted({name.partition(":")[0] for name in ARRAYS})


@pytest.mark.parametrize("case", CASES)
def test_operator(case: str, tmp_path: Path) -> None:
    symbol = tmp_path / "net-symbol.json"
    symbol.write_bytes(ARRAYS[f"{case}:symbol"].tobytes())
    symbol.with_name("net-0000.params").write_bytes(params({}))
    prefix = f"{case}:input "
    given = {n.removeprefix(prefix): a for n, a in ARRAYS.items() if n.startswith(prefix)}
    graph = to_graph(symbol, {n: a.shape for n, a in given.items()})
    made = run_graph(graph, {v.name: given[v.name] for v in graph.inputs})
    wanted = [a for n, a in ARRAYS.items() if n.startswith(f"{case}:output ")]
    assert len(made) == len(wanted)
    for got, want in zip(made, wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * max(1e-3, float(np.abs(want).max(initial=0))))
