"""The largest elements of the parts of regions (Girshick, "Fast R-CNN", 2015, section 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import INDEX, ZERO, Expr, Var, apply, cast, const, eq, maximum, minimum, select
from weft.loop import Buffer, Load, Stmt, allocated, cell, for_, get, let, put, seq, store
from weft.ops.index_ranges import IndexRange, Shaped, takes_indices
from weft.ops.registry import operator
from weft.ops.shapes import check_shape
from weft.support.errors import TypeMismatch
from weft.te import Tensor, extern, lowest


@operator("roi_max_pool")
def roi_max_pool(x: Tensor, rois: Tensor, images: Tensor, *, height: int, width: int, scale: float = 1.0) -> Tensor:
    """The largest elements of the parts of regions of x [N, C, H, W], *height* x *width* of each, as [R, C, height, width].

    The corners of *rois* [R, 4] (x0, y0, x1, y1), multiplied by *scale* and rounded, are the first and the last elements; parts
    overlap where a region's size is no multiple of their number. A part outside of the image is zero. *images* [R] says which
    image a region is of.
    """
    if x.rank != 4 or not x.dtype.is_float:
        raise TypeMismatch("roi_max_pool takes images [N, C, H, W] of floats")
    check_shape("roi_max_pool: the tensor of regions", rois.shape, (images.shape[0], 4))
    shape = (images.shape[0], x.shape[1], height, width)

    def element(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        r, c, row, column = i
        found = cell("found", x.dtype)
        y, z = Var("y"), Var("x")

        def extent(d: int, part: Expr, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
            first, last = (_rounded(cast(Load(ins[1], (r, const(1 - d + k, INDEX))), x.dtype) * scale) for k in (0, 2))
            return _part(first, last, part, (height, width)[d], x.shape[2 + d], body)

        def largest(image: Expr, top: Expr, rows: Expr, left: Expr, columns: Expr) -> Stmt:
            element = Load(ins[0], (image, c, top + y, left + z))
            loops = for_(y, rows, for_(z, columns, put(found, maximum(get(found), element))))
            empty = eq(rows, 0) | eq(columns, 0)
            result = select(empty, const(0, x.dtype), get(found))
            return allocated([found], seq(put(found, lowest(x.dtype)), loops, store(outs[0], i, result)))

        def of_image(image: Expr) -> Stmt:
            return extent(0, row, lambda a, m: extent(1, column, lambda b, n: largest(image, a, m, b, n)))

        return let("image", minimum(maximum(cast(Load(ins[2], (r,)), INDEX), ZERO), x.shape[0] - 1), of_image)

    return extern([shape], [x, rois, images], element, [x.dtype], "roi_max_pool", along=(0, 1, 2, 3))[0]


@takes_indices("roi_max_pool")
def _images(x: Shaped, rois: Shaped, images: Shaped, **_: object) -> IndexRange:
    return IndexRange(2, ((ZERO, x.shape[0] - 1),), "image")


def _part(first: Expr, last: Expr, part: Expr, parts: int, size: Expr, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
    """Returns the statement that *body* makes of the begin and the length of a part of *first* to *last*, within *size*."""
    f = first.dtype

    def of_first(a: Expr) -> Stmt:
        own = maximum(last - a + 1, 1) / parts
        begin, end = apply("floor", cast(part, f) * own) + a, apply("ceil", cast(part + 1, f) * own) + a
        low, high = (cast(minimum(maximum(v, 0), cast(size, f)), INDEX) for v in (begin, end))
        return let("begin", low, lambda b: let("count", high - b, lambda n: body(b, n)))

    return let("first", first, of_first)


def _rounded(v: Expr) -> Expr:
    """Rounds halves away from zero."""
    return select(v < 0, -apply("floor", 0.5 - v), apply("floor", v + 0.5))
