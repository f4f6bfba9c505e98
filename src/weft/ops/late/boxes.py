"""Selection of boxes by their scores (non-maximum suppression)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import INDEX, ONE, ZERO, Expr, ExprLike, Var, as_expr, cast, const, eq, index, maximum, minimum, select
from weft.loop import Buffer, If, Load, Stmt, While, allocated, cell, for_, get, let, put, seq, store
from weft.ops.algorithms.heap_select import heapified, sunk
from weft.ops.algorithms.sort_records import Records, sort_word
from weft.ops.registry import operator
from weft.ops.shapes import check_shape, product
from weft.support.errors import TypeMismatch
from weft.te import Tensor, extern


@operator("nms_selection")
def nms_selection(
    boxes: Tensor,
    scores: Tensor,
    most: Tensor,
    overlap: Tensor,
    threshold: Tensor,
    kinds: Tensor | None = None,
    *,
    room: ExprLike,
    centered: bool = False,
) -> tuple[Tensor, ...]:
    """The boxes that are selected, rows of (image, class, box) in the order of selection within a class, and [their number].

    *boxes* are [images, n, 4], two opposite corners (y, x), or the center (x, y), width and height where *centered*; *scores* are
    [images, classes, n]. In each class, the box of the highest score above *threshold* is selected (the first of equal ones), and
    those go that it overlaps by more than *overlap*, intersection over union; at most *most* are, and at most *room*, for which
    there is room; there are zeros behind them. These three are vectors of one number. Where *kinds* [images, n] are given, a box
    displaces those of its own kind alone.
    """
    if boxes.rank != 3 or scores.rank != 3 or not boxes.dtype.is_float:
        raise TypeMismatch("nms_selection takes boxes [images, n, 4] and scores [images, classes, n] of floats")
    images, classes, n = scores.shape
    check_shape("nms_selection: the tensor of boxes", boxes.shape, (images, n, 4))
    if kinds is not None:
        check_shape("nms_selection: the tensor of kinds", kinds.shape, (images, n))
    kept = as_expr(room, INDEX)

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        return _Selection(ins, outs, n, kept, centered=centered).statement(images, classes)

    rows = (product([images, classes, kept]), index(3))
    ins = [boxes, scores, most, overlap, threshold, *([] if kinds is None else [kinds])]
    return extern([rows, (ONE,)], ins, body, [INDEX, INDEX], "nms_selection")


class _Selection:
    """Writes the statements: the boxes of a class go into a heap, and are taken from it until there are enough, or none is left.

    A box that is taken is compared with those that are selected, of which there are few, not each of these with all boxes.
    """

    def __init__(self, ins: Sequence[Buffer], outs: Sequence[Buffer], n: Expr, room: Expr, *, centered: bool) -> None:
        self.boxes, self.scores, self.most, self.overlap, self.threshold, *kinds = ins
        self.kinds = kinds[0] if kinds else None
        self.rows, self.count = outs
        self.n, self.room, self.centered = n, room, centered
        self.heap = Records.of("heap", n, sort_word(self.score(ZERO, ZERO, ZERO)).dtype)
        self.left = cell("left")  # how many are in the heap
        self.taken = cell("taken")  # how many are selected in the class
        self.against = cell("against")  # with how many of them a box is compared

    def score(self, image: Expr, kind: Expr, i: Expr) -> Expr:
        return Load(self.scores, (image, kind, i))

    def statement(self, images: Expr, classes: Expr) -> Stmt:
        """Returns all of it."""
        image, kind, row, column = (Var(name) for name in ("image", "kind", "row", "column"))
        each = for_(image, images, for_(kind, classes, self.of_class(image, kind)))
        clear = for_(row, self.rows.shape[0], for_(column, 3, store(self.rows, (row, column), ZERO)))
        memory = [*self.heap.memory, self.left, self.taken, self.against]
        return seq(clear, put(self.count, 0), allocated(memory, each))

    def of_class(self, image: Var, kind: Var) -> Stmt:
        """Selects the boxes of a class in an image."""
        enough = minimum(cast(get(self.most), INDEX), self.room)
        start = seq(put(self.taken, 0), put(self.left, 0), self.filled(image, kind))
        more = (get(self.left) > ZERO) & (get(self.taken) < enough)
        heap = let("size", get(self.left), lambda size: heapified(self.heap, size))
        return seq(start, heap, While(more, self.turn(image, kind)))

    def filled(self, image: Var, kind: Var) -> Stmt:
        """Puts the boxes of scores above the threshold into the heap; of equal scores, the first box comes out first."""
        i = Var("i")
        score = self.score(image, kind, i)
        record = self.heap.make(sort_word(score), self.n - 1 - i)
        added = let("at", get(self.left), lambda at: seq(self.heap.put(at, record), put(self.left, at + ONE)))
        return for_(i, self.n, If(cast(get(self.threshold), score.dtype) < score, added, None))

    def turn(self, image: Var, kind: Var) -> Stmt:
        """Takes the best box from the heap, and selects it if no box that is selected overlaps it."""

        def removed(last: Expr) -> Stmt:
            record = self.heap.at(last)
            return seq(put(self.left, last), self.heap.each(record, lambda r: sunk(self.heap, ZERO, last, r)))

        def tried(box: Expr) -> Stmt:
            return seq(
                let("last", get(self.left) - ONE, removed),
                self.compared(image, box),
                If(eq(get(self.against), get(self.taken)), self.select(image, kind, box), None),
            )

        return let("box", self.n - 1 - self.heap.index(self.heap.at(ZERO)), tried)

    def compared(self, image: Var, box: Expr) -> Stmt:
        """Counts the selected boxes before the first that overlaps *box* by more than it may."""

        def step(other: Expr) -> Stmt:
            passed = put(self.against, get(self.against) + ONE)
            stopped = put(self.against, get(self.taken) + ONE)
            return If(self.displaces(image, other, box), stopped, passed)

        row = get(self.count) - get(self.taken) + get(self.against)
        turn = let("other", Load(self.rows, (row, index(2))), step)
        return seq(put(self.against, 0), While(get(self.against) < get(self.taken), turn))

    def select(self, image: Var, kind: Var, box: Expr) -> Stmt:
        """Selects *box*."""

        def written(at: Expr) -> Stmt:
            row = [store(self.rows, (at, index(c)), e) for c, e in enumerate((image, kind, box))]
            return seq(*row, put(self.count, at + ONE), put(self.taken, get(self.taken) + ONE))

        return let("at", get(self.count), written)

    def displaces(self, image: Var, a: Expr, b: Expr) -> Expr:
        """Returns the condition that box *a* displaces *b*: they overlap, and are of one kind."""
        if self.kinds is None:
            return self.overlaps(image, a, b)
        return eq(Load(self.kinds, (image, a)), Load(self.kinds, (image, b))) & self.overlaps(image, a, b)

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
