"""Colours as red, green and blue, and as hue, saturation and value, all from 0 to 1, in a last dimension of three."""

from __future__ import annotations

from collections.abc import Callable

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.sequences import element, stack


def hsv_of_rgb(b: Builder, x: Operand) -> Operand:
    """Returns hues, saturations and values; a grey has the hue and the saturation 0."""
    red, green, blue = _channels(b, x)
    most = b.add("maximum", b.add("maximum", red, green), blue)
    spread = b.add("sub", most, b.add("minimum", b.add("minimum", red, green), blue))
    zero, one = b.scalar(0, x.dtype), b.scalar(1, x.dtype)
    is_grey, is_black = b.add("less_equal", spread, zero), b.add("less_equal", most, zero)
    saturation = b.add("where", is_black, zero, b.add("div", spread, b.add("where", is_black, one, most)))
    sixth = b.add("reciprocal", b.add("mul", b.add("where", is_grey, one, spread), b.scalar(6, x.dtype)))

    def sector(first: Operand, second: Operand, begin: float) -> Operand:
        return b.add("add", b.add("mul", b.add("sub", first, second), sixth), b.scalar(begin, x.dtype))

    hue = b.add("where", b.add("equal", green, most), sector(blue, red, 2 / 6), sector(red, green, 4 / 6))
    hue = b.add("where", b.add("equal", red, most), sector(green, blue, 0), hue)
    hue = b.add("where", is_grey, zero, b.add("where", b.add("less", hue, zero), b.add("add", hue, one), hue))
    return stack(b, [hue, saturation, most], x.rank - 1)


def rgb_of_hsv(b: Builder, x: Operand) -> Operand:
    """Returns reds, greens and blues."""
    hue, saturation, value = _channels(b, x)
    zero, one = b.scalar(0, x.dtype), b.scalar(1, x.dtype)
    turn = b.add("mul", hue, b.scalar(6, x.dtype))

    def channel(middle: float, *, inverted: bool) -> Operand:
        apart = b.add("abs", b.add("sub", turn, b.scalar(middle, x.dtype)))
        share = b.add("sub", apart, one) if inverted else b.add("sub", b.scalar(2, x.dtype), apart)
        pure = b.add("sub", b.add("clip", share, zero, one), one)
        return b.add("mul", b.add("add", b.add("mul", pure, saturation), one), value)

    parts = [channel(3, inverted=True), channel(2, inverted=False), channel(4, inverted=False)]
    return stack(b, parts, x.rank - 1)


def with_hsv(
    b: Builder, x: Operand, change: Callable[[Operand, Operand, Operand], tuple[Operand, Operand, Operand]]
) -> Operand:
    """Returns colours whose hues, saturations and values are changed."""
    return rgb_of_hsv(b, stack(b, list(change(*_channels(b, hsv_of_rgb(b, x)))), x.rank - 1))


def _channels(b: Builder, x: Operand) -> tuple[Operand, Operand, Operand]:
    if getattr(x.shape[-1], "value", None) != 3:
        b.fail(f"{x!r} has no last dimension of three", "give it images with their channels last")
    red, green, blue = (element(b, x, x.rank - 1, k) for k in range(3))
    return red, green, blue
