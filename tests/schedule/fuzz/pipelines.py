"""Random pipelines of stages over small tensors, each stage beside what it is in NumPy.

Values are 32-bit integers, whose sums and products wrap alike in any order, so that results are exact whatever the schedule.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tests.schedule.programs import Array, Case

from weft import te
from weft.ir import INDEX, Const, Expr, all_of, cast, maximum, minimum, select
from weft.support.dtypes import i32
from weft.te import Tensor

Values = dict[str, Array]


@dataclass(frozen=True)
class Value:
    """A tensor, and how to compute it with NumPy from the inputs."""

    tensor: Tensor
    numpy: Callable[[Values], Array]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple([int(s.value) if isinstance(s, Const) else 0 for s in self.tensor.shape])


Stage = Callable[[random.Random, list[Value], str], Value | None]


def pointwise(r: random.Random, known: list[Value], name: str) -> Value | None:
    x, c = r.choice(known), r.randrange(-5, 6)
    which = r.choice(["add", "times", "max", "min", "negative", "square"])
    formulas: dict[str, tuple[Callable[[Expr], Expr], Callable[[Array], Array]]] = {
        "add": (lambda e: e + c, lambda v: v + c),
        "times": (lambda e: e * c, lambda v: v * c),
        "max": (lambda e: maximum(e, c), lambda v: np.maximum(v, c)),
        "min": (lambda e: minimum(e, c), lambda v: np.minimum(v, c)),
        "negative": (lambda e: 3 - e, lambda v: 3 - v),
        "square": (lambda e: e * e, lambda v: v * v),
    }
    formula, numpy = formulas[which]
    return Value(te.compute(x.shape, lambda *i: formula(x.tensor[i]), name, dtype=i32), lambda env: numpy(x.numpy(env)))


def together(r: random.Random, known: list[Value], name: str) -> Value | None:
    x = r.choice(known)
    y = r.choice([v for v in known if v.shape == x.shape])
    if r.random() < 0.5:
        return Value(
            te.compute(x.shape, lambda *i: x.tensor[i] * y.tensor[i] + x.tensor[i], name),
            lambda env: x.numpy(env) * y.numpy(env) + x.numpy(env),
        )
    return Value(
        te.compute(x.shape, lambda *i: maximum(x.tensor[i], y.tensor[i]) - y.tensor[i], name),
        lambda env: np.maximum(x.numpy(env), y.numpy(env)) - y.numpy(env),
    )


def window(r: random.Random, known: list[Value], name: str) -> Value | None:
    """A stencil along one axis, with a step and a stride."""
    x = r.choice(known)
    d = r.randrange(len(x.shape))
    taps, stride, step = r.choice([2, 3]), r.choice([1, 1, 2]), r.choice([1, 1, 2])
    length = (x.shape[d] - (taps - 1) * step - 1) // stride + 1
    if length < 1:
        return None
    shape = (*x.shape[:d], length, *x.shape[d + 1 :])

    def formula(*i: Expr) -> Expr:
        total: Expr | None = None
        for t in range(taps):
            read = x.tensor[(*i[:d], i[d] * stride + t * step, *i[d + 1 :])]
            total = read if total is None else total * 2 + read
        assert total is not None
        return total

    def numpy(env: Values) -> Array:
        v = np.moveaxis(x.numpy(env), d, 0)
        parts = [v[t * step :][: (length - 1) * stride + 1 : stride] for t in range(taps)]
        total = parts[0]
        for p in parts[1:]:
            total = total * 2 + p
        return np.moveaxis(total, 0, d)

    return Value(te.compute(shape, formula, name), numpy)


def convolved(r: random.Random, known: list[Value], name: str) -> Value | None:
    """A windowed reduction along one axis, at a stride."""
    x = r.choice(known)
    d = r.randrange(len(x.shape))
    taps, stride = r.choice([2, 3]), r.choice([1, 1, 2])
    length = (x.shape[d] - taps) // stride + 1
    if length < 1:
        return None
    shape, k = (*x.shape[:d], length, *x.shape[d + 1 :]), te.reduce_axis(taps, "k")
    reducer, numpy = r.choice([(te.sum_, np.add), (te.max_, np.maximum)])

    def numbers(env: Values) -> Array:
        windows = np.lib.stride_tricks.sliding_window_view(x.numpy(env), taps, d)
        picked = np.take(windows, range(0, windows.shape[d], stride), axis=d)
        return np.asarray(numpy.reduce(picked, axis=-1, dtype=np.int32))

    made = te.compute(shape, lambda *i: reducer(x.tensor[(*i[:d], i[d] * stride + k, *i[d + 1 :])], [k]), name)
    return Value(made, numbers)


def padded(r: random.Random, known: list[Value], name: str) -> Value | None:
    x = r.choice(known)
    d, before, after = r.randrange(len(x.shape)), r.choice([0, 1, 2]), r.choice([0, 1, 3])
    fill = r.choice([0, -100])
    shape = (*x.shape[:d], x.shape[d] + before + after, *x.shape[d + 1 :])

    def formula(*i: Expr) -> Expr:
        inside = all_of([i[d] >= before, i[d] < x.shape[d] + before])
        return select(inside, x.tensor[(*i[:d], i[d] - before, *i[d + 1 :])], fill)

    widths = [(before, after) if n == d else (0, 0) for n in range(len(shape))]
    return Value(
        te.compute(shape, formula, name, dtype=i32), lambda env: np.pad(x.numpy(env), widths, constant_values=fill)
    )


def reduced(r: random.Random, known: list[Value], name: str) -> Value | None:
    x = r.choice(known)
    if len(x.shape) < 2:
        return None
    d = r.randrange(len(x.shape))
    k = te.reduce_axis(x.shape[d], "k")
    reducer, numpy = r.choice([(te.sum_, np.add), (te.max_, np.maximum), (te.min_, np.minimum), (te.prod, np.multiply)])
    made = te.compute((*x.shape[:d], *x.shape[d + 1 :]), lambda *i: reducer(x.tensor[(*i[:d], k, *i[d:])], [k]), name)
    return Value(made, lambda env: np.asarray(numpy.reduce(x.numpy(env), axis=d, dtype=np.int32)))


def multiplied(r: random.Random, known: list[Value], name: str) -> Value | None:
    """A matrix product of whatever fits."""
    pairs = [(x, y) for x in known for y in known if len(x.shape) == len(y.shape) == 2 and x.shape[1] == y.shape[0]]
    if not pairs:
        return None
    x, y = r.choice(pairs)
    k = te.reduce_axis(x.shape[1], "k")
    made = te.compute((x.shape[0], y.shape[1]), lambda i, j: te.sum_(x.tensor[i, k] * y.tensor[k, j], [k]), name)
    return Value(made, lambda env: x.numpy(env) @ y.numpy(env))


def transposed(r: random.Random, known: list[Value], name: str) -> Value | None:
    x = r.choice(known)
    order = r.sample(range(len(x.shape)), len(x.shape))
    shape = tuple([x.shape[d] for d in order])
    made = te.compute(shape, lambda *i: x.tensor[tuple([i[order.index(d)] for d in range(len(order))])] + 1, name)
    return Value(made, lambda env: x.numpy(env).transpose(order) + 1)


def reversed_(r: random.Random, known: list[Value], name: str) -> Value | None:
    x = r.choice(known)
    d = r.randrange(len(x.shape))
    made = te.compute(x.shape, lambda *i: x.tensor[(*i[:d], x.shape[d] - 1 - i[d], *i[d + 1 :])] - 1, name)
    return Value(made, lambda env: np.flip(x.numpy(env), d) - 1)


def spread(r: random.Random, known: list[Value], name: str) -> Value | None:
    """Every pair of two vectors."""
    vectors = [v for v in known if len(v.shape) == 1]
    if not vectors:
        return None
    x, y = r.choice(vectors), r.choice(vectors)
    made = te.compute((x.shape[0], y.shape[0]), lambda i, j: x.tensor[i] - y.tensor[j], name)
    return Value(made, lambda env: x.numpy(env)[:, None] - y.numpy(env)[None, :])


def gathered(r: random.Random, known: list[Value], name: str) -> Value | None:
    """Elements of one value at places that another one says."""
    vectors = [v for v in known if len(v.shape) == 1]
    if not vectors:
        return None
    x, at = r.choice(known), r.choice(vectors)
    n = x.shape[0]

    def formula(i: Expr, *rest: Expr) -> Expr:
        return x.tensor[(cast(at.tensor[i] % n, INDEX), *rest)]

    made = te.compute((at.shape[0], *x.shape[1:]), formula, name)
    return Value(made, lambda env: x.numpy(env)[at.numpy(env) % n])


def reshaped(r: random.Random, known: list[Value], name: str) -> Value | None:
    x = r.choice(known)
    if len(x.shape) != 2:
        return None
    n, m = x.shape
    made = te.compute((n * m,), lambda i: x.tensor[i // m, i % m] + 2, name)
    return Value(made, lambda env: x.numpy(env).reshape(-1) + 2)


STAGES: tuple[Stage, ...] = (
    pointwise, pointwise, together, window, window, convolved, padded, reduced, multiplied, transposed, reversed_,
    spread, gathered, reshaped,
)  # fmt: skip


def pipeline(r: random.Random) -> Case:
    """A few random stages; the last and all that nothing else reads are results."""
    shapes: list[tuple[int, ...]] = [(r.randrange(3, 8), r.randrange(2, 7)), (r.randrange(3, 9),)]
    if r.random() < 0.3:
        shapes[0] = (r.randrange(2, 4), r.randrange(3, 6), r.randrange(2, 5))
    inputs = [te.placeholder(s, i32, n) for n, s in zip("XY", shapes, strict=True)]
    known = [Value(t, lambda env, n=t.op.name: env[n]) for t in inputs]  # type: ignore[misc]
    made: list[Value] = []
    wanted = r.choice([2, 3, 3, 4, 5])
    while len(made) < wanted:
        new = r.choice(STAGES)(r, [*known, *made, *made], f"S{len(made)}")
        if new is not None and np.prod(new.shape) <= 150:
            made.append(new)
    read = {t for v in made for t in v.tensor.op.inputs}
    results = [v for v in made if v.tensor not in read]

    def oracle(*arrays: Array) -> list[Array]:
        env = dict(zip("XY", arrays, strict=True))
        return [v.numpy(env).astype(np.int32) for v in results]

    return Case(te.to_program(inputs, [v.tensor for v in results]), oracle, len(inputs), {}, 4)
