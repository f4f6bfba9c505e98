"""Axes behind those that are reduced become one where the last is short."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graph.checks import apply_pass, one_output, ops
from tests.graph.oracle import Oracle

from weft.cost import Choosing
from weft.graph import Graph, optimize, print_graph
from weft.graph.passes.merge_axes import merge_axes
from weft.support.dtypes import f32
from weft.targets import cpu

AVX512 = cpu("avx512")


def reduced(op: str, shape: tuple[int, ...], **attributes: Any) -> Graph:
    g = Graph()
    return one_output(g, g.add(op, [g.input("x", shape, f32)], **attributes))


def test_text_before_and_after() -> None:
    made = apply_pass(reduced("reduce_max", (6, 7, 5), axes=(0,)), lambda g: merge_axes(g, Choosing(AVX512)))
    assert print_graph(made) == (
        "graph main(x: f32[6, 7, 5]) -> (y):\n"
        "  reshape: f32[6, 35] = reshape(x, shape=(6, 35))\n"
        "  reduce_max_1: f32[1, 35] = reduce_max(reshape, axes=(0,))\n"
        "  reduce_max: f32[1, 7, 5] = reshape(reduce_max_1, shape=(1, 7, 5))\n"
        "  return y=reduce_max\n"
    )


MERGED: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "from the back": ("reduce_sum", (3, 4, 5, 6), {"axes": (-3,), "keepdims": False}),
    "several": ("reduce_mean", (3, 4, 5, 6), {"axes": (0, 1), "keepdims": True}),
    "softmax": ("softmax", (9, 4, 3), {"axis": -3}),
    "log_softmax": ("log_softmax", (2, 9, 4, 3), {"axis": 1}),
}


@pytest.mark.parametrize("what", MERGED)
def test_merged(what: str) -> None:
    op, shape, attributes = MERGED[what]
    made = apply_pass(reduced(op, shape, **attributes), lambda g: merge_axes(g, Choosing(AVX512)))
    assert ops(made) == ["reshape", op, "reshape"]


KEPT: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "one axis behind": ("reduce_sum", (3, 4, 5), {"axes": (1,)}),
    "none behind": ("softmax", (3, 4, 5), {"axis": -1}),
    "a long last axis": ("reduce_sum", (3, 4, 64), {"axes": (0,)}),
    "nothing to merge with": ("reduce_sum", (3, 1, 5), {"axes": (0,)}),
    "all reduced": ("reduce_sum", (3, 4, 5), {"axes": None}),
    "no reduction": ("relu", (3, 4, 5), {}),
}


@pytest.mark.parametrize("what", KEPT)
def test_others_are_kept(what: str) -> None:
    op, shape, attributes = KEPT[what]
    g = reduced(op, shape, **attributes)
    assert merge_axes(g, Choosing(AVX512)) is g


def test_in_the_pipeline() -> None:
    made = apply_pass(reduced("softmax", (9, 4, 3), axis=0), lambda g: optimize(g, AVX512, Oracle()))
    assert ops(made) == ["reshape", "softmax", "reshape"]
