"""Layers that move elements: shapes, padding, cropping and resampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from weft.frontends.keras.call import Call
from weft.frontends.keras.registry import Translation, translates
from weft.graph.builder import Operand, static_sizes, total
from weft.graph.composites.resize import area_axis, resample_axis
from weft.graph.composites.sampling import TENSORFLOW_STEPS, Filter
from weft.graph.composites.slicing import reshape_open
from weft.ops import simplify_size
from weft.support.dtypes import f32

_FILTERS: Final = {
    "nearest": Filter("nearest", "tf_half_pixel_for_nn", "floor"),
    "bilinear": Filter("linear", "half_pixel"),
    "bicubic": Filter("cubic", "half_pixel", cubic=-0.5, exclude_outside=True, steps=TENSORFLOW_STEPS),
    "lanczos3": Filter("lanczos3", "half_pixel", exclude_outside=True),
    "lanczos5": Filter("lanczos5", "half_pixel", exclude_outside=True),
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
    """Images of another size, which may keep their aspect ratio: their middle, or all of them with a border."""
    kind = c.text("interpolation", "bilinear")
    how = _FILTERS.get(kind)
    if how is None and kind != "area":
        c.fail(f"interpolation {kind!r} is not supported", f"use one of area, {', '.join(_FILTERS)}")
    if how is not None and c.flag("antialias") and how.mode != "nearest":
        how = replace(how, antialias=True, exclude_outside=True, steps=0)
    x = c.first(c.floats(rank=4), last=c.channels_last)
    wanted = c.integer("height"), c.integer("width")
    if c.flag("crop_to_aspect_ratio"):
        x = _middle_of_ratio(c, x, wanted)
    elif c.flag("pad_to_aspect_ratio"):
        x = _bordered(c, x, wanted)
    return c.last(_resized(c, x, wanted, how), last=c.channels_last)


def _resized(c: Call, x: Operand, wanted: tuple[int, int], how: Filter | None) -> Operand:
    """Returns images of another size, by a filter, or means of equal parts of them."""
    for d, size in enumerate(wanted, 2):
        x = area_axis(c, x, d, size) if how is None else resample_axis(c, x, d, size, how)
    return x


def _ratio(c: Call, x: Operand, wanted: tuple[int, int]) -> tuple[list[int], list[int]]:
    """Returns the height and width of *x*, and those that its width and its height have in the aspect ratio of *wanted*."""
    known = static_sizes(x.shape[2:])
    if known is None or 0 in (*known, *wanted):
        c.fail(f"it resizes {x!r} in its aspect ratio", "give it images of known sizes")
    return known, [known[1] * wanted[0] // wanted[1], known[0] * wanted[1] // wanted[0]]


def _middle_of_ratio(c: Call, x: Operand, wanted: tuple[int, int]) -> Operand:
    known, ratio = _ratio(c, x, wanted)
    return _middle(c, x, known, [max(min(s, r), 1) for s, r in zip(known, ratio, strict=True)])


def _middle(c: Call, x: Operand, known: Sequence[int], wanted: Sequence[int]) -> Operand:
    starts = tuple((s - w) // 2 for w, s in zip(wanted, known, strict=True))
    ends = tuple(b + w for b, w in zip(starts, wanted, strict=True))
    return c.add("slice", x, starts=starts, ends=ends, axes=(2, 3), steps=(1, 1))


def _bordered(c: Call, x: Operand, wanted: tuple[int, int]) -> Operand:
    """Returns images with as much of `fill_value` on both sides as makes them of the aspect ratio of *wanted*."""
    if c.text("fill_mode", "constant") != "constant":
        c.fail(f"its setting fill_mode={c.text('fill_mode')!r} is not supported", "fill it with a number")
    known, ratio = _ratio(c, x, wanted)
    sides = [max(r - s, 0) // 2 for s, r in zip(known, ratio, strict=True)]
    return c.add("pad", x, pads=(0, 0, *sides, 0, 0, *sides), mode="constant", value=c.number("fill_value", 0.0))


@translates("CenterCrop")
def center_crop(c: Call) -> Operand:
    """The middle of images; of those that are smaller, what is of its aspect ratio, resized."""
    x = c.first(c.tensor(rank=4), last=c.channels_last)
    wanted, known = (c.integer("height"), c.integer("width")), static_sizes(x.shape[2:])
    if known is None or min(wanted) < 1:
        c.fail(f"it crops {x!r} to {wanted}", "give it images of known sizes")
    if all(w <= s for w, s in zip(wanted, known, strict=True)):
        return c.last(_middle(c, x, known, wanted), last=c.channels_last)
    part = _middle_of_ratio(c, c.cast(x, f32), wanted)
    return c.last(_resized(c, part, wanted, _FILTERS["bilinear"]), last=c.channels_last)


for _n in (1, 2, 3):
    translates(f"ZeroPadding{_n}D")(_zero_padding(_n))
    translates(f"Cropping{_n}D")(_cropping(_n))
    translates(f"UpSampling{_n}D")(_up_sampling(_n))
