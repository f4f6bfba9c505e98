"""Images resampled to other sizes."""

from __future__ import annotations

from weft.frontends.coreml.call import Call
from weft.frontends.coreml.registry import translates
from weft.graph.builder import Builder, Operand
from weft.graph.composites.resize import resample_axis, scaled_size
from weft.graph.composites.sampling import Filter
from weft.ir import ExprLike


def resampled(b: Builder, x: Operand, sizes: tuple[ExprLike, ExprLike], how: Filter) -> Operand:
    """Returns images resampled to *sizes* of the last two dimensions."""
    for d, size in zip((x.rank - 2, x.rank - 1), sizes, strict=True):
        x = resample_axis(b, x, d, size, how)
    return x


def _scaled(c: Call, x: Operand) -> tuple[ExprLike, ExprLike]:
    factors = [c.number(f"scale_factor_{d}", 1.0) for d in ("height", "width")]
    made = [scaled_size(c, s, f) for s, f in zip(x.shape[-2:], factors, strict=True)]
    return made[0], made[1]


@translates("upsample_nearest_neighbor")
def upsample_nearest_neighbor(c: Call) -> Operand:
    """Each pixel several times."""
    x = c.operand()
    return resampled(c, x, _scaled(c, x), Filter("nearest", "asymmetric", "floor"))


@translates("resize_nearest_neighbor")
def resize_nearest_neighbor(c: Call) -> Operand:
    """The nearest pixels, for a size that is given."""
    sizes = c.integer("target_size_height"), c.integer("target_size_width")
    return resampled(c, c.operand(), sizes, Filter("nearest", "asymmetric", "floor"))


@translates("upsample_bilinear")
def upsample_bilinear(c: Call) -> Operand:
    """Pixels between four others."""
    x = c.operand()
    aligned = c.flag("align_corners", True)
    centered = c.flag("half_pixel_centers", not aligned)
    if aligned and centered:
        c.fail("align_corners and half_pixel_centers are both set", "convert it with one of them")
    mode = "ALIGN_CORNERS" if aligned else "UNALIGN_CORNERS" if centered else "DEFAULT"
    return resampled(c, x, _scaled(c, x), linear_filter(mode, c))


@translates("resize_bilinear")
def resize_bilinear(c: Call) -> Operand:
    """Pixels between four others, for a size that is given."""
    sizes = c.integer("target_size_height"), c.integer("target_size_width")
    return resampled(c, c.operand(), sizes, linear_filter(c.text("sampling_mode", "DEFAULT"), c))


def linear_filter(mode: str, c: Builder) -> Filter:
    """Returns the filter of a sampling mode; raises `ModelError` for an unknown one."""
    names = {
        "ALIGN_CORNERS": "align_corners_or_middle",
        "STRICT_ALIGN_CORNERS": "align_corners",
        "UNALIGN_CORNERS": "half_pixel",
        "OFFSET_CORNERS": "offset_corners",
        "DEFAULT": "asymmetric",
    }
    if mode not in names:
        c.fail(f"its sampling_mode {mode!r} is not supported", f"use one of {', '.join(names)}")
    return Filter("linear", names[mode], "floor")
