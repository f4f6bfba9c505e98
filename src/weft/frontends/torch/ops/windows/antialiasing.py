"""Images resized with a filter that is as wide as a step between their elements: none of these is passed over."""

from __future__ import annotations

import math
from typing import Final

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import CompileTimeConstant, Results, static_sizes
from weft.graph.composites.sampling import Axis, Filter, coordinates_of, taps_of
from weft.ir import as_expr

_CUBIC: Final = -0.5
"""The coefficient of PyTorch's cubic filter where it is as wide; elsewhere it is -0.75."""


def _antialiased(mode: str) -> Translation:
    """The weighted sums of the elements around each place."""
    shape = Filter(mode, cubic=_CUBIC, antialias=True, exclude_outside=True)

    def translate(c: Call) -> Results:
        x, scales = c.tensor(rank=4), [c.value("scales_h"), c.value("scales_w")]
        sizes = static_sizes(x.shape[2:])
        wanted = static_sizes([as_expr(size) for size in c.sizes("output_size")])
        if sizes is None or wanted is None:
            c.fail(f"an image {x!r} of symbolic size is not resized so", "give it numbers in `shapes`")
        for d, (size, resized, scale) in enumerate(zip(sizes, wanted, scales, strict=True)):
            given = None if scale is None else float(scale)
            axis = Axis(size, resized, _scale(size, resized, given, aligned=bool(c.value("align_corners"))))
            places = coordinates_of(axis, "half_pixel")
            assert places is not None
            taps, weights = taps_of(axis, places, shape)
            kept = CompileTimeConstant(weights.astype(x.dtype.numpy))
            x = c.add("resample", x, CompileTimeConstant(taps), kept, axis=2 + d)
        return x

    return translate


def _scale(size: int, resized: int, given: float | None, *, aligned: bool) -> float:
    """Returns how many elements come of one; if corners are *aligned*, how many steps between them, infinite for none."""
    if aligned:
        return (resized - 1) / (size - 1) if min(size, resized) > 1 else math.inf
    return resized / size if given is None else given


translates("_upsample_bilinear2d_aa")(_antialiased("linear"))
translates("_upsample_bicubic2d_aa")(_antialiased("cubic"))
