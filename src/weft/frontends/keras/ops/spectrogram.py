"""Fourier transforms of signals, their frames, and spectrograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.ops.convolution import outputs_first, padded, sizes_of
from weft.frontends.keras.registry import translates
from weft.graph import Array, Value
from weft.graph.builder import CompileTimeConstant, Operand, static_sizes
from weft.graph.composites.numerics import fourier
from weft.graph.composites.numerics.short_time_fourier import (
    framed,
    inverse_short_time_fourier,
    overlapped,
    short_time_fourier,
)
from weft.graph.composites.numerics.special_functions import atan2
from weft.graph.composites.sequences import concat
from weft.graph.composites.slicing import slice_axes
from weft.ops import simplify_size
from weft.support.dtypes import f32

_LONGEST: Final = 1 << 20
"""The longest transform, whose tables of cosines the graph has."""

_LEAST: Final = 1e-7
"""Keras's epsilon, the least number that a logarithm is taken of."""

_SLANEY: Final = (1127.0, 700.0)
"""The scale of mel, and the frequency in hertz at which it bends (O'Shaughnessy, 1987)."""


@translates("MelSpectrogram")
def mel_spectrogram(c: Call) -> Operand:
    """The powers of bands of frequencies that are equally wide on the mel scale, in decibels: [..., bands, frames]."""
    n, width = _length(c, "fft_length"), _length(c, "sequence_length")
    rate, bands = c.number("sampling_rate"), c.integer("num_mel_bins")
    x = _reflected(c, c.floats(), n // 2)
    real, imaginary = short_time_fourier(c, x, _window(c, width, n), c.integer("sequence_stride"))
    assert imaginary is not None, "transforms of real numbers are complex"
    size = c.add("sqrt", c.add("add", c.add("square", real), c.add("square", imaginary)))
    power = c.add("power", size, c.scalar(c.number("mag_exp"), f32))
    filters = _mel_filters(bands, n // 2 + 1, rate, c.number("min_freq"), c.number("max_freq"))
    y = c.add("matmul", power, CompileTimeConstant(filters))
    if c.flag("power_to_db"):
        y = _decibels(c, y)
    return c.transpose(y, [*range(y.rank - 2), y.rank - 1, y.rank - 2])


def _decibels(c: Call, y: Operand) -> Operand:
    least, ten = c.number("min_power"), c.scalar(10 / np.log(10), f32)
    level = c.add("mul", c.add("log", c.add("maximum", y, c.scalar(least, f32))), ten)
    level = c.add("sub", level, c.scalar(10 * np.log10(max(abs(c.number("ref_power")), least)), f32))
    most = c.add("reduce_max", level, axes=tuple(range(level.rank)), keepdims=False)
    return c.add("maximum", level, c.add("sub", most, c.scalar(c.number("top_db"), f32)))


def _mel_filters(bands: int, count: int, rate: float, low: float, high: float) -> Array:
    """Returns triangles [frequencies, bands] that are linear on the mel scale, and leave the constant out."""
    factor, bend = _SLANEY

    def mel(f: Any) -> Any:
        return factor * np.log1p(np.asarray(f, np.float64) / bend)

    places = mel(np.linspace(0, rate / 2, count))[:, None]
    edges = np.linspace(mel(low), mel(high), bands + 2)
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    made = np.maximum(0, np.minimum((places - left) / (centre - left), (right - places) / (right - centre)))
    made[0] = 0
    filters: Array = made.astype(np.float32)
    return filters


@translates("STFTSpectrogram")
def stft_spectrogram(c: Call) -> Operand:
    """The transforms of frames, convolutions with windowed cosines and sines: parts, sizes, powers, angles or logarithms."""
    mode, last = c.text("mode"), c.channels_last
    x = c.floats(rank=3)
    x = c.transpose(x, [0, 2, 1]) if last else x
    channels = static_sizes([x.shape[1]])
    if channels is None:
        c.fail(f"the number of channels of {x!r} is symbolic", "give the model a number of channels")
    alone = c.reshape(x, [simplify_size(x.shape[0] * channels[0]), 1, x.shape[2]])
    count = 1 if mode in ("real", "imag") else 2
    parts = [_convolved(c, alone, k, [x.shape[0], channels[0]]) for k in range(count)]
    return _arranged(c, _of_mode(c, mode, parts), last=last)


def _convolved(c: Call, x: Operand, k: int, lead: list[Any]) -> Operand:
    """Returns frames times kernel *k*: [batch, channels, frequencies, frames]."""
    weight = c.variable(k, 3, outputs_first)
    step = c.integer("frame_step", c.integer("frame_length") // 2)
    x, pads = padded(c, x, sizes_of(weight), [step], [1])
    y = c.add("conv2d", x, weight, strides=[step], pads=pads, dilations=[1], group=1)
    return c.reshape(y, [*lead, *y.shape[1:]])


def _of_mode(c: Call, mode: str, parts: list[Operand]) -> Operand:
    if len(parts) == 1:
        return parts[0]
    if mode == "stft":
        return concat(c, parts, 2)
    if mode == "angle":
        return atan2(c, parts[1], parts[0])
    power = c.add("add", *[c.add("square", p) for p in parts])
    if mode == "psd":
        doubled = np.ones((int(power.shape[2].value), 1), np.float32)  # type: ignore[attr-defined]
        doubled[1:-1] = 2
        return c.add("mul", power, CompileTimeConstant(doubled))
    size = c.add("sqrt", c.add("maximum", power, c.scalar(_LEAST, f32)))
    if mode not in ("log", "magnitude"):
        c.fail(f"there is no mode {mode!r}", "use one of log, magnitude, psd, real, imag, angle, stft")
    return size if mode == "magnitude" else c.add("log", c.add("maximum", size, c.scalar(_LEAST, f32)))


def _arranged(c: Call, y: Operand, *, last: bool) -> Operand:
    """Returns [batch, channels, frequencies, frames] in the order that the settings say."""
    if c.flag("expand_dims"):
        return c.transpose(y, [0, 3, 2, 1] if last else [0, 1, 3, 2])
    flat = c.reshape(y, [y.shape[0], simplify_size(y.shape[1] * y.shape[2]), y.shape[3]])
    return c.transpose(flat, [0, 2, 1]) if last else flat


@translates("ops.ExtractSequences")
def extract_sequences(c: Call) -> Operand:
    """Frames of a signal along its last dimension."""
    return framed(c, c.floats(), _length(c, "sequence_length"), c.integer("sequence_stride"))


@translates("ops.STFT")
def stft(c: Call) -> tuple[Operand, ...]:
    """The transforms of a signal's frames, times a window: real and imaginary parts."""
    n, width = _length(c, "fft_length"), _length(c, "sequence_length")
    x = c.floats()
    x = _reflected(c, x, n // 2) if c.flag("center", True) else x
    return _both(c, short_time_fourier(c, x, _window(c, width, n), c.integer("sequence_stride")))


@translates("ops.ISTFT")
def istft(c: Call) -> Operand:
    """The signal whose frames have given transforms."""
    n, width, step = _length(c, "fft_length"), _length(c, "sequence_length"), c.integer("sequence_stride")
    x, center = _complex(c), c.flag("center", True)
    if c.has("window"):
        y = inverse_short_time_fourier(c, x, _window(c, width, n), step)
    else:
        y = overlapped(c, fourier.inverse_to_real(c, x, n), step)
    start = n // 2 if center else 0
    size = y.shape[-1]
    end = start + c.integer("length") if c.has("length") else simplify_size(size - start)
    return slice_axes(c, y, [y.rank - 1], [start], [end], [1])


@translates("ops.RFFT")
def rfft(c: Call) -> tuple[Operand, ...]:
    """The first half of the transform of real numbers."""
    x = c.floats()
    n = _length(c, "fft_length") if c.has("fft_length") else _size(c, x, x.rank - 1)
    return _both(c, fourier.fourier(c, fourier.resized_signal(c, (x, None), n), n, kept=n // 2 + 1))


@translates("ops.IRFFT")
def irfft(c: Call) -> Operand:
    """The real numbers whose transform begins with those given."""
    x = _complex(c)
    n = _length(c, "fft_length") if c.has("fft_length") else 2 * (_size(c, x[0], x[0].rank - 1) - 1)
    return fourier.inverse_to_real(c, fourier.resized_signal(c, x, n // 2 + 1), n)


def _transform(inverse: bool, dims: int) -> Callable[[Call], tuple[Operand, ...]]:
    """The transform of complex numbers along the last *dims* dimensions."""

    def translate(c: Call) -> tuple[Operand, ...]:
        made: fourier.Complex = _complex(c)
        for _ in range(dims):  # each is the last once, and then the first of them
            made = fourier.fourier(c, made, _size(c, made[0], made[0].rank - 1), inverse=inverse)
            if dims > 1:
                order = [*range(made[0].rank - 2), made[0].rank - 1, made[0].rank - 2]
                made = c.transpose(made[0], order), None if made[1] is None else c.transpose(made[1], order)
        return _both(c, made)

    return translate


translates("ops.FFT")(_transform(inverse=False, dims=1))
translates("ops.FFT2")(_transform(inverse=False, dims=2))
translates("ops.IFFT2")(_transform(inverse=True, dims=2))


def _complex(c: Call) -> tuple[Operand, Operand]:
    """Returns the real and the imaginary parts that a call is given."""
    given = c.positional[0] if c.positional else None
    parts = [*given] if isinstance(given, list | tuple) else []
    if len(parts) != 2 or not all(isinstance(p, Value | CompileTimeConstant) for p in parts):
        c.fail(f"its argument 0 is {given!r}, not real and imaginary parts", "build the model with two tensors there")
    real, imaginary = (c.cast(p, f32) for p in parts)
    return real, imaginary


def _both(c: Call, x: fourier.Complex) -> tuple[Operand, ...]:
    real, imaginary = x
    return real, c.add("full", shape=real.shape, value=0, dtype=f32) if imaginary is None else imaginary


def _length(c: Call, name: str) -> int:
    n = c.integer(name)
    if not 1 <= n <= _LONGEST:
        c.fail(f"its setting {name!r} is {n}; 1 to {_LONGEST:,} are supported", "use a shorter transform")
    return n


def _size(c: Call, x: Operand, axis: int) -> int:
    sizes = static_sizes([x.shape[axis]])
    if sizes is None or sizes[0] > _LONGEST:
        c.fail(f"dimension {axis} of {x!r} is symbolic or too long for a transform", "give it a number in `shapes`")
    return sizes[0]


def _window(c: Call, width: int, n: int) -> Array:
    """Returns the factors of a frame of *n* elements: a window of *width* in their middle."""
    found = c.layer.config.get("window")
    phase = 2 * np.pi * np.arange(width) / max(width - width % 2, 1)
    if isinstance(found, str) and found in ("hann", "hamming"):
        offset = 0.5 if found == "hann" else 0.54
        made = offset - (1 - offset) * np.cos(phase)
    elif found is None:
        return np.ones(n, np.float32)
    else:
        numbers = found.array if isinstance(found, CompileTimeConstant) else np.asarray(found, object)
        if numbers.shape != (width,) or numbers.dtype.kind not in "fi":
            c.fail(f"its window is {found!r}", "use 'hann' or 'hamming', or save the model again")
        made = numbers.astype(np.float64)
    before = (n - width) // 2
    window: Array = np.pad(made, (before, n - width - before)).astype(np.float32)
    return window


def _reflected(c: Call, x: Operand, count: int) -> Operand:
    """Returns a signal with *count* elements before its first and behind its last, mirrored."""
    pads = [0] * (2 * x.rank)
    pads[x.rank - 1] = pads[-1] = count
    return c.add("pad", x, pads=tuple(pads), mode="reflect", value=0)
