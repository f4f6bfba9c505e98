"""Networks that MXNet quantised and saved (`make_quantized`) equal it, and multiply bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.frontends.mxnet.saved import Array

import weft
from weft.driver.build import optimize_graph
from weft.driver.checking.reference import run_graph
from weft.driver.options import CompileOptions
from weft.frontends.dispatch import to_graph
from weft.graph import Graph
from weft.targets import cpu

FOLDER = Path(__file__).parent / "quantized"
NAMES = sorted(p.stem for p in FOLDER.glob("*.npz"))
VNNI = cpu("avx2").having(features=tuple(sorted({*cpu("avx2").isa.features, "+avxvnni"})))
"""A machine with products of bytes."""


def network(name: str) -> tuple[Graph, Array, Array]:
    """Returns a network with an input, and what MXNet computes from that."""
    held = np.load(FOLDER / f"{name}.npz")
    return to_graph(FOLDER / f"{name}-symbol.json", {"data": held["x"].shape}), held["x"], held["y"]


@pytest.mark.parametrize("name", NAMES)
def test_quantized_network_equals_mxnet(name: str) -> None:
    graph, x, wanted = network(name)
    (got,) = run_graph(graph, {"data": x})
    assert wanted.std() > 0.1
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6 * float(np.abs(wanted).max()))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_compiled_quantized_network_equals_mxnet(name: str) -> None:
    graph, x, wanted = network(name)
    got = weft.compile(graph)(x)
    assert isinstance(got, np.ndarray)
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6 * float(np.abs(wanted).max()))


@pytest.mark.parametrize(("name", "images", "rows"), [("anew", 1, 1), ("sums", 4, 1), ("rows", 0, 9)])
def test_weights_are_multiplied_as_bytes(name: str, images: int, rows: int) -> None:
    graph, _, _ = network(name)
    ops = [node.op for node in optimize_graph(graph, VNNI, CompileOptions(), None).nodes]
    assert (ops.count("conv2d_grouped"), ops.count("matmul_grouped")) == (images, rows)
