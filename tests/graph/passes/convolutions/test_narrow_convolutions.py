"""Convolutions on factors in bf16: their results, and what stays in float32."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.checks import ops, random_inputs
from tests.graph.oracle import run_graph
from tests.support.machines import AMX

from weft.cost import Choosing
from weft.graph import Graph, verify_graph
from weft.graph.passes.convolutions.narrow_convolutions import narrow_convolutions
from weft.support.dtypes import bf16, f32
from weft.targets import Target, cpu

EPS = 2.0**-8
"""The most that rounding to bf16 changes a number by, as a part of it."""


def convolution(kernel: int = 3, stride: int = 1, *, channels: int = 64, bias: bool = False) -> Graph:
    g, rng = Graph(), np.random.default_rng(0)
    w = g.constant(rng.standard_normal((32, channels, kernel, kernel)).astype(np.float32), "w")
    panels = g.add("pack_conv_weight", [w], in_block=16, out_block=16)
    b = g.constant(rng.standard_normal((2, 16)).astype(np.float32), "b") if bias else None
    x = g.input("x", (1, channels // 16, 14, 14, 16), f32)
    pads = (kernel // 2,) * 4
    g.output(g.add("conv2d_blocked", [x, panels, b], strides=(stride, stride), pads=pads, group=1), "y")
    return g


def narrowed(g: Graph, machine: Target = AMX, *, narrow: bool = True) -> Graph:
    return narrow_convolutions(g, Choosing(machine), narrow=narrow)


@pytest.mark.parametrize(("kernel", "stride", "bias"), [(3, 1, True), (1, 1, False), (3, 2, False)])
def test_results_are_those_of_float32_within_the_rounding_of_factors(kernel: int, stride: int, bias: bool) -> None:
    before = convolution(kernel, stride, bias=bias)
    made, given = narrowed(before), random_inputs(before)
    verify_graph(made)
    assert "conv2d_grouped" in ops(made)
    assert made.outputs[0].dtype is f32
    (wanted,), (got,) = run_graph(before, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, atol=4 * EPS * np.abs(wanted).max())
    assert np.abs(got - wanted).max() > 0, "factors are rounded"


def test_float32_stays_where_nothing_is_gained() -> None:
    for g, machine, narrow in [
        (convolution(channels=16), AMX, True),
        (convolution(), cpu("sse4"), True),
        (convolution(), AMX, False),
    ]:
        assert "conv2d_grouped" not in ops(narrowed(g, machine, narrow=narrow))


@pytest.mark.parametrize("is_rounded", [True, False])
def test_factors_in_bf16_are_multiplied_as_they_are(is_rounded: bool) -> None:
    g, w = Graph(), np.random.default_rng(0).standard_normal((32, 64, 3, 3)).astype(np.float32)
    if is_rounded:
        w = w.astype(bf16.numpy).astype(np.float32)
    panels = g.add("pack_conv_weight", [g.constant(w, "w")], in_block=16, out_block=16)
    x = g.add("cast", [g.input("x", (1, 4, 6, 6, 16), bf16)], dtype=f32)
    g.output(g.add("conv2d_blocked", [x, panels, None], strides=(1, 1), pads=(1,) * 4, group=1), "y")
    made, given = narrowed(g, narrow=False), random_inputs(g)
    verify_graph(made)
    assert ("conv2d_grouped" in ops(made)) is is_rounded
    (wanted,), (got,) = run_graph(g, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
