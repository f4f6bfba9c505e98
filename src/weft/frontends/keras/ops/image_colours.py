"""Colours of images."""

from __future__ import annotations

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.numerics.colours import hsv_of_rgb, rgb_of_hsv

_GREY = np.array([[0.2989], [0.5870], [0.1140]], np.float32)
"""The share of red, green and blue in a grey."""


@translates("ops.RGBToHSV", "ops.HSVToRGB")
def converted(c: Call) -> Operand:
    """Hues, saturations and values of red, green and blue, or back."""
    x = c.floats()
    _check_channels(c, x)
    return hsv_of_rgb(c, x) if c.layer.kind == "ops.RGBToHSV" else rgb_of_hsv(c, x)


@translates("ops.RGBToGrayscale")
def grey(c: Call) -> Operand:
    """Greys as light as the colours."""
    x = c.floats()
    _check_channels(c, x)
    return c.add("matmul", x, CompileTimeConstant(_GREY))


def _check_channels(c: Call, x: Operand) -> None:
    if not c.channels_last or getattr(x.shape[-1], "value", None) != 3:
        c.fail(f"{x!r} has no last dimension of three colours", "give it images with their channels last")
