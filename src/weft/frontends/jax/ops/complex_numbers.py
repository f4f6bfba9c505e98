"""Operations on complex numbers, whose operands and results are two tensors each: the real parts, then the imaginary ones."""

from __future__ import annotations

from typing import Final

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.registry import translates
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.numerics import complex_numbers as pairs
from weft.graph.composites.numerics import fourier, special_functions
from weft.graph.composites.numerics.complex_numbers import Pair
from weft.graph.composites.sequences import element, stack

_KINDS: Final = ("FFT", "IFFT", "RFFT", "IRFFT")
_LONGEST: Final = 1 << 20


def _pair(c: Call, k: int = 0) -> Pair:
    """Returns complex operand *k*, where all are complex."""
    return c.operand(2 * k), c.operand(2 * k + 1)


@translates("complex taken_apart")
def taken_apart(c: Call) -> Pair:
    """The parts of a real tensor [..., 2]."""
    x = c.operand(0)
    return element(c, x, x.rank - 1, 0), element(c, x, x.rank - 1, 1)


@translates("complex joined")
def joined(c: Call) -> Operand:
    """The parts as a real tensor [..., 2]."""
    real, imaginary = _pair(c)
    return stack(c, [real, imaginary], real.rank)


@translates("complex convert")
def convert(c: Call) -> Pair | Operand:
    """Real numbers with imaginary parts of zero; complex ones of another size, or their real parts."""
    dtype = c.result_dtype()
    real = c.cast(c.operand(0), dtype)
    if len(c.operation.results) == 1:
        return real
    if len(c.operands) == 2:
        return real, c.cast(c.operand(1), dtype)
    return real, c.add("full", shape=real.shape, value=0, dtype=dtype)


@translates("complex divide")
def divide(c: Call) -> Pair:
    """The quotient."""
    return pairs.product(c, _pair(c), pairs.reciprocal(c, _pair(c, 1)))


@translates("complex abs")
def absolute(c: Call) -> Operand:
    """The length."""
    return pairs.length(c, _pair(c))


@translates("complex exponential")
def exponential(c: Call) -> Pair:
    """The exponential."""
    return pairs.exponential(c, _pair(c))


@translates("complex log")
def log(c: Call) -> Pair:
    """The logarithm of the length, and the angle."""
    real, imaginary = _pair(c)
    return c.add("log", pairs.length(c, (real, imaginary))), special_functions.atan2(c, imaginary, real)


@translates("complex compare")
def compare(c: Call) -> Operand:
    """Tells where both parts are equal, or where one differs."""
    same = pairs.equal(c, _pair(c), _pair(c, 1))
    return same if c.word("comparison_direction", 0, ("EQ", "NE")) == "EQ" else c.add("logical_not", same)


@translates("complex fft")
def fft(c: Call) -> Pair | Operand:
    """A discrete Fourier transform over the last dimensions, forth or back, from or to real numbers."""
    kind = c.word("fft_type", 0, _KINDS) if c.value("type") is None else c.word("type", 0, _KINDS)
    lengths = c.ints("length", "fft_length")
    x = c.operand(0)
    if not 1 <= len(lengths) <= x.rank or not all(1 <= n <= _LONGEST for n in lengths):
        c.fail(f"its lengths {lengths} are not those of {x!r}", AGAIN)
    axes = range(x.rank - len(lengths), x.rank)
    sizes = static_sizes(x.shape[axes[0] :])
    halved = [*lengths[:-1], lengths[-1] // 2 + 1]
    if sizes != (halved if kind == "IRFFT" else lengths):
        c.fail(f"its lengths {lengths} are not those of {x!r}", AGAIN)
    made: fourier.Complex = (x, c.operand(1) if len(c.operands) == 2 else None)
    if kind == "RFFT":
        made = _along(c, made, axes[-1], lengths[-1], inverse=False, kept=halved[-1])
    for d, n in zip(axes[:-1], lengths[:-1], strict=True):
        made = _along(c, made, d, n, inverse=kind in ("IFFT", "IRFFT"))
    if kind == "IRFFT":
        return fourier.inverse_to_real(c, made, lengths[-1])
    if kind != "RFFT":
        made = _along(c, made, axes[-1], lengths[-1], inverse=kind == "IFFT")
    real, imaginary = made
    return real, c.add("full", shape=real.shape, value=0, dtype=real.dtype) if imaginary is None else imaginary


def _along(
    c: Call, x: fourier.Complex, axis: int, n: int, *, inverse: bool, kept: int | None = None
) -> fourier.Complex:
    """Returns the transform along a dimension."""
    rank = x[0].rank
    order = [*range(axis), *range(axis + 1, rank), axis]
    back = [order.index(d) for d in range(rank)]
    turned = [None if v is None else c.transpose(v, order) for v in x]
    assert turned[0] is not None
    real, imaginary = fourier.fourier(c, (turned[0], turned[1]), n, inverse=inverse, kept=kept)
    return c.transpose(real, back), None if imaginary is None else c.transpose(imaginary, back)
