"""Convolutions on factors in bf16: their results, and what stays in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.graph.checks import ops, random_inputs
from tests.graph.oracle import run_graph
from tests.support.machines import AMX, SERVER

from weft.cost import BlockedConvolution, Candidate, Choosing, FactorsInParts, convolution_in_parts_plans
from weft.graph import Graph, Parameter, Value, verify_graph
from weft.graph.passes.convolutions.narrow_convolutions import narrow_convolutions
from weft.graph.passes.eliminate_dead_code import eliminate_dead_code
from weft.support.dtypes import bf16, f32
from weft.targets import Target, cpu

WITH_TILES = SERVER.having(features=AMX.isa.features, scopes=AMX.scopes)
"""A server with matrix registers."""

EPS = 2.0**-8
"""The most that rounding to bf16 changes a number by, as a part of it."""


def convolution(
    kernel: int = 3,
    stride: int = 1,
    *,
    channels: int = 64,
    bias: bool = False,
    added: tuple[int, ...] = (),
    batch: int | str = 1,
) -> Graph:
    g, rng = Graph(), np.random.default_rng(0)
    w = g.constant(rng.standard_normal((32, channels, kernel, kernel)).astype(np.float32), "w")
    panels = g.add("pack_conv_weight", [w], in_block=16, out_block=16)
    b = g.constant(rng.standard_normal((2, 16)).astype(np.float32), "b") if bias else None
    n = g.dim(batch) if isinstance(batch, str) else batch
    x = g.input("x", (n, channels // 16, 14, 14, 16), f32)
    pads = (kernel // 2,) * 4
    y = g.add("conv2d_blocked", [x, panels, b], strides=(stride, stride), pads=pads, group=1)
    g.output(g.add("add", [y, g.input("r", added, f32)]) if added else y, "y")
    return g


def narrowed(g: Graph, machine: Target = AMX, *, narrow: bool = True) -> Graph:
    return narrow_convolutions(g, Choosing(machine), narrow=narrow)


def in_parts(g: Graph) -> Graph:
    """Returns *g* with its convolutions in parts, even where vectors would be faster."""

    def choose(found: Sequence[Candidate[Any]]) -> Candidate[Any]:
        return next((c for c in found if c.decision == FactorsInParts(1)), found[0])

    return narrow_convolutions(g, Choosing(AMX, choose), narrow=False, in_parts=True)


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


@pytest.mark.parametrize(("kernel", "stride", "bias"), [(3, 1, True), (1, 1, False), (3, 2, False)])
def test_results_in_parts_are_those_of_float32(kernel: int, stride: int, bias: bool) -> None:
    before = convolution(kernel, stride, bias=bias)
    made, given = in_parts(before), random_inputs(before)
    verify_graph(made)
    assert [op for op in ops(made) if op.endswith("_in_parts")] == ["split_in_parts", "conv2d_in_parts"]
    (wanted,), (got,) = run_graph(before, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-6 * np.abs(wanted).max())


def test_parts_are_chosen_for_many_places_that_stay_in_cache() -> None:
    """Few places read their weights, which are half as large again, and parts of large images leave the cache."""
    sizes = ((14, 512), (28, 256), (7, 1024), (56, 128))
    forms = [
        convolution_in_parts_plans(BlockedConvolution(n, n, c, c, 1, n * n * c, pointwise=True), WITH_TILES)
        for n, c in sizes
    ]
    assert [found[0].decision.blocks for found in forms] == [1, 1, 0, 0]


def test_a_batch_of_any_size() -> None:
    before = convolution(batch="n")
    made, given = narrowed(before), random_inputs(before, {"n": 2})
    verify_graph(made)
    assert "conv2d_grouped" in ops(made)
    (wanted,), (got,) = run_graph(before, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, atol=4 * EPS * np.abs(wanted).max())


def test_float32_stays_where_nothing_is_gained() -> None:
    for g, machine, narrow in [
        (convolution(channels=16), AMX, True),
        (convolution(), cpu("sse4"), True),
        (convolution(), AMX, False),
    ]:
        assert "conv2d_grouped" not in ops(narrowed(g, machine, narrow=narrow))


@pytest.mark.parametrize(("is_rounded", "is_fixed"), [(True, True), (False, True), (True, False)])
def test_factors_in_bf16_are_multiplied_as_they_are(is_rounded: bool, is_fixed: bool) -> None:
    """Parameters, whose elements may change between calls, stay in float32 whatever they are now."""
    g, w = Graph(), np.random.default_rng(0).standard_normal((32, 64, 3, 3)).astype(np.float32)
    if is_rounded:
        w = w.astype(bf16.numpy).astype(np.float32)
    weight = g.constant(w, "w") if is_fixed else Parameter("w", w)
    panels = g.add("pack_conv_weight", [weight], in_block=16, out_block=16)
    x = g.add("cast", [g.input("x", (1, 4, 6, 6, 16), bf16)], dtype=f32)
    g.output(g.add("conv2d_blocked", [x, panels, None], strides=(1, 1), pads=(1,) * 4, group=1), "y")
    made, given = narrowed(g, narrow=False), random_inputs(g)
    verify_graph(made)
    assert ("conv2d_grouped" in ops(made)) is (is_rounded and is_fixed)
    (wanted,), (got,) = run_graph(g, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def chain(*, pooled: bool) -> Graph:
    """A convolution, what follows it in blocks, a depthwise convolution, a second convolution, and a sum with the first's."""
    g, rng = Graph(), np.random.default_rng(0)

    def conv(x: Value, n: int) -> Value:
        w = g.constant(rng.standard_normal((64, 64, 1, 1)).astype(np.float32), f"w{n}")
        b = g.constant(rng.standard_normal((4, 16)).astype(np.float32), f"b{n}")
        return g.add("conv2d_blocked", [x, g.add("pack_conv_weight", [w], in_block=16, out_block=16), b], group=1)

    def each(n: int, *shape: int) -> Value:
        return g.constant(rng.standard_normal(shape).astype(np.float32), f"c{n}")

    first = conv(g.input("x", (1, 4, 8, 8, 16), f32), 0)
    y = g.add("scale_and_shift", [first, each(1, 1, 4, 1, 1, 16), each(2, 1, 4, 1, 1, 16)])
    y = g.add("relu", [g.add("mul", [y, g.constant(np.full((), 0.5, np.float32))])])
    filters = g.add("pack_depthwise_weight", [each(3, 64, 1, 3, 3)], block=16)
    y = g.add("depthwise_conv2d_blocked", [y, filters, each(4, 4, 16)], pads=(1, 1, 1, 1))
    if pooled:
        y = g.add("max_pool2d", [y], kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1))
    g.output(g.add("add", [conv(y, 1), first]), "y")
    return g


@pytest.mark.parametrize("pooled", [False, True])
def test_values_between_convolutions_are_in_wide_blocks(pooled: bool) -> None:
    before = chain(pooled=pooled)
    made, given = eliminate_dead_code(narrowed(before)), random_inputs(before)
    verify_graph(made)
    found = ops(made)
    assert found.count("conv2d_grouped") == 2
    assert found.count("transpose") == 2, "the input is laid out anew, and the output"
    (wanted,), (got,) = run_graph(before, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, atol=4 * EPS * np.abs(wanted).max())


def test_operands_of_other_shapes_keep_their_blocks() -> None:
    g = convolution(1, added=(14, 16))
    made, given = narrowed(g), random_inputs(g)
    assert "conv2d_grouped" in ops(made)
    (wanted,), (got,) = run_graph(g, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, atol=4 * EPS * np.abs(wanted).max())


def test_convolutions_of_a_model_in_bf16_follow_one_another_in_wide_blocks() -> None:
    g, rng = Graph(), np.random.default_rng(0)
    y = g.input("x", (1, 4, 8, 8, 16), bf16)
    for n in range(2):
        w = g.constant(rng.standard_normal((64, 64, 3, 3)).astype(bf16.numpy).astype(np.float32), f"w{n}")
        panels = g.add("pack_conv_weight", [w], in_block=16, out_block=16)
        y = g.add("cast", [y], dtype=f32)
        y = g.add("cast", [g.add("conv2d_blocked", [y, panels, None], pads=(1,) * 4, group=1)], dtype=bf16)
    g.output(y, "y")
    made, given = eliminate_dead_code(narrowed(g, narrow=False)), random_inputs(g)
    verify_graph(made)
    assert [ops(made).count(op) for op in ("conv2d_grouped", "transpose")] == [2, 2]
    (wanted,), (got,) = run_graph(g, given), run_graph(made, given)
    np.testing.assert_array_equal(got, wanted)
