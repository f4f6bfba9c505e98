"""Pools whose windows are larger than their images: as PyTorch computes them, and no larger a padded image than they need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.driver.build import build
from weft.graph import Graph
from weft.support.dtypes import f32

EDGE = 2560
"""The edge of EfficientNet-B7's last windows, of images of 12 x 12."""


def pooled(op: str, size: int = 12, **attributes: Any) -> Graph:
    g = Graph()
    window: dict[str, Any] = {"kernel": (EDGE, EDGE), "strides": (EDGE, EDGE), "pads": (0, 0, 0, 0), "ceil_mode": True}
    g.output(g.add(op, [g.input("x", (1, 8, size, size), f32)], **{**window, **attributes}), "y")
    return g


@pytest.mark.parametrize("op", ["avg_pool2d", "max_pool2d", "sum_pool2d"])
def test_windows_larger_than_images(op: str) -> None:
    x = np.random.default_rng(0).standard_normal((1, 8, 12, 12)).astype(np.float32)
    made = weft.compile(pooled(op), cache=False)
    expected = {"avg_pool2d": x.mean((2, 3)), "max_pool2d": x.max((2, 3)), "sum_pool2d": x.sum((2, 3))}[op]
    np.testing.assert_allclose(np.asarray(made(x))[..., 0, 0], expected, rtol=1e-4, atol=1e-5)
    assert (build(pooled(op), "cpu").package.arena or 0) < 1 << 20


def test_padding_counts_as_far_as_the_model_has_it() -> None:
    x = np.ones((1, 8, 4, 4), np.float32)
    wide = {"kernel": (9, 9), "strides": (9, 9), "pads": (3, 3, 3, 3)}
    for count, area in ((True, 81), (False, 16)):
        made = weft.compile(pooled("avg_pool2d", 4, **wide, count_include_pad=count), cache=False)(x)
        np.testing.assert_allclose(made, 16 / area * np.ones((1, 8, 1, 1)), rtol=1e-6)
