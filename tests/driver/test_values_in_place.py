"""Outputs take over an input's memory on processors; on a grid of threads they don't, so that loads may pass stores."""

from __future__ import annotations

import pytest

from weft.cli.onnx_builder import GraphBuilder
from weft.driver.build import fuse_graph, optimize_graph, values_in_place
from weft.driver.options import CompileOptions
from weft.frontends import to_graph
from weft.targets import parse_target


@pytest.mark.parametrize(("target", "count"), [("cpu", 1), ("cuda -arch=sm_90", 0), ("opencl", 0)])
def test_values_in_place(target: str, count: int) -> None:
    g = GraphBuilder("two")
    x = g.input("x", (64, 64))
    hidden = g.op("Softmax", g.op("Softmax", x))
    g.output(g.op("Softmax", hidden), "y")
    machine, options = parse_target(target), CompileOptions()
    fused = fuse_graph(optimize_graph(to_graph(g.model()), machine, options, None), machine, options)
    assert len(values_in_place(fused, options, machine)) == count
