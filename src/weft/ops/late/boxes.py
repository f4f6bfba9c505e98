"""Selection of boxes by their scores (non-maximum suppression)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import (
    INDEX,
    ONE,
    TRUE,
    ZERO,
    Const,
    Expr,
    ExprLike,
    Var,
    as_expr,
    cast,
    const,
    maximum,
    minimum,
    select,
)
from weft.loop import Alloc, Buffer, If, Let, Load, Stmt, Store, While, for_, seq
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

    rows = (product([images, classes, kept]), Const(3, INDEX))
    return extern([rows, (ONE,)], [boxes, scores, most, overlap, threshold], body, [INDEX, INDEX], "nms_selection")


class _Selection:
    """Writes the statements: for each class, the best box that is left is taken, until none is left or there are enough."""

    def __init__(self, ins: Sequence[Buffer], outs: Sequence[Buffer], n: Expr, room: Expr, centered: bool) -> None:
        self.boxes, self.scores, self.most, self.overlap, self.threshold = ins
        self.rows, self.count = outs
        self.n, self.room, self.centered = n, room, centered
        self.left = Buffer("left", (n,), bool_, "local")
        self.best = Buffer("best", (2,), INDEX, "local")  # the box, or -1; how many are selected in the class

    def statement(self, images: Expr, classes: Expr) -> Stmt:
        """Returns all of it."""
        image, kind = Var("image", INDEX), Var("kind", INDEX)
        each = for_(image, images, for_(kind, classes, self.of_class(image, kind)))
        row, column = Var("row", INDEX), Var("column", INDEX)
        clear = for_(row, self.rows.shape[0], for_(column, 3, Store(self.rows, (row, column), ZERO, None)))
        return seq(clear, Store(self.count, (ZERO,), ZERO, None), Alloc(self.left, Alloc(self.best, each)))

    def of_class(self, image: Var, kind: Var) -> Stmt:
        i = Var("i", INDEX)
        enough = minimum(cast(Load(self.most, (ZERO,)), INDEX), self.room)
        box, taken = Load(self.best, (ZERO,)), Load(self.best, (ONE,))
        start = for_(i, self.n, Store(self.left, (i,), TRUE, None))
        turn = seq(self.take(image, kind), self.search(image, kind))
        more = (box >= ZERO) & (taken < enough)
        return seq(start, Store(self.best, (ONE,), ZERO, None), self.search(image, kind), While(more, turn))

    def search(self, image: Var, kind: Var) -> Stmt:
        """Finds the best box that is left."""
        i, so_far = Var("i", INDEX), Var("so_far", INDEX)
        score = Load(self.scores, (image, kind, i))
        is_first = so_far < ZERO
        other = Load(self.scores, (image, kind, maximum(so_far, ZERO)))
        above = Load(self.left, (i,)) & (cast(Load(self.threshold, (ZERO,)), score.dtype) < score)
        better = If(above & (is_first | (other < score)), Store(self.best, (ZERO,), i, None), None)
        return seq(
            Store(self.best, (ZERO,), Const(-1, INDEX), None),
            for_(i, self.n, Let(so_far, Load(self.best, (ZERO,)), better)),
        )

    def take(self, image: Var, kind: Var) -> Stmt:
        """Selects the best box, and drops those that it overlaps."""
        i, box, at = Var("i", INDEX), Var("box", INDEX), Var("at", INDEX)
        row = [Store(self.rows, (at, Const(c, INDEX)), e, None) for c, e in enumerate((image, kind, box))]
        counted = [
            Store(self.count, (ZERO,), at + ONE, None),
            Store(self.best, (ONE,), Load(self.best, (ONE,)) + ONE, None),
            Store(self.left, (box,), ~TRUE, None),
        ]
        drop = If(self.overlaps(image, box, i), Store(self.left, (i,), ~TRUE, None), None)
        body = seq(*row, *counted, for_(i, self.n, drop))
        return Let(box, Load(self.best, (ZERO,)), Let(at, Load(self.count, (ZERO,)), body))

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
        return cast(Load(self.overlap, (ZERO,)), share.dtype) < share

    def side(self, image: Var, box: Expr, d: int) -> tuple[Expr, Expr]:
        """Returns from where to where a box goes in dimension *d*, y before x."""

        def value(k: int) -> Expr:
            return Load(self.boxes, (image, box, Const(k, INDEX)))

        if self.centered:
            middle, half = value(1 - d), value(3 - d) / const(2, self.boxes.dtype)
            return middle - half, middle + half
        return minimum(value(d), value(d + 2)), maximum(value(d), value(d + 2))
