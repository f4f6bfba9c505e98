"""Images, sequences and volumes resized to the nearest elements or by curves between them (`torch.nn.functional.interpolate`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Operand, Results
from weft.graph.composites.resize import resample_axis, scaled_size
from weft.graph.composites.sampling import Filter
from weft.ir import ExprLike, as_expr
from weft.ops import same_size
from weft.support.dtypes import f32

_DIMENSIONS: Final = {
    "1d": ("linear", ("scales",)),
    "2d": ("bilinear", ("scales_h", "scales_w")),
    "3d": ("trilinear", ("scales_d", "scales_h", "scales_w")),
}
"""The name of linear interpolation, and those of the scales of each dimension, by the operators' endings."""


def _wanted(c: Call, x: Operand, scales: tuple[str, ...]) -> list[tuple[ExprLike, float | None]]:
    """Returns the size of each dimension of the result, and its scale where the call has one."""
    given = [None if f is None else float(f) for f in c.value("scale_factors") or map(c.value, scales)]
    if c.value("output_size") is not None:
        return list(zip(c.sizes("output_size"), given, strict=True))
    return [(scaled_size(c, s, f), f) for s, f in zip(x.shape[2:], given, strict=True) if f is not None]


def _resized(how: Filter, scales: tuple[str, ...]) -> Translation:
    """Resamples one dimension after another; integers are rounded after all of them.

    Whatever the scale is, PyTorch's linear ones keep the elements of a dimension that keeps its size; for images, so do those to
    the nearest by rounding down, which also take each element twice where the sizes say so.
    """
    rounds_down = how.nearest == "floor" and how.coordinates != "tf_half_pixel_for_nn"
    kept = (1,) if how.mode == "linear" else (1, 2) if rounds_down and len(scales) == len("HW") else ()

    def translate(c: Call) -> Results:
        x = c.tensor("input" if "input" in c.arguments else "self", rank=2 + len(scales))
        wanted, aligned = _wanted(c, x, scales), bool(c.value("align_corners"))
        computes = how.mode != "nearest" and not x.dtype.is_float
        if computes and how.mode == "cubic":  # PyTorch rounds the weights, and what is between the dimensions
            c.fail(f"bicubic interpolation of {x!r} is not supported", "convert it to float32 in the module")
        y = c.cast(x, f32) if computes else x
        for d, (size, scale) in enumerate(wanted, 2):
            places = replace(how, coordinates="align_corners") if aligned else how
            by_sizes = aligned or any(same_size(as_expr(size), x.shape[d] * n) for n in kept)
            y = resample_axis(c, y, d, size, places, None if by_sizes else scale)
        return c.cast(c.add("round", y), x.dtype) if computes else y

    return translate


for _ending, (_linear, _scales) in _DIMENSIONS.items():
    for _name, _how in (
        ("upsample_nearest", Filter("nearest", "asymmetric_in_single", "floor")),
        ("_upsample_nearest_exact", Filter("nearest", "tf_half_pixel_for_nn", "floor")),
        (f"upsample_{_linear}", Filter("linear", "half_pixel")),
    ):
        translates(f"{_name}{_ending}", f"{_name}{_ending}.vec")(_resized(_how, _scales))

translates("upsample_bicubic2d", "upsample_bicubic2d.vec")(_resized(Filter("cubic"), _DIMENSIONS["2d"][1]))
