"""Outputs take over an input's memory where cores run a grid, too; where threads do, loads may pass stores instead."""

from __future__ import annotations

import pytest

from weft.cli.onnx_builder import GraphBuilder
from weft.driver.build import fuse_graph, optimize_graph, values_in_place
from weft.driver.options import CompileOptions
from weft.frontends import to_graph
from weft.targets import parse_target


@pytest.mark.parametrize(("target", "count"), [("cpu", 1), ("cuda -arch=sm_90", 0), ("opencl", 1)])
def test_values_in_place(target: str, count: int) -> None:
    g = GraphBuilder("residual")
    factor, residual = [g.op("Softmax", g.input(name, (64, 64))) for name in ("x", "z")]
    product = g.op("MatMul", factor, g.normal((64, 64), 1.0))
    g.output(g.op("Softmax", g.op("Add", product, residual)), "y")
    machine, options = parse_target(target), CompileOptions()
    fused = fuse_graph(optimize_graph(to_graph(g.model()), machine, options, None), machine, options)
    assert len(values_in_place(fused, options, machine)) == count
