"""Kernels are profiled as the model runs them: in memory like its own, with its treatment of denormals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models import matmul, mlp

import weft
from weft.driver.measure.profile import Profiler
from weft.driver.options import CompileOptions
from weft.graph import Graph, Value
from weft.graph.regions.stacked_rows import stacked_rows
from weft.runtime.package import Denormals
from weft.support.dtypes import f32


def test_outputs_are_aligned_as_those_of_models() -> None:
    made = weft.build(mlp(batch=3))
    profiler = Profiler(made, {"x": np.ones((3, 24), np.float32)})
    buffers = [b for _, _, buffers in profiler.calls for b in buffers]
    outside = [b for b in buffers if b.__array_interface__["data"][0] % 64]
    assert len(outside) <= 1  # the input is the caller's


@pytest.mark.parametrize(("denormals", "some"), [("keep", True), ("flush", False)])
def test_denormals_are_those_of_the_model(denormals: Denormals, some: bool) -> None:
    made = weft.build(matmul(m=3), options=CompileOptions(denormals=denormals))
    x = {v.name: np.full((3, 20), 1e-40, np.float32) for v in made.package.inputs}
    profiler = Profiler(made, x)
    profiler.run()
    assert profiler.outputs[0].any() == some
    np.testing.assert_array_equal(profiler.outputs[0], weft.Model(made.package, threads=1)(**x))


@pytest.mark.parametrize("threads", [1, 2])
def test_times_of_a_run(threads: int) -> None:
    made = weft.build(mlp(batch=3))
    model, x = weft.Model(made.package, threads=threads), np.ones((3, 24), np.float32)
    calls = 0

    def run() -> None:
        nonlocal calls
        calls += 1
        model(x)

    found = Profiler(made, {"x": x}, threads).measure(0.01, run=run)
    assert len(found.kernels) == len(made.fused.groups)
    assert all(0 <= t < 0.1 for t in (*found.kernels, found.in_turn))
    assert 0 < found.run < 0.1
    assert calls > 2
    assert not found.is_processor_time  # reading that clock takes as long as these kernels


def test_kernels_of_loops_are_called_in_each_iteration() -> None:
    g = Graph()
    x = g.input("x", (5, 40, 40), f32)

    def row(body: Graph, step: Value) -> Value:
        one = body.add("element_at", [x, step])
        return body.add("softmax", [body.add("matmul", [one, one])], axis=-1)

    g.output(g.add("exp", [stacked_rows(g, 5, row, "rows")]), "y")
    made = weft.build(g)
    v = np.random.default_rng(0).standard_normal((5, 40, 40)).astype(np.float32)
    profiler = Profiler(made, {"x": v})
    assert [g.key for g in profiler.groups].count(profiler.groups[-1].key) == 1
    assert len(profiler.calls) == len(profiler.groups) > 5
    found = profiler.measure(0.01)
    assert len(found.kernels) == len(profiler.calls)
    np.testing.assert_array_equal(profiler.outputs[0], weft.Model(made.package, threads=1)(v))
