"""Zeros around a convolution's images become its own padding; other padding stays."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops

from weft.graph import Graph, simplify_calls
from weft.support.dtypes import f32

LAST = (0, 1, 1, 0, 0, 1, 1, 0)
"""A pixel around images with channels last."""
FIRST = (0, 0, 0, 1, 0, 0, 2, 1)


def built(pads: tuple[int, ...], *, channels_last: bool = False, **attributes: Any) -> Graph:
    g = Graph()
    x = g.input("x", (2, 6, 7, 3) if channels_last else (2, 3, 6, 7), f32)
    y = g.add("pad", [x], pads=pads, **attributes)
    if channels_last:
        y = g.add("transpose", [y], perm=(0, 3, 1, 2))
    weight = constant(g, 4, 3 + pads[1] + pads[5] if not channels_last else 3, 3, 3)
    return one_output(g, g.add("conv2d", [y, weight], strides=(2, 2), pads=(0, 1, 0, 0)))


@pytest.mark.parametrize(
    ("channels_last", "pads", "wanted"), [(False, FIRST, (0, 2, 2, 1)), (True, LAST, (1, 2, 1, 1))]
)
def test_zeros(channels_last: bool, pads: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    made = apply_pass(built(pads, channels_last=channels_last), simplify_calls, exact=True)
    assert ops(made) == ["transpose", "conv2d"][not channels_last :]
    assert made.nodes[-1].attribute("pads") == wanted


@pytest.mark.parametrize(
    ("pads", "attributes"),
    [
        (FIRST, {"value": 1.0}),
        (FIRST, {"mode": "edge"}),
        ((0, 1, 0, 0, 0, 0, 1, 1), {}),  # of channels
        ((0, 0, -1, 0, 0, 0, 0, 0), {}),
        ((0, 0, 3, 0, 0, 0, 0, 0), {}),  # a window of zeros alone
    ],
)
def test_others_stay(pads: tuple[int, ...], attributes: dict[str, Any]) -> None:
    assert ops(apply_pass(built(pads, **attributes), simplify_calls)) == ["pad", "conv2d"]
