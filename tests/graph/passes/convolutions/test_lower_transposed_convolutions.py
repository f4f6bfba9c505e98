"""Transposed convolutions as ordinary ones: over random attributes, and which are kept for channel blocks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from tests.graph.checks import apply_pass, constant, one_output, ops
from tests.graph.oracle import Oracle
from tests.support.sampling import tried

from weft.cost import Choosing
from weft.graph import Graph
from weft.graph.passes.convolutions.lower_transposed_convolutions import lower_transposed_convolutions
from weft.support.dtypes import f32
from weft.targets import cpu

FOUR = cpu("sse4")
"""A machine with vectors of four floats."""


def lower(graph: Graph, *, blocks: bool = True) -> Graph:
    return lower_transposed_convolutions(graph, Choosing(FOUR), Oracle(), blocks=blocks)


def transposed(
    x: tuple[int | str, ...], w: tuple[int, ...], *, bias: bool = True, known: bool = True, **attributes: Any
) -> Graph:
    g = Graph()
    n, group = len(w) - 2, attributes.get("group", 1)
    given = {"strides": (1,) * n, "pads": (0,) * 2 * n, "dilations": (1,) * n, "output_padding": (0,) * n, **attributes}
    sizes = [g.dim(s) if isinstance(s, str) else s for s in x]
    weight = constant(g, *w, name="w") if known else g.input("w", w, f32)
    b = constant(g, w[1] * group, name="b") if bias else None
    return one_output(g, g.add("conv_transpose2d", [g.input("x", sizes, f32), weight, b], **given))


@tried(15, 60, st.data())
def test_any_attributes(data: st.DataObject) -> None:
    def draw(low: int, high: int, count: int) -> tuple[int, ...]:
        return tuple(data.draw(st.integers(low, high)) for _ in range(count))

    n = data.draw(st.integers(1, 2))
    group, kernel, strides, pads = data.draw(st.integers(1, 3)), draw(1, 5, n), draw(1, 3, n), draw(0, 3, 2 * n)
    dilations = draw(1, 3, n)
    extra = tuple(data.draw(st.integers(0, s - 1)) for s in strides)
    sizes = draw(1, 5, n)
    dims = list(zip(sizes, strides, dilations, kernel, extra, pads[:n], pads[n:], strict=True))
    assume(all((i - 1) * s + d * (k - 1) + 1 + e - p - q > 0 for i, s, d, k, e, p, q in dims))
    graph = transposed(
        (2, 2 * group, *sizes),
        (2 * group, 3, *kernel),
        bias=data.draw(st.booleans()),
        known=data.draw(st.booleans()),
        strides=strides,
        pads=pads,
        dilations=dilations,
        group=group,
        output_padding=extra,
    )
    assert "conv_transpose2d" not in ops(apply_pass(graph, lambda g: lower(g, blocks=False)))


def test_of_one_place_it_is_a_matrix_product() -> None:
    graph = transposed((2, 5, 1, 1), (5, 3, 4, 2), strides=(2, 2))
    assert ops(apply_pass(graph, lower)) == ["reshape", "gemm", "reshape"]


def test_at_stride_one_nothing_is_interleaved() -> None:
    assert ops(apply_pass(transposed((1, 8, 3, 4), (8, 8, 3, 3), pads=(1, 0, 2, 1)), lower)) == ["conv2d"]


def test_weights_that_are_known_are_rearranged_at_once() -> None:
    made = apply_pass(transposed((1, 8, 3, 4), (8, 1, 4, 4), strides=(2, 2), bias=False), lower)
    assert ops(made) == ["conv2d", "interleave_phases"]
    assert made.nodes[0].inputs[1] is not None
    assert made.nodes[0].inputs[1].static_shape == (4, 8, 2, 2)


@pytest.mark.parametrize("channels", [4, 8])
def test_whole_vectors_of_channels_are_left_to_blocks(channels: int) -> None:
    graph = transposed((1, 8, 6, 6), (8, channels, 4, 4), strides=(2, 2), pads=(1, 1, 1, 1))
    assert lower(graph) is graph
    assert ops(lower(graph, blocks=False)) == ["conv2d", "interleave_phases"]


def test_dilation_with_a_stride_puts_zeros_between_taps() -> None:
    made = apply_pass(transposed((1, 8, 3, 3), (8, 4, 2, 3), strides=(2, 2), dilations=(2, 1), bias=False), lower)
    assert ops(made) == ["conv2d", "interleave_phases"]
    assert made.nodes[0].inputs[1] is not None
    assert made.nodes[0].inputs[1].static_shape == (16, 8, 2, 2)


def test_sizes_may_be_symbolic() -> None:
    graph = transposed((1, 4, "h", 3), (4, 3, 4, 4), strides=(2, 2), pads=(1, 1, 1, 1))
    assert ops(apply_pass(graph, lambda g: lower(g, blocks=False))) == ["conv2d", "interleave_phases"]
