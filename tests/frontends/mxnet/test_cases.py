"""Each of MXNet's operators in a symbol of its own (`make_cases`), interpreted, equals what MXNet computed."""

from __future__ import annotations

import io
import json
import lzma
import random
import re
from pathlib import Path

import numpy as np
import pytest
from tests.frontends.mxnet.saved import Array, params

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph
from weft.frontends.mxnet.importer import WITH_LABELS
from weft.support.errors import WeftError

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
    if json.loads(symbol.read_bytes())["nodes"][-1]["op"] in WITH_LABELS:
        del given["b"]
    graph = to_graph(symbol, {n: a.shape for n, a in given.items()})
    made = run_graph(graph, {v.name: given[v.name] for v in graph.inputs})
    wanted = [a for n, a in ARRAYS.items() if n.startswith(f"{case}:output ")]
    assert len(made) == len(wanted)
    for got, want in zip(made, wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * max(1e-3, float(np.abs(want).max(initial=0))))


NUMBERS = (
    b"0",
    b"-1",
    b"1",
    b"3",
    b"7",
    b"65537",
    b"1073741824",
    b"4294967296",
    b"0.5",
    b"None",
    b"()",
    b"(0, 0)",
    b"(-1,)",
    b"True",
    b"x",
)


def damaged(rng: random.Random, symbol: bytes) -> bytes:
    """Returns a symbol of which some numbers, names or truth values in texts are others."""
    for _ in range(rng.randint(1, 3)):
        places = [m.span() for m in re.finditer(rb"(?<=[\"(, ])[-\w.]+(?=[\"), ])", symbol)]
        begin, end = rng.choice(places)
        symbol = symbol[:begin] + rng.choice(NUMBERS) + symbol[end:]
    return symbol


def check_damaged(seeds: range, folder: Path) -> int:
    """Returns how many damaged symbols are refused, each by an error of Weft's."""
    refused = 0
    for seed in seeds:
        rng = random.Random(seed)
        case = rng.choice(CASES)
        symbol = folder / "net-symbol.json"
        symbol.write_bytes(damaged(rng, ARRAYS[f"{case}:symbol"].tobytes()))
        symbol.with_name("net-0000.params").write_bytes(params({}))
        prefix = f"{case}:input "
        try:
            to_graph(symbol, {n.removeprefix(prefix): a.shape for n, a in ARRAYS.items() if n.startswith(prefix)})
        except WeftError:
            refused += 1
    return refused


def test_damaged_attributes(tmp_path: Path) -> None:
    assert check_damaged(range(150), tmp_path) > 30


@pytest.mark.slow
def test_many_damaged_attributes(tmp_path: Path) -> None:
    assert check_damaged(range(1000, 6000), tmp_path) > 1000
