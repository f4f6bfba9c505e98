"""Recurrences to try: formulas of an LSTM, and the same in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft import te
from weft.ir import Expr, ExprLike, apply
from weft.support.dtypes import DType, f32
from weft.te import Tensor

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Lstm:
    """The tensors of an LSTM without biases; gates are in the order input, forget, cell, output."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def lstm(steps: ExprLike, n: int, m: int, dtype: DType = f32) -> Lstm:
    """An LSTM of *n* cells over *steps* steps of *m* numbers; the first step of the states is given."""
    x, wx = te.placeholder((steps, m), dtype, "X"), te.placeholder((4, n, m), dtype, "Wx")
    wh = te.placeholder((4, n, n), dtype, "Wh")
    h0, c0 = te.placeholder((1, n), dtype, "h0"), te.placeholder((1, n), dtype, "c0")
    h, c = te.placeholder((steps, n), dtype, "h"), te.placeholder((steps, n), dtype, "c")
    k, q = te.reduce_axis(m, "k"), te.reduce_axis(n, "q")
    from_x = te.compute((steps, 4, n), lambda t, g, j: te.sum_(x[t, k] * wx[g, j, k], [k]), "from_x")
    from_h = te.compute((steps, 4, n), lambda t, g, j: te.sum_(h[t - 1, q] * wh[g, j, q], [q]), "from_h")

    def gate(fn: str, t: Expr, g: int, j: Expr) -> Expr:
        return apply(fn, from_x[t, g, j] + from_h[t, g, j])

    def cell(t: Expr, j: Expr) -> Expr:
        return gate("sigmoid", t, 1, j) * c[t - 1, j] + gate("sigmoid", t, 0, j) * gate("tanh", t, 2, j)

    new_c = te.compute((steps, n), cell, "new_c")
    new_h = te.compute((steps, n), lambda t, j: gate("sigmoid", t, 3, j) * apply("tanh", new_c[t, j]), "new_h")
    return Lstm((x, wx, wh, h0, c0), te.scan([h0, c0], [new_h, new_c], [h, c]))


def lstm_in_numpy(x: Array, wx: Array, wh: Array, h0: Array, c0: Array) -> tuple[Array, Array]:
    """All steps of both states."""
    h, c = [h0[0]], [c0[0]]
    for row in x[1:]:
        z = wx @ row + wh @ h[-1]
        i, f, o = (1 / (1 + np.exp(-z[g])) for g in (0, 1, 3))
        c.append(f * c[-1] + i * np.tanh(z[2]))
        h.append(o * np.tanh(c[-1]))
    return np.array(h), np.array(c)


def lstm_arrays(steps: int, n: int, m: int, dtype: DType = f32, seed: int = 0) -> Sequence[Array]:
    """Values for the inputs."""
    made = np.random.default_rng(seed)
    shapes = [(steps, m), (4, n, m), (4, n, n), (1, n), (1, n)]
    return [made.standard_normal(s).astype(dtype.numpy) for s in shapes]
