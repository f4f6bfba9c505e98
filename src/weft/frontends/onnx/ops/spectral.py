"""Fourier transforms of signals, and the weights of mel filters."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.file.tensors import MOST_DENSE, element_type
from weft.frontends.onnx.mel_filters import late_mel_filters
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import Builder, CompileTimeConstant, static_sizes
from weft.graph.composites.numerics.fourier import Complex, fourier, inverse_to_real, resized_signal
from weft.graph.composites.run_time import late_axes
from weft.graph.composites.run_time.late_fourier import late_inverse_to_real, late_resized, late_transform
from weft.graph.composites.run_time.signal_frames import late_frames
from weft.graph.composites.sequences import element, stack
from weft.ir import INDEX, Const, Expr, as_expr
from weft.ops import simplify_size
from weft.support.dtypes import f32, i64
from weft.te import is_narrow

AXIS_IS_INPUT: Final = 20
"""The operator set since which the axis of a DFT is an input."""


@translates("DFT")
def dft(c: Call) -> Results:
    """The discrete Fourier transform along an axis; the last dimension holds real parts, or real and imaginary parts."""
    x = c.input(0)
    return c.cast(_dft(c, _exact(c, x)), x.dtype)


def _exact(c: Call, x: Operand) -> Operand:
    """Returns a signal in float32 at least: tables of cosines would be rounded to 16 bits, each."""
    return c.cast(x, f32) if is_narrow(x.dtype) else x


def _dft(c: Call, x: Operand) -> Operand:
    if c.opset < AXIS_IS_INPUT:
        return _dft_along(c, c, x, c.axis(1, x.rank))
    if c.is_known(2):
        return _dft_along(c, c, x, c.axis_of(int(c.number_at(2, "the axis")) if c.has(2) else -2, x.rank))
    shortest = (
        2 if c.flag("inverse", False) and c.flag("onesided", False) else 1
    )  # of one there is nothing but a constant
    axes = [d for d in range(x.rank - 1) if not isinstance(s := x.shape[d], Const) or s.value >= shortest]
    if not axes:
        c.fail(f"{x!r} has no axis that is long enough", UNFIT)
    return late_axes.for_axis(c, c.input(2), x.rank, axes, lambda b, axis: [_dft_along(c, b, x, axis)])[0]


def _dft_along(c: Call, b: Builder, x: Operand, axis: int) -> Operand:
    """Returns the transform along *axis*, by operators that *b* adds."""
    if axis == x.rank - 1:
        c.fail("its axis is the last one, which holds real and imaginary parts", UNFIT)
    real, imaginary = _parts(c, b, x)
    order = [d for d in range(x.rank - 1) if d != axis] + [axis]
    back = [order.index(d) for d in range(x.rank - 1)]
    signal = b.transpose(real, order), None if imaginary is None else b.transpose(imaginary, order)
    is_known = c.is_known(1) and static_sizes([x.shape[axis]]) is not None
    inverse, onesided = c.flag("inverse", False), c.flag("onesided", False)
    made = (_known_dft if is_known else _late_dft)(c, b, signal, inverse=inverse, onesided=onesided)
    return _joined(b, made, back, only_real=inverse and onesided)


def _known_dft(c: Call, b: Builder, x: Complex, *, inverse: bool, onesided: bool) -> Complex:
    """Returns the transform along the last dimension, of a length that is known."""
    size = _length(c, x[0].shape[-1], "of its axis")
    n = _given_length(c, 1, "the length", 2 * (size - 1) if inverse and onesided else size)
    signal = resized_signal(b, x, n // 2 + 1 if onesided and inverse else n)
    if onesided and inverse:
        return inverse_to_real(b, signal, n), None
    return fourier(b, signal, n, inverse=inverse, kept=n // 2 + 1 if onesided else n)


def _late_dft(c: Call, b: Builder, x: Complex, *, inverse: bool, onesided: bool) -> Complex:
    """Returns the transform along the last dimension, of a length that only a run tells."""
    size = x[0].shape[-1]
    if c.has(1):
        n = as_expr(c.late_number(c.input(1), "length", "the length of the transform", least=1), INDEX)
    elif inverse and onesided:
        b.require(size >= 2, "there is nothing but a constant in an axis of {0}", size)
        n = simplify_size(2 * (size - 1))
    else:
        n = size
    half = simplify_size(n // 2 + 1)
    signal = late_resized(b, x, half if inverse and onesided else n)
    if inverse and onesided:
        return late_inverse_to_real(b, signal, n), None
    return late_transform(b, signal, n, half if onesided else n, inverse=inverse)


@translates("STFT")
def stft(c: Call) -> Results:
    """The Fourier transforms of a signal's frames, times a window: [batch, frames, frequencies, 2]."""
    given = c.ranked(0, 3, "the signal")
    x, window = _exact(c, given), _exact(c, c.input(2)) if c.has(2) else None
    onesided = c.flag("onesided", True)
    sizes = [x.shape[1], *([] if window is None else window.shape)]
    if not (c.is_known(1) and c.is_known(3)) or static_sizes(sizes) is None:
        return c.cast(_stft_late(c, x, window, onesided=onesided), given.dtype)
    size = _length(c, x.shape[1], "of the signal")
    step = int(c.number_at(1, "the frames' distance"))
    width = c.count_of(2, "the window") if c.has(2) else size
    n = _given_length(c, 3, "the frames' length", width)
    if step < 1 or n > size:
        c.fail(f"frames of {n} elements, {step} apart, do not fit a signal of {size}", UNFIT)
    count = (size - n) // step + 1
    _check_table(c, count * n, f"{count} frames of {n} elements need")
    at = CompileTimeConstant(np.add.outer(np.arange(count) * step, np.arange(n)).astype(np.int64))

    def framed(p: Operand) -> Operand:
        frames = c.add("gather", p, at, axis=1)
        return frames if window is None else c.add("mul", frames, window)

    real, imaginary = _parts(c, c, x)
    frames = framed(real), None if imaginary is None else framed(imaginary)
    made = _joined(c, fourier(c, frames, n, kept=n // 2 + 1 if onesided else n), [0, 1, 2])
    return c.cast(made, given.dtype)


def _stft_late(c: Call, x: Operand, window: Operand | None, *, onesided: bool) -> Operand:
    """Returns the transforms of frames whose length or distance is known only when the model runs."""
    n = x.shape[1] if window is None else window.shape[0]
    if c.has(3):
        n = as_expr(c.late_number(c.input(3), "width", "the frames' length", least=1))
    return _joined(c, late_frames(c, _parts(c, c, x), window, n, c.input(1), onesided=onesided), [0, 1, 2])


def _parts(c: Call, b: Builder, x: Operand) -> Complex:
    """Returns the real and the imaginary part of a signal; None for imaginary parts that are left out."""
    sizes = static_sizes(x.shape[-1:])
    if sizes not in ([1], [2]):
        c.fail(f"the last dimension of its input should be 1 (real) or 2 (real and imaginary): {x!r}", UNFIT)
    if sizes == [1]:
        return b.reshape(x, x.shape[:-1]), None
    return element(b, x, x.rank - 1, 0), element(b, x, x.rank - 1, 1)


def _joined(b: Builder, x: Complex, order: list[int], *, only_real: bool = False) -> Operand:
    """Returns both parts, their dimensions in another *order*, with a last dimension of two; or of one for *only_real* parts."""
    real, imaginary = x
    if only_real:
        return stack(b, [b.transpose(real, order)], len(order))
    if imaginary is None:
        imaginary = b.add("full", shape=real.shape, value=0, dtype=real.dtype)
    return stack(b, [b.transpose(p, order) for p in (real, imaginary)], len(order))


def _length(c: Call, size: Expr, what: str) -> int:
    sizes = static_sizes([size])
    if sizes is None:
        c.fail(f"the length {what} is symbolic", 'give it a number: shapes={"x": (1, 16000, 1)}')
    return sizes[0]


def _given_length(c: Call, i: int, what: str, default: int) -> int:
    """Returns the length that input *i* is, or *default*; raises `ModelError` for one of no elements."""
    n = int(c.number_at(i, what)) if c.has(i) else default
    if n < 1:
        c.fail(f"{what} is {n}", UNFIT)
    _check_table(c, 2 * n, f"{what}, {n}, needs")
    return n


def _check_table(c: Call, count: int, what: str) -> None:
    """Raises `ModelError` where a table of *count* numbers of 64 bits, which is made while importing, would be too large."""
    if count * i64.bytes > MOST_DENSE:
        c.fail(f"{what} a table of {count} numbers; {MOST_DENSE // i64.bytes} are the most")


@translates("MelWeightMatrix")
def mel_weight_matrix(c: Call) -> Results:
    """Triangular filters [frequencies, bins] that are equally wide on the mel scale (O'Shaughnessy, 1987)."""
    dtype = element_type(c.integer("output_datatype", 1), c.source)
    if not all(c.is_known(i) for i in range(5)):
        return c.cast(late_mel_filters(c, *[c.input(i) for i in range(5)]), dtype)
    names = ("the number of bins", "the transform's length", "the sample rate", "the lower edge", "the upper edge")
    bins, length, rate, low, high = (c.number_at(i, what) for i, what in enumerate(names))
    if not (bins >= 0 and length >= 0 and rate > 0):
        c.fail(
            f"{bins} bins for a transform of {length} elements at the sample rate {rate}: it takes none below 0", UNFIT
        )
    _check_table(c, (int(bins) + 2) * (int(length) // 2 + 1), f"{bins} bins for a transform of {length} elements need")
    with np.errstate(all="ignore"):  # edges that are no frequencies make corners that are no numbers
        edges = 2595 * np.log10(1 + np.array([low, high]) / 700)
        mels = edges[0] + np.arange(int(bins) + 2) * (edges[1] - edges[0]) / (int(bins) + 2)
        places = (length + 1) * 700 * (10 ** (mels / 2595) - 1) // rate
    if not 0 <= places.min() <= places.max() <= length // 2:
        c.fail(
            f"its filters reach from {places.min():.0f} to {places.max():.0f}, beyond {int(length) // 2 + 1} frequencies",
            UNFIT,
        )
    corners = places.astype(np.int64)
    left, centre, right = corners[:-2], corners[1:-1], corners[2:]
    k = np.arange(int(length) // 2 + 1)[:, None]
    rising = np.where((left <= k) & (k <= centre), (k - left) / np.maximum(centre - left, 1), 0)
    falling = np.where((centre <= k) & (k < right), (right - k) / np.maximum(right - centre, 1), 0)
    weights = np.where(k < centre, rising, np.where(k == centre, 1.0, falling))
    return CompileTimeConstant(weights.astype(dtype.numpy), c.node.output[0])
