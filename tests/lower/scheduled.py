"""Scheduled programs as the rules make them: tiled products, convolutions, reductions and what surrounds them."""

from __future__ import annotations

from collections.abc import Callable

from weft import te
from weft.ir import Expr, apply, as_expr, maximum, select
from weft.loop import Program
from weft.schedule import Schedule
from weft.support.dtypes import f32
from weft.te import to_program


def product(m: int, n: int, k: int, rows: int = 14, columns: int = 32) -> Program:
    """`D = relu(A @ B + bias)` in register tiles of *rows* x *columns*, with tails where these do not divide."""
    a, b = te.placeholder((m, k), f32, "A"), te.placeholder((k, n), f32, "B")
    bias, r = te.placeholder((n,), f32, "bias"), te.reduce_axis(k, "k")
    c = te.compute((m, n), lambda i, j: te.sum_(a[i, r] * b[r, j], [r]), "C")
    d = te.compute((m, n), lambda i, j: maximum(c[i, j] + bias[j], 0.0), "D")
    s = Schedule(to_program([a, b, bias], [d]))
    update, last = s.block("C"), s.block("D")
    i, j = s.loops(last)
    io, ii = s.split(i, [None, rows])
    jo, ji = s.split(j, [None, columns])
    s.reorder([io, jo, ii, ji])
    s.parallel(io)
    s.compute_at(update, jo)
    s.set_scope(update, "register")
    *_, ci, cj, ck = s.loops(update)
    s.reorder([ck, ci, cj])
    start = s.decompose_reduction(update, ck)
    for rows_of, columns_of in ((ci, cj), (ii, ji), s.loops(start)[-2:]):
        s.unroll(rows_of)
        s.vectorize(columns_of)
    return s.program


def convolution(size: int, ci: int, co: int, *, stride: int = 1, columns: int = 7, inline: bool = True) -> Program:
    """A padded 3x3 convolution, NHWC, with the padding computed on the fly or copied, in register tiles of *columns* x 16."""
    h = (size + 2 - 3) // stride + 1
    x, w = te.placeholder((1, size, size, ci), f32, "X"), te.placeholder((3, 3, ci, co), f32, "W")

    def padded(b: Expr, y: Expr, z: Expr, c: Expr) -> Expr:
        inside = (as_expr(1) <= y) & (y < size + 1) & (as_expr(1) <= z) & (z < size + 1)
        return select(inside, x[b, y - 1, z - 1, c], 0.0)

    p = te.compute((1, size + 2, size + 2, ci), padded, "P")
    ry, rx, rc = te.reduce_axis(3, "ry"), te.reduce_axis(3, "rx"), te.reduce_axis(ci, "rc")

    def at(b: Expr, y: Expr, z: Expr, o: Expr) -> te.Reduction:
        return te.sum_(p[b, y * stride + ry, z * stride + rx, rc] * w[ry, rx, rc, o], [ry, rx, rc])

    c = te.compute((1, h, h, co), at, "C")
    d = te.compute((1, h, h, co), lambda b, y, z, o: maximum(c[b, y, z, o], 0.0), "D")
    s = Schedule(to_program([x, w], [d]))
    update, last = s.block("C"), s.block("D")
    if inline:
        s.compute_inline(s.block("P"))
    b, y, z, o = s.loops(last)
    zo, zi = s.split(z, [None, columns])
    oo, oi = s.split(o, [None, 16])
    s.reorder([b, y, oo, zo, zi, oi])
    s.parallel(y)
    s.compute_at(update, zo)
    s.set_scope(update, "register")
    tiles, reduced = s.loops(update)[-5:-3], s.loops(update)[-3:]
    s.reorder([*reduced, *tiles])
    start = s.decompose_reduction(update, reduced[0])
    for columns_of, channels in (tiles, (zi, oi), s.loops(start)[-2:]):
        s.unroll(columns_of)
        s.vectorize(channels)
    if not inline:
        s.compute_at(s.block("P"), y)
    return s.program


def softmax(rows: int, columns: int) -> Program:
    """A softmax over rows: two reductions and two elementwise steps, all at the loop over rows."""
    x = te.placeholder((rows, columns), f32, "X")
    k, l = te.reduce_axis(columns, "k"), te.reduce_axis(columns, "l")  # noqa: E741
    most = te.compute((rows,), lambda i: te.max_(x[i, k], [k]), "most")
    e = te.compute((rows, columns), lambda i, j: apply("exp", x[i, j] - most[i]), "E")
    total = te.compute((rows,), lambda i: te.sum_(e[i, l], [l]), "total")
    y = te.compute((rows, columns), lambda i, j: e[i, j] / total[i], "Y")
    s = Schedule(to_program([x], [y]))
    i, j = s.loops(s.block("Y"))
    s.parallel(i)
    s.vectorize(j)
    for name in ("total", "E", "most"):
        s.compute_at(s.block(name), i)
    s.vectorize(s.loops(s.block("E"))[-1])
    return s.program


def arg_max(rows: int, columns: int) -> Program:
    """The index and the value of the largest element of each row, with no schedule at all."""
    x, k = te.placeholder((rows, columns), f32, "X"), te.reduce_axis(columns, "k")
    where, _ = te.compute_many((rows,), lambda i: te.argmax((k, x[i, k]), [k]), "where")
    return to_program([x], [where])


def concatenation() -> Program:
    """Two tensors side by side along the innermost dimension, vectorized."""
    a, b = te.placeholder((4, 48), f32, "A"), te.placeholder((4, 80), f32, "B")
    c = te.compute((4, 128), lambda i, j: select(j < 48, a[i, j], b[i, j - 48]), "C")
    s = Schedule(to_program([a, b], [c]))
    s.vectorize(s.loops(s.block("C"))[-1])
    return s.program


SCHEDULED: dict[str, Callable[[], Program]] = {
    "product": lambda: product(28, 64, 9),
    "product-tails": lambda: product(30, 90, 7),
    "convolution": lambda: convolution(9, 2, 16, columns=4),
    "convolution-copied": lambda: convolution(9, 2, 16, columns=4, inline=False),
    "convolution-strided": lambda: convolution(11, 2, 16, stride=2, columns=4),
    "softmax": lambda: softmax(6, 40),
    "arg-max": lambda: arg_max(5, 9),
    "concatenation": concatenation,
}
