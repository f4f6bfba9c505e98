"""Samples of images at the places of a grid."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, cast
from weft.ops.registry import operator
from weft.ops.sampling.corners import corners, sampled
from weft.ops.shapes import check_shape
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute


@operator("grid_sample")
def grid_sample(
    x: Tensor, grid: Tensor, *, mode: str = "linear", padding: str = "zeros", align_corners: bool = False
) -> Tensor:
    """Samples x [N, C, *S] at grid [N, *O, n], coordinates from -1 to 1 in reverse order of S, giving [N, C, *O].

    *mode* is nearest, linear or cubic; elements outside are zeros, the border's, or those of a reflection, by *padding*.
    """
    n = x.rank - 2
    check_shape("grid_sample: the grid's batch and depth", (grid.shape[0], grid.shape[-1]), (x.shape[0], n))
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise TypeMismatch(f"grid_sample: there is no mode {mode} with padding {padding}")

    def places(i: Sequence[Expr]) -> list[Expr]:
        coordinates = [cast(grid[(*i, n - 1 - d)], x.dtype) for d in range(n)]
        sizes = [cast(s, x.dtype) for s in x.shape[2:]]
        return [_place(g, size, align_corners=align_corners) for g, size in zip(coordinates, sizes, strict=True)]

    shape = grid.shape[:-1]
    made_of = corners(x, shape, places, mode=mode, padding=padding, align_corners=align_corners)

    def sample(*i: Expr) -> Expr:
        return sampled(x, i[:2], made_of, (i[0], *i[2:]), padding)

    return compute((*x.shape[:2], *shape[1:]), sample, "grid_sample", dtype=x.dtype)


def _place(g: Expr, size: Expr, *, align_corners: bool) -> Expr:
    """Returns the place in elements of a coordinate between -1 and 1."""
    return (g + 1) * (size - 1) * 0.5 if align_corners else ((g + 1) * size - 1) * 0.5
