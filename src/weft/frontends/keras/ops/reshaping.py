"""Layers that move elements: shapes, padding, cropping and resampling."""

from __future__ import annotations

from typing import Final

from weft.frontends.keras.call import Call
from weft.frontends.keras.registry import Translation, translates
from weft.graph.builder import Operand, static_sizes, total
from weft.graph.composites.resize import resample_axis
from weft.graph.composites.sampling import Filter
from weft.graph.composites.slicing import reshape_open
from weft.ops import simplify_size

_FILTERS: Final = {
    "nearest": Filter("nearest", "half_pixel", "floor"),
    "bilinear": Filter("linear", "half_pixel"),
    "bicubic": Filter("cubic", "half_pixel", cubic=-0.5, exclude_outside=True),
}
"""How TensorFlow resizes images: pixels are squares, of which the centres are interpolated."""


@translates("Flatten")
def flatten(c: Call) -> Operand:
    """Samples as rows, channels last."""
    x = c.tensor()
    if c.text("data_format", "channels_last") == "channels_first" and x.rank > 2:
        x = c.last_of(x)
    return c.reshape(x, [x.shape[0], total(x.shape[1:])])


@translates("Reshape")
def reshape(c: Call) -> Operand:
    """Samples in another shape, of which one size may be -1."""
    x, target = c.tensor(), c.value("target_shape", list)
    return reshape_open(c, x, [x.shape[0], *[-1 if s is None else int(s) for s in target]])


@translates("Permute")
def permute(c: Call) -> Operand:
    """The dimensions of samples, counted from 1, in another order."""
    return c.transpose(c.tensor(), [0, *[int(d) for d in c.value("dims", list)]])


@translates("RepeatVector")
def repeat_vector(c: Call) -> Operand:
    """Vectors as sequences of themselves."""
    x = c.tensor(rank=2)
    return c.add("expand", c.reshape(x, [x.shape[0], 1, x.shape[1]]), shape=(x.shape[0], c.integer("n"), x.shape[1]))


def _pairs(c: Call, name: str, n: int) -> tuple[list[int], list[int]]:
    """Returns numbers before and after each of *n* dimensions, which may be given as one for all, or one for both sides."""
    found = c.layer.config.get(name, 1)
    rows = found if isinstance(found, list) else [found] * n
    if n == 1 and len(rows) == 2:
        rows = [rows]
    pairs = [r if isinstance(r, list) else [r, r] for r in rows]
    flat = [v for p in pairs for v in p]
    if len(pairs) != n or len(flat) != 2 * n or not all(isinstance(v, int) and v >= 0 for v in flat):
        c.fail(f"its setting {name!r} is {found!r}, not pairs of numbers for {n} dimensions", "save the model again")
    return flat[::2], flat[1::2]


def _zero_padding(n: int) -> Translation:
    """Zeros around images."""

    def translate(c: Call) -> Operand:
        x = c.first(c.tensor(rank=n + 2), last=c.channels_last)
        before, after = _pairs(c, "padding", n)
        return c.last(c.add("pad", x, pads=(0, 0, *before, 0, 0, *after)), last=c.channels_last)

    return translate


def _cropping(n: int) -> Translation:
    """The inside of images."""

    def translate(c: Call) -> Operand:
        x = c.first(c.tensor(rank=n + 2), last=c.channels_last)
        before, after = _pairs(c, "cropping", n)
        axes = tuple(range(2, n + 2))
        ends = tuple(simplify_size(x.shape[d] - a) for d, a in zip(axes, after, strict=True))
        y = c.add("slice", x, starts=tuple(before), ends=ends, axes=axes, steps=(1,) * n)
        return c.last(y, last=c.channels_last)

    return translate


def _up_sampling(n: int) -> Translation:
    """Each element repeated, or interpolated."""

    def translate(c: Call) -> Operand:
        x = c.first(c.floats(rank=n + 2), last=c.channels_last)
        times, how = c.ints("size", n, 2), _FILTERS.get(c.text("interpolation", "nearest"))
        if how is None:
            c.fail(f"interpolation {c.text('interpolation')!r} is not supported", f"use one of {', '.join(_FILTERS)}")
        for d, k in enumerate(times, 2):
            if how.mode == "nearest":
                x = c.add("repeat", x, axis=d, times=k) if k > 1 else x
            else:
                x = resample_axis(c, x, d, simplify_size(x.shape[d] * k), how)
        return c.last(x, last=c.channels_last)

    return translate


@translates("Resizing")
def resizing(c: Call) -> Operand:
    """Images of another size."""
    for name in ("crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias"):
        c.refuse(name, False)
    how = _FILTERS.get(c.text("interpolation", "bilinear"))
    if how is None:
        c.fail(f"interpolation {c.text('interpolation')!r} is not supported", f"use one of {', '.join(_FILTERS)}")
    x = c.first(c.floats(rank=4), last=c.channels_last)
    for d, name in ((2, "height"), (3, "width")):
        x = resample_axis(c, x, d, c.integer(name), how)
    return c.last(x, last=c.channels_last)


@translates("CenterCrop")
def center_crop(c: Call) -> Operand:
    """The middle of images."""
    x = c.first(c.tensor(rank=4), last=c.channels_last)
    wanted, known = [c.integer(name) for name in ("height", "width")], static_sizes(x.shape[2:])
    if known is None or any(not 0 < w <= s for w, s in zip(wanted, known, strict=True)):
        c.fail(f"it crops {x!r} to {wanted}", "give it images of known sizes that are large enough")
    starts = tuple((s - w) // 2 for w, s in zip(wanted, known, strict=True))
    ends = tuple(b + w for b, w in zip(starts, wanted, strict=True))
    return c.last(c.add("slice", x, starts=starts, ends=ends, axes=(2, 3), steps=(1, 1)), last=c.channels_last)


for _n in (1, 2, 3):
    translates(f"ZeroPadding{_n}D")(_zero_padding(_n))
    translates(f"Cropping{_n}D")(_cropping(_n))
    translates(f"UpSampling{_n}D")(_up_sampling(_n))
