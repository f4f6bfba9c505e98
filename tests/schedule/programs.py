"""Computations that schedules are tried on, each with what NumPy makes of it, independently of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from weft import te
from weft.ir import (
    Const,
    Expr,
    Var,
    all_of,
    cast,
    const,
    free_vars,
    index,
    maximum,
    minimum,
    select,
    simplify,
    substitute,
)
from weft.loop import Buffer, Program
from weft.support.dtypes import f32, i64
from weft.te import Tensor

Array = npt.NDArray[Any]
Oracle = Callable[..., Sequence[Array]]


@dataclass(frozen=True)
class Case:
    """A computation: its program, the shapes of inputs and outputs at *sizes*, and its *oracle*, inputs to outputs.

    Inputs are small integers, so that float sums are exact in any order; *limit* bounds those that are indices. Only where
    the formulas round by themselves is a relative *tolerance* needed.
    """

    program: Program
    oracle: Oracle
    inputs: int
    sizes: Mapping[str, int] = field(default_factory=dict)
    limit: int = 4
    tolerance: float = 0.0

    def arrays(self, seed: int = 0) -> dict[str, Array | int]:
        """Random inputs by name; outputs are filled with a number that no result leaves there."""
        made = np.random.default_rng(seed)
        values: dict[str, Array | int] = dict(self.sizes)
        for n, p in enumerate(self.program.entry.params):
            if isinstance(p, Buffer):
                shape = [self.size_of(s) for s in p.shape]
                kind = p.dtype.numpy
                low = 0 if p.dtype.is_int else -self.limit
                is_input = n < self.inputs
                values[p.name] = (made.integers(low, self.limit, shape) if is_input else np.full(shape, 77)).astype(
                    kind
                )
        return values

    def size_of(self, s: Expr) -> int:
        known = {v: index(self.sizes[v.name]) for v in free_vars(s)}
        found = simplify(substitute(s, known))
        assert isinstance(found, Const)
        return int(found.value)

    def expected(self, values: Mapping[str, Array | int]) -> list[Array]:
        """What the outputs should be."""
        buffers = [p for p in self.program.entry.params if isinstance(p, Buffer)]
        return list(self.oracle(*[values[p.name] for p in buffers[: self.inputs]]))

    def check(self, found: Array, wanted: Array, message: str) -> None:
        """Fails unless *found* is what was *wanted*: exactly, or as near as the tolerance says."""
        if self.tolerance and wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=self.tolerance, err_msg=message)
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=message)

    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return [p.name for p in self.program.entry.params if isinstance(p, Buffer)][self.inputs :]


@dataclass(frozen=True)
class OfBits(Case):
    """A computation whose inputs of integers are the bits of small numbers."""

    def arrays(self, seed: int = 0) -> dict[str, Array | int]:
        """Random inputs by name, those of integers as bits."""

        def number(v: Array | int) -> Array | int:
            if not isinstance(v, np.ndarray) or v.dtype != np.uint32:
                return v
            return (v.astype(np.float32) - self.limit // 2).view(np.uint32)

        return {name: number(v) for name, v in super().arrays(seed).items()}


def case(inputs: Sequence[Tensor], outputs: Sequence[Tensor], oracle: Oracle, limit: int = 4, **sizes: int) -> Case:
    return Case(te.to_program(inputs, outputs), oracle, len(inputs), sizes, limit)


def matmul(n: int = 5, m: int = 7, k: int = 3) -> Case:
    a, b = te.placeholder((n, k), f32, "A"), te.placeholder((k, m), f32, "B")
    r = te.reduce_axis(k, "k")
    c = te.compute((n, m), lambda i, j: te.sum_(a[i, r] * b[r, j], [r]), "C")
    return case([a, b], [c], lambda x, y: [x @ y])


def bias_relu(n: int = 5, m: int = 7, k: int = 3) -> Case:
    a, b, t = te.placeholder((n, k), f32, "A"), te.placeholder((k, m), f32, "B"), te.placeholder((m,), f32, "T")
    r = te.reduce_axis(k, "k")
    c = te.compute((n, m), lambda i, j: te.sum_(a[i, r] * b[r, j], [r]), "C")
    d = te.compute((n, m), lambda i, j: c[i, j] + t[j], "D")
    e = te.compute((n, m), lambda i, j: maximum(d[i, j], 0.0), "E")
    return case([a, b, t], [e], lambda x, y, z: [np.maximum(x @ y + z, 0)])


def conv2d(c: int = 2, h: int = 5, w: int = 6, o: int = 3, stride: int = 1) -> Case:
    x, f = te.placeholder((c, h, w), f32, "X"), te.placeholder((o, c, 3, 3), f32, "F")

    def padded(k: Expr, i: Expr, j: Expr) -> Expr:
        inside = all_of([i > 0, i < h + 1, j > 0, j < w + 1])
        return select(inside, x[k, i - 1, j - 1], 0.0)

    p = te.compute((c, h + 2, w + 2), padded, "P")
    rc, ri, rj = te.reduce_axis(c, "rc"), te.reduce_axis(3, "ri"), te.reduce_axis(3, "rj")
    oh, ow = (h - 1) // stride + 1, (w - 1) // stride + 1
    y = te.compute(
        (o, oh, ow),
        lambda q, i, j: te.sum_(p[rc, i * stride + ri, j * stride + rj] * f[q, rc, ri, rj], [rc, ri, rj]),
        "Y",
    )
    z = te.compute((o, oh, ow), lambda q, i, j: maximum(y[q, i, j], 0.0), "Z")

    def oracle(a: Array, b: Array) -> list[Array]:
        big = np.pad(a, ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(big, (3, 3), (1, 2))[:, ::stride, ::stride]
        return [np.maximum(np.einsum("cijab,ocab->oij", windows, b), 0)]

    return case([x, f], [z], oracle)


def rows(n: int = 4, m: int = 6) -> Case:
    """The data flow of softmax, in numbers that stay exact."""
    x = te.placeholder((n, m), f32, "X")
    k, q = te.reduce_axis(m, "k"), te.reduce_axis(m, "q")
    most = te.compute((n,), lambda i: te.max_(x[i, k], [k]), "most")
    apart = te.compute((n, m), lambda i, j: x[i, j] - most[i], "apart")
    total = te.compute((n,), lambda i: te.sum_(apart[i, q], [q]), "total")
    out = te.compute((n, m), lambda i, j: apart[i, j] * total[i], "out")

    def oracle(a: Array) -> list[Array]:
        d = a - a.max(1, keepdims=True)
        return [d * d.sum(1, keepdims=True)]

    return case([x], [out], oracle)


def pool(h: int = 7, w: int = 5) -> Case:
    x = te.placeholder((h, w), f32, "X")
    p = te.compute((h + 1, w), lambda i, j: select(i < h, x[i, j], -100.0), "P")
    a, b = te.reduce_axis(2, "a"), te.reduce_axis(3, "b")
    y = te.compute(((h + 1) // 2, w - 2), lambda i, j: te.max_(p[i * 2 + a, j + b], [a, b]), "Y")

    def oracle(v: Array) -> list[Array]:
        big = np.pad(v, ((0, 1), (0, 0)), constant_values=-100)
        return [np.lib.stride_tricks.sliding_window_view(big, (2, 3))[::2].max((2, 3))]

    return case([x], [y], oracle)


def argmax(n: int = 4, m: int = 5) -> Case:
    x = te.placeholder((n, m), f32, "X")
    k = te.reduce_axis(m, "k")
    at, top = te.compute_many((n,), lambda i: te.argmax((k, x[i, k]), [k]), "top")
    out = te.compute((n,), lambda i: cast(at[i], f32) * 10.0 + top[i], "out")
    return case([x], [out], lambda a: [(a.argmax(1) * 10 + a.max(1)).astype(np.float32)])


def stencil(n: int = 9) -> Case:
    x = te.placeholder((n + 4,), f32, "X")
    a = te.compute((n + 4,), lambda i: x[i] * 2.0, "A")
    b = te.compute((n + 2,), lambda i: a[i] + a[i + 1] - a[i + 2], "B")
    c = te.compute((n,), lambda i: b[i] * b[i + 2], "C")

    def oracle(v: Array) -> list[Array]:
        t = 2 * v[:-2] + 2 * v[1:-1] - 2 * v[2:]
        return [t[:-2] * t[2:]]

    return case([x], [c], oracle)


def blur(h: int = 5, w: int = 6) -> Case:
    x = te.placeholder((h + 2, w + 2), f32, "X")
    a = te.compute((h + 2, w), lambda i, j: x[i, j] + x[i, j + 1] + x[i, j + 2], "A")
    b = te.compute((h, w), lambda i, j: a[i, j] + a[i + 1, j] + a[i + 2, j], "B")

    def oracle(v: Array) -> list[Array]:
        t = v[:, :-2] + v[:, 1:-1] + v[:, 2:]
        return [t[:-2] + t[1:-1] + t[2:]]

    return case([x], [b], oracle)


def two_outputs(n: int = 5, m: int = 4) -> Case:
    x = te.placeholder((n, m), f32, "X")
    a = te.compute((n, m), lambda i, j: x[i, j] + 1.0, "A")
    b = te.compute((m, n), lambda i, j: a[j, i] * 2.0, "B")
    c = te.compute((n, m), lambda i, j: a[i, j] - 3.0, "C")
    return case([x], [b, c], lambda v: [(v + 1).T * 2, v - 2])


def reshaped(n: int = 4, m: int = 6) -> Case:
    x = te.placeholder((n, m), f32, "X")
    a = te.compute((n, m), lambda i, j: x[i, j] + 1.0, "A")
    b = te.compute((n * m,), lambda i: a[i // m, i % m] * 2.0, "B")
    c = te.compute((m, n), lambda i, j: b[i * n + j] + 1.0, "C")
    return case([x], [c], lambda v: [((v + 1) * 2).reshape(m, n) + 1])


def symmetric(n: int = 5) -> Case:
    """Reads one buffer twice, the second time transposed."""
    x = te.placeholder((n, n), f32, "X")
    a = te.compute((n, n), lambda i, j: x[i, j] * 2.0, "A")
    b = te.compute((n, n), lambda i, j: a[i, j] - a[j, i], "B")
    return case([x], [b], lambda v: [2 * v - 2 * v.T])


def outer_sum(n: int = 5) -> Case:
    """Two producers that the consumer reads along different axes of one size."""
    x = te.placeholder((n,), f32, "X")
    a = te.compute((n,), lambda i: x[i] * 2.0, "A")
    b = te.compute((n,), lambda i: x[i] + 1.0, "B")
    c = te.compute((n, n), lambda i, j: a[i] - b[j], "C")
    return case([x], [c], lambda v: [(2 * v)[:, None] - (v + 1)[None, :]])


def gather(n: int = 6, m: int = 5) -> Case:
    x, t = te.placeholder((n,), f32, "X"), te.placeholder((m,), i64, "T")
    s = te.compute((m,), lambda i: (t[i] + 1) % n, "S")
    a = te.compute((n,), lambda i: x[i] * 2.0, "A")
    b = te.compute((m,), lambda i: a[s[i]] + 1.0, "B")
    return case([x, t], [b], lambda v, w: [(v * 2)[(w + 1) % n] + 1])


def row_sums(n: int = 4, m: int = 6) -> Case:
    """A reduction of the result of a reduction, and its use beside it."""
    x = te.placeholder((n, m), f32, "X")
    k, q = te.reduce_axis(m, "k"), te.reduce_axis(n, "q")
    a = te.compute((n, m), lambda i, j: x[i, j] * 2.0, "A")
    b = te.compute((n,), lambda i: te.sum_(a[i, k], [k]), "B")
    c = te.compute((m,), lambda j: te.sum_(a[q, j] * b[q], [q]), "C")

    def oracle(v: Array) -> list[Array]:
        return [(2 * v * (2 * v).sum(1, keepdims=True)).sum(0)]

    return case([x], [c], oracle)


def symbolic_matmul(n: int = 5, k: int = 3) -> Case:
    sn = Var("n")
    a, b = te.placeholder((sn, k), f32, "A"), te.placeholder((k, 4), f32, "B")
    r = te.reduce_axis(k, "k")
    c = te.compute((sn, 4), lambda i, j: te.sum_(a[i, r] * b[r, j], [r]), "C")
    d = te.compute((sn, 4), lambda i, j: c[i, j] + 1.0, "D")
    return case([a, b], [d], lambda x, y: [x @ y + 1], n=n)


def symbolic_rows(n: int = 3, m: int = 5) -> Case:
    sn, sm = Var("n"), Var("m")
    x = te.placeholder((sn, sm), f32, "X")
    k = te.reduce_axis(sm, "k")
    a = te.compute((sn, sm), lambda i, j: x[i, j] * 2.0, "A")
    s = te.compute((sn,), lambda i: te.sum_(a[i, k], [k]), "S")
    b = te.compute((sn, sm), lambda i, j: a[i, j] - s[i], "B")
    return case([x], [b], lambda v: [2 * v - (2 * v).sum(1, keepdims=True)], n=n, m=m)


def pieces() -> Case:
    """Rows of one tensor, then of another, then zeros: C[i, j] = A[i, j], B[i - 2, j], 0."""
    a, b = te.placeholder((2, 4), f32, "A"), te.placeholder((1, 4), f32, "B")
    c = te.compute((6, 4), lambda i, j: select(i < 2, a[i, j], select(i < 3, b[i - 2, j], const(0.0, f32))), "C")
    return case([a, b], [c], lambda x, y: [np.concatenate([x, y, np.zeros((3, 4), np.float32)])])


def recurrence(steps: int = 4, n: int = 3) -> Case:
    """A recurrent layer: each step multiplies the state before by a matrix."""
    x, w = te.placeholder((steps, n), f32, "X"), te.placeholder((n, n), f32, "W")
    first = te.compute((1, n), lambda t, i: x[0, i] * 2.0, "first")
    s, k = te.placeholder((steps, n), f32, "S"), te.reduce_axis(n, "k")
    gate = te.compute((steps, n), lambda t, i: te.sum_(s[t - 1, k] * w[k, i], [k]), "G")
    update = te.compute((steps, n), lambda t, i: minimum(maximum(gate[t, i] + x[t, i], -3.0), 3.0), "U")
    (states,) = te.scan([first], [update], [s])
    out = te.compute((steps, n), lambda t, i: states[t, i] + 1.0, "out")

    def oracle(a: Array, b: Array) -> list[Array]:
        made = [a[0] * 2]
        for t in range(1, steps):
            made.append(np.clip(made[-1] @ b + a[t], -3, 3))
        return [np.stack(made) + 1]

    return case([x, w], [out], oracle)


CASES: dict[str, Callable[[], Case]] = {
    f.__name__: f
    for f in (
        matmul,
        bias_relu,
        conv2d,
        rows,
        pool,
        argmax,
        stencil,
        blur,
        two_outputs,
        reshaped,
        symmetric,
        outer_sum,
        gather,
        row_sums,
        recurrence,
        symbolic_matmul,
        symbolic_rows,
    )
}
