"""Selection of boxes by their scores (non-maximum suppression)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import (
    INDEX,
    ONE,
    TRUE,
    ZERO,
    Expr,
    ExprLike,
    Var,
    as_expr,
    cast,
    const,
    index,
    maximum,
    minimum,
    select,
)
from weft.loop import Buffer, If, Load, Stmt, While, allocated, cell, for_, get, let, put, seq, store
from weft.ops.registry import operator
from weft.ops.shapes import check_shape, product
from weft.support.dtypes import bool_
from weft.support.errors import TypeMismatch
from weft.te import Tensor, extern


@operator("nms_selection")
def nms_selection(
    boxes: Tensor,
    scores: Tensor,
    most: Tensor,
    overlap: Tensor,
    threshold: Tensor,
    *,
    room: ExprLike,
    centered: bool = False,
) -> tuple[Tensor, ...]:
    """The boxes that are selected, rows of (image, class, box) in the order of selection within a class, and [their number].

    *boxes* are [images, n, 4], two opposite corners (y, x), or the center (x, y), width and height where *centered*; *scores* are
    [images, classes, n]. In each class, the box of the highest score above *threshold* is selected (the first of equal ones), and
    those go that it overlaps by more than *overlap*, intersection over union; at most *most* are, and at most *room*, for which
    there is room; there are zeros behind them. These three are vectors of one number.
    """
    if boxes.rank != 3 or scores.rank != 3 or not boxes.dtype.is_float:
        raise TypeMismatch("nms_selection takes boxes [images, n, 4] and scores [images, classes, n] of floats")
    images, classes, n = scores.shape
    check_shape("nms_selection: the tensor of boxes", boxes.shape, (images, n, 4))
    kept = as_expr(room, INDEX)

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        return _Selection(ins, outs, n, kept, centered).statement(images, classes)

    rows = (product([images, classes, kept]), index(3))
    return extern([rows, (ONE,)], [boxes, scores, most, overlap, threshold], body, [INDEX, INDEX], "nms_selection")


class _Selection:
    """Writes the statements: for each class, the best box that is left is taken, until none is left or there are enough."""

    def __init__(self, ins: Sequence[Buffer], outs: Sequence[Buffer], n: Expr, room: Expr, centered: bool) -> None:
        self.boxes, self.scores, self.most, self.overlap, self.threshold = ins
        self.rows, self.count = outs
        self.n, self.room, self.centered = n, room, centered
        self.left = Buffer("left", (n,), bool_, "local")
        self.best = cell("best")  # the box, or -1
        self.taken = cell("taken")  # how many are selected in the class

    def statement(self, images: Expr, classes: Expr) -> Stmt:
        """Returns all of it."""
        image, kind, row, column = (Var(name) for name in ("image", "kind", "row", "column"))
        each = for_(image, images, for_(kind, classes, self.of_class(image, kind)))
        clear = for_(row, self.rows.shape[0], for_(column, 3, store(self.rows, (row, column), ZERO)))
        return seq(clear, put(self.count, 0), allocated([self.left, self.best, self.taken], each))

    def of_class(self, image: Var, kind: Var) -> Stmt:
        """Selects the boxes of a class in an image."""
        i = Var("i")
        enough = minimum(cast(get(self.most), INDEX), self.room)
        start = for_(i, self.n, store(self.left, (i,), TRUE))
        turn = seq(let("box", get(self.best), lambda box: self.take(image, kind, box)), self.search(image, kind))
        more = (get(self.best) >= ZERO) & (get(self.taken) < enough)
        return seq(start, put(self.taken, 0), self.search(image, kind), While(more, turn))

    def search(self, image: Var, kind: Var) -> Stmt:
        """Finds the best box that is left."""
        i = Var("i")
        score = Load(self.scores, (image, kind, i))

        def compared(so_far: Expr) -> Stmt:
            other = Load(self.scores, (image, kind, maximum(so_far, ZERO)))
            above = Load(self.left, (i,)) & (cast(get(self.threshold), score.dtype) < score)
            return If(above & ((so_far < ZERO) | (other < score)), put(self.best, i), None)

        return seq(put(self.best, -1), for_(i, self.n, let("so_far", get(self.best), compared)))

    def take(self, image: Var, kind: Var, box: Expr) -> Stmt:
        """Selects *box*, and drops those that it overlaps."""
        i = Var("i")

        def written(at: Expr) -> Stmt:
            row = [store(self.rows, (at, index(c)), e) for c, e in enumerate((image, kind, box))]
            return seq(*row, put(self.count, at + ONE))

        drop = If(self.overlaps(image, box, i), store(self.left, (i,), ~TRUE), None)
        counted = put(self.taken, get(self.taken) + ONE)
        selected = let("at", get(self.count), written)
        return seq(selected, counted, store(self.left, (box,), ~TRUE), for_(i, self.n, drop))

    def overlaps(self, image: Var, a: Expr, b: Expr) -> Expr:
        """Returns the condition that two boxes overlap by more than they may."""
        nothing = const(0, self.boxes.dtype)
        (y0, y1), (x0, x1) = self.side(image, a, 0), self.side(image, a, 1)
        (v0, v1), (u0, u1) = self.side(image, b, 0), self.side(image, b, 1)
        inner = maximum(minimum(y1, v1) - maximum(y0, v0), nothing) * maximum(
            minimum(x1, u1) - maximum(x0, u0), nothing
        )
        union = (y1 - y0) * (x1 - x0) + (v1 - v0) * (u1 - u0) - inner
        share = select(union > nothing, inner / union, nothing)
        return cast(get(self.overlap), share.dtype) < share

    def side(self, image: Var, box: Expr, d: int) -> tuple[Expr, Expr]:
        """Returns from where to where a box goes in dimension *d*, y before x."""

        def value(k: int) -> Expr:
            return Load(self.boxes, (image, box, index(k)))

        if self.centered:
            middle, half = value(1 - d), value(3 - d) / const(2, self.boxes.dtype)
            return middle - half, middle + half
        return minimum(value(d), value(d + 2)), maximum(value(d), value(d + 2))
