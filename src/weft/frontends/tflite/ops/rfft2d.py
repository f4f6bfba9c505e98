"""Fourier transforms of real numbers, and parts of the complex numbers that they make, which are pairs in a last dimension."""

from __future__ import annotations

from typing import Final

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN
from weft.frontends.tflite.call import LiteCall
from weft.frontends.tflite.registry import translates
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.numerics import complex_numbers, fourier
from weft.graph.composites.sequences import element, stack

_LONGEST: Final = 1 << 16
"""The longest transform, whose tables of cosines the graph has."""


@translates("RFFT2D")
def rfft2d(c: LiteCall) -> Operand:
    """The transform along the last two dimensions, cut or filled up to given lengths: its half that is no mirror image."""
    x = c.tensor(0)
    lengths = c.sizes(1, "the lengths of the transform")
    if x.rank < 2 or len(lengths) != 2 or not all(1 <= n <= _LONGEST for n in lengths):
        c.fail(f"its lengths {lengths} are not those of {x!r}", SAVE_AGAIN)
    if static_sizes(x.shape[-2:]) is None:
        c.fail(f"it needs sizes that are numbers: {x!r}", "convert the model with fixed shapes")
    high, wide = lengths
    made = fourier.fourier(c, fourier.resized_signal(c, (x, None), wide), wide, kept=wide // 2 + 1)
    last = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    turned = c.transpose(made[0], last), None if made[1] is None else c.transpose(made[1], last)
    made = fourier.fourier(c, fourier.resized_signal(c, turned, high), high)
    real, imaginary = made
    assert imaginary is not None, "products with cosines and sines have two parts"
    return stack(c, [c.transpose(v, last) for v in (real, imaginary)], x.rank)


@translates("COMPLEX_ABS", "REAL", "IMAG")
def part(c: LiteCall) -> Operand:
    """The length, or a part, of complex numbers."""
    x = c.pairs(0)
    real, imaginary = (element(c, x, x.rank - 1, k) for k in range(2))
    if c.op == "COMPLEX_ABS":
        return complex_numbers.length(c, (real, imaginary))
    return real if c.op == "REAL" else imaginary
