"""Regions of images sampled on a grid of their own (He et al., "Mask R-CNN", 2017)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import INDEX, ZERO, Expr, Var, apply, cast, const, eq, maximum, minimum, select
from weft.loop import Buffer, Load, Stmt, allocated, cell, for_, get, let, put, seq, store
from weft.ops.index_ranges import IndexRange, Shaped, takes_indices
from weft.ops.registry import operator
from weft.ops.shapes import check_shape
from weft.support.errors import TypeMismatch
from weft.te import Tensor, extern


@operator("roi_align")
def roi_align(
    x: Tensor,
    rois: Tensor,
    images: Tensor,
    *,
    height: int,
    width: int,
    samples: int = 0,
    scale: float = 1.0,
    half_pixel: bool = True,
    largest: bool = False,
) -> Tensor:
    """Each region of *rois* [R, 4] (x0, y0, x1, y1) of the images x [N, C, H, W] as [R, C, height, width].

    An element is the mean of *samples* * *samples* places of its part of the region, or of as many as the part has elements for
    0, interpolated between elements; with *largest*, the largest product of an element and its weight. *images* [R] says which
    image a region is of; coordinates are multiplied by *scale*. A region is at least one element large unless *half_pixel*.
    """
    if x.rank != 4 or not x.dtype.is_float:
        raise TypeMismatch("roi_align takes images [N, C, H, W] of floats")
    check_shape("roi_align: the tensor of regions", rois.shape, (images.shape[0], 4))

    def element(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        sampler = _Sampler(ins[0], ins[1], (i[0], i[2], i[3]), (height, width), samples, scale, half_pixel=half_pixel)
        image = minimum(maximum(cast(Load(ins[2], (i[0],)), INDEX), ZERO), x.shape[0] - 1)
        return let("image", image, lambda n: sampler.statement((n, i[1]), largest, lambda v: store(outs[0], i, v)))

    shape = (images.shape[0], x.shape[1], height, width)
    return extern([shape], [x, rois, images], element, [x.dtype], "roi_align", along=(0, 1, 2, 3))[0]


@takes_indices("roi_align")
def _images(x: Shaped, rois: Shaped, images: Shaped, **_: object) -> IndexRange:
    return IndexRange(2, ((ZERO, x.shape[0] - 1),), "image")


class _Sampler:
    """Writes the statements of one element of the result, *part* (region, row, column) of *parts* rows and columns."""

    def __init__(
        self,
        x: Buffer,
        rois: Buffer,
        part: tuple[Expr, Expr, Expr],
        parts: tuple[int, int],
        samples: int,
        scale: float,
        *,
        half_pixel: bool,
    ) -> None:
        self.x, self.rois, self.part, self.parts = x, rois, part, parts
        self.samples, self.scale, self.half_pixel = samples, scale, half_pixel

    def statement(self, lead: tuple[Expr, Expr], largest: bool, emit: Callable[[Expr], Stmt]) -> Stmt:
        """Returns the loops over the places, and the statement that *emit* makes of their mean or maximum."""
        total = cell("total", self.x.dtype)
        down, across = Var("down"), Var("across")

        def of_grid(tops: tuple[Expr, Expr, Expr], lefts: tuple[Expr, Expr, Expr]) -> Stmt:
            def reduced(value: Expr) -> Expr:
                first = eq(down, 0) & eq(across, 0)
                return select(first, value, maximum(get(total), value)) if largest else get(total) + value

            place = self.placed(tops, down), self.placed(lefts, across)
            step = self.sample(lead, place, largest, lambda v: put(total, reduced(v)))
            loops = for_(down, tops[2], for_(across, lefts[2], step))
            share = get(total) / cast(maximum(tops[2] * lefts[2], 1), self.x.dtype)
            return seq(put(total, const(0, self.x.dtype)), loops, emit(get(total) if largest else share))

        return allocated([total], self.grid(0, lambda tops: self.grid(1, lambda lefts: of_grid(tops, lefts))))

    def grid(self, d: int, body: Callable[[tuple[Expr, Expr, Expr]], Stmt]) -> Stmt:
        """Returns the statement that *body* makes of a part along dimension *d*: its begin, size and number of places."""
        dtype = self.x.dtype
        low, high = (
            cast(Load(self.rois, (self.part[0], const(1 - d + k, INDEX))), dtype) * self.scale
            - (0.5 if self.half_pixel else 0)
            for k in (0, 2)
        )

        def of_size(size: Expr) -> Stmt:
            own = size / self.parts[d]
            count = const(self.samples, INDEX) if self.samples else maximum(cast(apply("ceil", own), INDEX), ZERO)
            begin = low + cast(self.part[1 + d], dtype) * own
            return let(
                "begin", begin, lambda a: let("own", own, lambda s: let("places", count, lambda n: body((a, s, n))))
            )

        return let("size", high - low if self.half_pixel else maximum(high - low, 1), of_size)

    def placed(self, grid: tuple[Expr, Expr, Expr], k: Expr) -> Expr:
        """Returns where place *k* of a grid is."""
        begin, size, count = grid
        return begin + (cast(k, self.x.dtype) + 0.5) * size / cast(count, self.x.dtype)

    def sample(
        self, lead: tuple[Expr, Expr], place: tuple[Expr, Expr], largest: bool, use: Callable[[Expr], Stmt]
    ) -> Stmt:
        """Returns the statement that *use* makes of the value at *place*, zero beyond one element outside of the image."""
        dtype, sizes = self.x.dtype, self.x.shape[2:]

        def of_places(y: Expr, x: Expr) -> Stmt:
            inside = [(p >= -1) & (p <= cast(s, dtype)) for p, s in zip((y, x), sizes, strict=True)]
            axes = [_neighbours(p, s) for p, s in zip((y, x), sizes, strict=True)]
            terms = [Load(self.x, (*lead, i, j)) * (v * w) for i, v in axes[0] for j, w in axes[1]]
            found = terms[0]
            for t in terms[1:]:
                found = maximum(found, t) if largest else found + t
            return use(select(inside[0] & inside[1], found, const(0, dtype)))

        return let("y", place[0], lambda y: let("x", place[1], lambda x: of_places(y, x)))


def _neighbours(place: Expr, size: Expr) -> list[tuple[Expr, Expr]]:
    """Returns the two elements around a place, which is moved inside of the image, and their weights."""
    inside = minimum(maximum(place, 0), cast(size - 1, place.dtype))
    base = apply("floor", inside)
    low, rest = cast(base, INDEX), inside - base
    return [(low, 1 - rest), (minimum(low + 1, size - 1), rest)]
