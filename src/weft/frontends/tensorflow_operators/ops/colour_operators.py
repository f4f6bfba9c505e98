"""Colours of images, whose channels are last."""

from __future__ import annotations

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.numerics.colours import hsv_of_rgb, rgb_of_hsv, with_hsv
from weft.support.dtypes import f32


@translates("RGBToHSV")
def to_hsv(c: Call) -> Operand:
    """Hues, saturations and values of red, green and blue."""
    return hsv_of_rgb(c, c.tensor())


@translates("HSVToRGB")
def to_rgb(c: Call) -> Operand:
    """Red, green and blue of hues, saturations and values."""
    return rgb_of_hsv(c, c.tensor())


@translates("AdjustSaturation")
def saturated(c: Call) -> Operand:
    """Colours of another saturation, at most the whole."""
    x, scale = c.tensor(0), c.cast(c.tensor(1), c.tensor(0).dtype)
    zero, one = c.scalar(0, x.dtype), c.scalar(1, x.dtype)
    return with_hsv(c, x, lambda h, s, v: (h, c.add("clip", c.add("mul", s, scale), zero, one), v))


@translates("AdjustHue")
def turned(c: Call) -> Operand:
    """Colours of another hue, by a part of the circle."""
    x, delta = c.tensor(0), c.cast(c.tensor(1), c.tensor(0).dtype)

    def moved(h: Operand) -> Operand:
        far = c.add("add", h, delta)
        return c.add("sub", far, c.add("floor", far))

    return with_hsv(c, x, lambda h, s, v: (moved(h), s, v))


@translates("AdjustContrastv2")
def contrasted(c: Call) -> Operand:
    """Pixels further from, or nearer to, the mean of their channel in the image."""
    x, factor = c.tensor(0), c.tensor(1)
    if x.rank < 3:
        c.fail(f"{x!r} is no image", SAVE_AGAIN)
    exact = c.cast(x, f32)
    mean = c.add("reduce_mean", exact, axes=(x.rank - 3, x.rank - 2), keepdims=True)
    made = c.add("add", c.add("mul", c.add("sub", exact, mean), c.cast(factor, f32)), mean)
    return c.cast(made, x.dtype)
