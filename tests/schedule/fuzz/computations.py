"""Families of random computations that schedules are fuzzed on, each with what NumPy makes of it.

computation("conv2d", 17) is always the same one.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
from tests.schedule import programs
from tests.schedule.fuzz.pipelines import pipeline
from tests.schedule.products import product
from tests.schedule.programs import Array, Case, case

from weft import te
from weft.ir import Expr, Var, all_of, apply, cast, const, maximum, minimum, select
from weft.support.dtypes import bf16, f32, i8, i32, i64, u8

Family = Callable[[random.Random], Case]
Values = tuple[Expr, ...]


def _sizes(r: random.Random, *most: int) -> list[int]:
    return [r.randrange(2, n + 1) for n in most]


def matmul(r: random.Random) -> Case:
    n, m, k = _sizes(r, 9, 9, 7)
    return r.choice([programs.matmul, programs.bias_relu])(n, m, k)


def dot_product(r: random.Random) -> Case:
    """Products that tensor instructions compute, of sizes that they mostly divide."""
    n, k = r.randrange(1, 4), r.choice([4, 8, 8, 6])
    m = r.choice([8, 16, 16, 32, 12])
    a, b = r.choice([*[(u8, i8)] * 4, (i8, i8), *[(bf16, bf16)] * 2])
    return product(n, m, k, a, b, swapped=r.random() < 0.3)


def batched(r: random.Random) -> Case:
    """A batch of products, of symbolic size, and a reduction of the result."""
    b, n, m, k = _sizes(r, 3, 4, 5, 4)
    sb = Var("b")
    x, y = te.placeholder((sb, n, k), f32, "X"), te.placeholder((sb, k, m), f32, "Y")
    q, t = te.reduce_axis(k, "q"), te.reduce_axis(m, "t")
    z = te.compute((sb, n, m), lambda g, i, j: te.sum_(x[g, i, q] * y[g, q, j], [q]), "Z")
    s = te.compute((sb, n), lambda g, i: te.max_(z[g, i, t], [t]), "S")
    return case([x, y], [s], lambda v, w: [(v @ w).max(2)], b=b)


def conv2d(r: random.Random) -> Case:
    """Convolution: padded on each side by its own width, strided, dilated, over some channels."""
    c, h, w, o = r.randrange(1, 4), r.randrange(4, 8), r.randrange(3, 8), r.randrange(1, 4)
    (kh, kw), stride, dilation = r.choice([(1, 1), (2, 2), (3, 3), (3, 1)]), r.choice([1, 1, 2]), r.choice([1, 1, 2])
    top, left, bottom, right = [r.choice([0, 1, 2]) for _ in range(4)]
    oh = (h + top + bottom - (kh - 1) * dilation - 1) // stride + 1
    ow = (w + left + right - (kw - 1) * dilation - 1) // stride + 1
    if oh < 1 or ow < 1:
        return conv2d(r)
    x, f = te.placeholder((c, h, w), f32, "X"), te.placeholder((o, c, kh, kw), f32, "F")

    def pad(q: Expr, i: Expr, j: Expr) -> Expr:
        inside = all_of([i >= top, i < h + top, j >= left, j < w + left])
        return select(inside, x[q, i - top, j - left], 0.0)

    p = te.compute((c, h + top + bottom, w + left + right), pad, "P")
    rc, ri, rj = te.reduce_axis(c, "rc"), te.reduce_axis(kh, "ri"), te.reduce_axis(kw, "rj")

    def formula(q: Expr, i: Expr, j: Expr) -> te.Reduction:
        read = p[rc, i * stride + ri * dilation, j * stride + rj * dilation]
        return te.sum_(read * f[q, rc, ri, rj], [rc, ri, rj])

    y = te.compute((o, oh, ow), formula, "Y")
    z = te.compute((o, oh, ow), lambda q, i, j: maximum(y[q, i, j], 1.0), "Z")

    def oracle(a: Array, b: Array) -> list[Array]:
        big = np.pad(a, ((0, 0), (top, bottom), (left, right)))
        out = np.zeros((o, oh, ow), np.float32)
        for i in range(kh):
            for j in range(kw):
                rows = big[:, i * dilation :, j * dilation :]
                part = rows[:, : (oh - 1) * stride + 1 : stride, : (ow - 1) * stride + 1 : stride]
                out += np.einsum("cij,oc->oij", part, b[:, :, i, j])
        return [np.maximum(out, 1)]

    return case([x, f], [z], oracle)


def transposed_conv(r: random.Random) -> Case:
    """A reduction that only some places contribute to: each input is spread over a window of the output."""
    n, taps, stride = r.randrange(2, 6), r.choice([2, 3]), r.choice([1, 2, 3])
    x, f = te.placeholder((n,), f32, "X"), te.placeholder((taps,), f32, "F")
    k = te.reduce_axis(taps, "k")
    length = (n - 1) * stride + taps

    def formula(i: Expr) -> te.Reduction:
        at = i - k
        here = all_of([at >= 0, at < n * stride, at % stride <= 0])
        return te.sum_(select(here, x[at // stride], 0.0) * f[k], [k])

    y = te.compute((length,), formula, "Y")

    def oracle(a: Array, b: Array) -> list[Array]:
        out = np.zeros(length, np.float32)
        for i in range(n):
            out[i * stride : i * stride + taps] += a[i] * b
        return [out]

    return case([x, f], [y], oracle)


def pooled(r: random.Random) -> Case:
    return programs.pool(r.randrange(3, 9), r.randrange(3, 7))


def rows(r: random.Random) -> Case:
    return r.choice([programs.rows, programs.row_sums])(*_sizes(r, 6, 8))


def softmax(r: random.Random) -> Case:
    """The one with the exponential function: results are close, not equal."""
    n, m = _sizes(r, 5, 8)
    x = te.placeholder((n, m), f32, "X")
    k, q = te.reduce_axis(m, "k"), te.reduce_axis(m, "q")
    top = te.compute((n,), lambda i: te.max_(x[i, k], [k]), "top")
    e = te.compute((n, m), lambda i, j: apply("exp", x[i, j] - top[i]), "E")
    total = te.compute((n,), lambda i: te.sum_(e[i, q], [q]), "total")
    out = te.compute((n, m), lambda i, j: e[i, j] / total[i], "out")

    def oracle(a: Array) -> list[Array]:
        v = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
        return [(v / v.sum(1, keepdims=True)).astype(np.float32)]

    made = case([x], [out], oracle)
    return Case(made.program, made.oracle, 1, tolerance=1e-6)


def argmax(r: random.Random) -> Case:
    n, m = _sizes(r, 5, 9)
    if r.random() < 0.5:
        return programs.argmax(n, m)
    x, k = te.placeholder((n, m), i32, "X"), te.reduce_axis(m, "k")
    at, low = te.compute_many((n,), lambda i: te.argmin((k, x[i, k]), [k]), "low")
    return case([x], [at, low], lambda a: [a.argmin(1), a.min(1)])


def own_reducer(r: random.Random) -> Case:
    """Reducers that are no operator: complex products, the two largest values, how many and how much."""
    return r.choice([_complex_product, _two_best, _counted])(*_sizes(r, 4, 7))


def _complex_product(n: int, m: int) -> Case:
    x, y = te.placeholder((n, m), i32, "X"), te.placeholder((n, m), i32, "Y")
    times = te.reducer(
        lambda a, b: (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]), lambda t: (const(1, i32), const(0, i32))
    )
    k = te.reduce_axis(m, "k")
    real, imaginary = te.compute_many((n,), lambda i: times((x[i, k], y[i, k]), [k]), "P")

    def oracle(a: Array, b: Array) -> list[Array]:
        p, q = np.ones(n, np.int32), np.zeros(n, np.int32)
        for j in range(m):
            p, q = p * a[:, j] - q * b[:, j], p * b[:, j] + q * a[:, j]
        return [p, q]

    return case([x, y], [real, imaginary], oracle)


def _two_best(n: int, m: int) -> Case:
    x, k = te.placeholder((n, m), f32, "X"), te.reduce_axis(m, "k")

    def combine(a: Values, b: Values) -> Values:
        above = a[0] > b[0]
        return select(above, a[0], b[0]), maximum(minimum(a[0], b[0]), select(above, a[1], b[1]))

    best = te.reducer(combine, lambda t: tuple([te.lowest(d) for d in t]))
    first, second = te.compute_many((n,), lambda i: best((x[i, k], te.lowest(f32)), [k]), "best")

    def oracle(a: Array) -> list[Array]:
        ranked = np.sort(a, axis=1)
        return [ranked[:, -1], ranked[:, -2]]

    return case([x], [first, second], oracle)


def _counted(n: int, m: int) -> Case:
    """Only some elements are reduced; what comes of them is used afterwards."""
    x, k = te.placeholder((n, m), i32, "X"), te.reduce_axis(m, "k")
    both = te.reducer(lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda t: tuple([const(0, d) for d in t]))
    count, total = te.compute_many((n,), lambda i: both((const(1, i32), x[i, k]), [k], where=x[i, k] > 1), "both")
    y = te.compute((n,), lambda i: total[i] * 10 - count[i], "Y")
    return case([x], [y], lambda a: [(np.where(a > 1, a, 0).sum(1) * 10 - (a > 1).sum(1)).astype(np.int32)])


def stencil(r: random.Random) -> Case:
    if r.random() < 0.5:
        return programs.stencil(r.randrange(4, 14))
    return programs.blur(r.randrange(3, 8), r.randrange(3, 8))


def symbolic_stencil(r: random.Random) -> Case:
    n = r.randrange(3, 12)
    sn = Var("n")
    x = te.placeholder((sn + 2,), f32, "X")
    a = te.compute((sn + 2,), lambda i: x[i] * 3.0, "A")
    b = te.compute((sn,), lambda i: a[i] + a[i + 1] - a[i + 2], "B")
    return case([x], [b], lambda v: [3 * v[:-2] + 3 * v[1:-1] - 3 * v[2:]], n=n)


def scan(r: random.Random) -> Case:
    """Recurrences: a recurrent layer, two states at once, one of symbolic length."""
    if r.random() < 0.4:
        return programs.recurrence(r.randrange(2, 6), r.randrange(2, 5))
    t, n = r.randrange(2, 6), r.randrange(2, 6)
    steps: Expr | int = Var("t") if r.random() < 0.5 else t
    x = te.placeholder((steps, n), i32, "X")
    a, b = te.placeholder((steps, n), i32, "a"), te.placeholder((steps, n), i32, "b")
    first = te.compute((1, n), lambda q, i: x[0, i], "first")
    other = te.compute((1, n), lambda q, i: x[0, i] * 2, "other")
    up = te.compute((steps, n), lambda q, i: b[q - 1, i] + x[q, i], "up")
    down = te.compute((steps, n), lambda q, i: a[q - 1, i] - b[q - 1, i] * 2, "down")
    one, two = te.scan([first, other], [up, down], [a, b])
    out = te.compute((steps, n), lambda q, i: one[q, i] * 3 + two[q, i], "out")

    def oracle(v: Array) -> list[Array]:
        p, q = [v[0]], [v[0] * 2]
        for row in v[1:]:
            p, q = [*p, q[-1] + row], [*q, p[-1] - q[-1] * 2]
        return [np.stack(p) * 3 + np.stack(q)]

    return case([x], [out], oracle, **({} if isinstance(steps, int) else {"t": t}))


def gather(r: random.Random) -> Case:
    if r.random() < 0.4:
        return programs.gather(*_sizes(r, 7, 7))
    n, m, d = _sizes(r, 6, 6, 5)
    x, t = te.placeholder((n, d), f32, "X"), te.placeholder((m,), i64, "T")
    y = te.compute((m, d), lambda i, j: select(t[i] < n, x[minimum(t[i], n - 1), j], -5.0), "Y")
    z = te.compute((m, d), lambda i, j: y[i, j] * 2.0 + y[m - 1 - i, j], "Z")

    def oracle(v: Array, w: Array) -> list[Array]:
        picked = np.where((w < n)[:, None], v[np.minimum(w, n - 1)], np.float32(-5))
        return [picked * 2 + picked[::-1]]

    return case([x, t], [z], oracle, limit=8)


def several_outputs(r: random.Random) -> Case:
    n, m = _sizes(r, 6, 6)
    if r.random() < 0.5:
        return programs.two_outputs(n, m)
    x, k = te.placeholder((n, m), f32, "X"), te.reduce_axis(m, "k")
    low, high = te.compute_many((n, m), lambda i, j: (minimum(x[i, j], 0.0), maximum(x[i, j], 0.0)), "parts")
    total = te.compute((n,), lambda i: te.sum_(low[i, k] + high[i, k], [k]), "total")
    return case([x], [low, high, total], lambda v: [np.minimum(v, 0), np.maximum(v, 0), v.sum(1)])


def reshaped(r: random.Random) -> Case:
    return programs.reshaped(*_sizes(r, 5, 6))


def twice_read(r: random.Random) -> Case:
    return r.choice([programs.symmetric, programs.outer_sum])(r.randrange(2, 7))


def symbolic(r: random.Random) -> Case:
    return r.choice([programs.symbolic_matmul, programs.symbolic_rows])(*_sizes(r, 8, 7))


def bytes_(r: random.Random) -> Case:
    """Narrow integers: products of bytes, summed wide, and stored narrow again."""
    n, m = _sizes(r, 6, 9)
    x, k = te.placeholder((n, m), u8, "X"), te.reduce_axis(m, "k")
    s = te.compute((n,), lambda i: te.sum_(cast(x[i, k], i32) * 50, [k]), "S")
    y = te.compute((n, m), lambda i, j: cast(cast(x[i, j], i32) + s[i] % 7, u8), "Y")
    return case([x], [y], lambda v: [(v + (v.astype(np.int32) * 50).sum(1, keepdims=True) % 7).astype(np.uint8)])


FAMILIES: dict[str, Family] = {
    f.__name__: f
    for f in (
        argmax, batched, bytes_, conv2d, dot_product, gather, matmul, own_reducer, pipeline, pooled, reshaped, rows,
        scan, several_outputs, softmax, stencil, symbolic, symbolic_stencil, transposed_conv, twice_read,
    )
}  # fmt: skip
WEIGHTS: dict[str, int] = {"pipeline": 8, "conv2d": 3, "dot_product": 3, "scan": 2}
"""Families that are drawn more often than once."""


def computation(family: str, seed: int) -> Case:
    """The computation of a family that a number stands for."""
    return FAMILIES[family](random.Random(f"{family} {seed}"))


def random_family(r: random.Random) -> str:
    """The name of a family."""
    return r.choices(list(FAMILIES), [WEIGHTS.get(f, 1) for f in FAMILIES])[0]
