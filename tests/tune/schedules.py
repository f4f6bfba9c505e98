"""A few programs, each scheduled in several ways, so that plans' nests can be compared with those of real programs."""

from __future__ import annotations

from collections.abc import Iterator

from weft.loop import Program
from weft.schedule import Schedule
from weft.te import compute, placeholder, reduce_axis, sum_, to_program


def matmul(m: int = 64, n: int = 96, k: int = 80) -> Program:
    a, b, r = placeholder((m, k), name="a"), placeholder((k, n), name="b"), reduce_axis(k, "r")
    return to_program([a, b], [compute((m, n), lambda i, j: sum_(a[i, r] * b[r, j], [r]), "c")], "f")


def convolution(size: int = 28, channels: int = 32, kernel: int = 3, stride: int = 2) -> Program:
    x = placeholder((channels, size, size), name="x")
    w = placeholder((channels, channels, kernel, kernel), name="w")
    c, p, q = reduce_axis(channels, "c"), reduce_axis(kernel, "p"), reduce_axis(kernel, "q")
    out = (size - kernel) // stride + 1
    y = compute(
        (channels, out, out),
        lambda o, i, j: sum_(x[c, i * stride + p, j * stride + q] * w[o, c, p, q], [c, p, q]),
        "y",
    )
    return to_program([x, w], [y], "f")


def matmul_schedules() -> Iterator[Program]:
    for rows, columns, depth in [(4, 16, 8), (6, 32, 80), (1, 96, 3), (64, 8, 16), (5, 48, 7)]:
        s = Schedule(matmul())
        (block,) = s.blocks()
        i, j, r = s.loops(block)
        i_outer, i_inner = s.split(i, [None, rows])
        j_outer, j_inner = s.split(j, [None, columns])
        r_outer, r_inner = s.split(r, [None, depth])
        s.reorder([i_outer, j_outer, r_outer, r_inner, i_inner, j_inner])
        s.unroll(i_inner)
        s.vectorize(j_inner)
        yield s.program


def register_schedules() -> Iterator[Program]:
    for rows, columns in [(4, 16), (8, 32), (16, 48), (3, 64)]:
        s = Schedule(matmul())
        (block,) = s.blocks()
        copy = s.cache_write(block, "register")
        i, j = s.loops(copy)
        i_outer, i_inner = s.split(i, [None, rows])
        j_outer, j_inner = s.split(j, [None, columns])
        s.reorder([i_outer, j_outer, i_inner, j_inner])
        s.compute_at(block, j_outer)
        s.set_scope(block, "register")
        _, _, a, b, r = s.loops(block)
        s.reorder([r, a, b])
        s.unroll(a)
        s.vectorize(b)
        yield s.program


def convolution_schedules() -> Iterator[Program]:
    for channels, columns, depth in [(4, 13, 8), (8, 4, 32), (3, 6, 5)]:
        s = Schedule(convolution())
        (block,) = s.blocks()
        o, i, j, c, p, q = s.loops(block)
        o_outer, o_inner = s.split(o, [None, channels])
        j_outer, j_inner = s.split(j, [None, columns])
        c_outer, c_inner = s.split(c, [None, depth])
        s.reorder([o_outer, c_outer, i, j_outer, c_inner, p, q, o_inner, j_inner])
        s.unroll(o_inner)
        s.vectorize(j_inner)
        yield s.program


def fused_schedules() -> Iterator[Program]:
    for part in (4, 16):
        s = Schedule(matmul())
        (block,) = s.blocks()
        i, j, _ = s.loops(block)
        outer, _ = s.split(s.fuse([i, j]), [None, part])
        s.parallel(outer)
        yield s.program


FAMILIES = {
    "matmul": matmul_schedules,
    "registers": register_schedules,
    "convolution": convolution_schedules,
}
