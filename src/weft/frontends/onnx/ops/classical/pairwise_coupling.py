"""Probabilities of classes from those of each two of them: the second approach of Wu, Lin and Weng (JMLR 5, 2004).

Of each row, p is to minimise p' Q p with the sum 1, where Q[i, i] is the sum of r[j, i]^2 and Q[i, j] is -r[j, i] r[i, j]. An
iteration changes one element of p after another. A row is left alone once it is near enough, so that results are LIBSVM's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.frontends.onnx.call import Call, Operand
from weft.graph.builder import CompileTimeConstant
from weft.graph.builder.builder import Builder
from weft.graph.composites.branches_and_loops import loop
from weft.graph.composites.sequences import element
from weft.support.dtypes import f32, i32, i64

MOST_ITERATIONS: Final = 100
NEAR: Final = 0.005
"""How far Q p may be from p' Q p at the end, times the number of classes."""


def coupled(c: Call, pairs: Operand, classes: int) -> Operand:
    """Returns the probabilities [N, classes], of those [N, pairs] by which the first of each two classes is right."""
    q = c.reshape(_quadratic(c, pairs, classes), (pairs.shape[0], classes, classes))
    first = c.add("full", shape=(pairs.shape[0], classes), value=1 / classes, dtype=f32)

    def step(b: Builder, _: Operand, states: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        (p,) = states
        product = _product(b, q, p)
        energy = _sum(b, b.add("mul", p, product))
        error = b.add("reduce_max", b.add("abs", b.add("sub", product, energy)), axes=(1,), keepdims=True)
        is_far = b.add("logical_not", b.add("less", error, b.scalar(NEAR / classes, f32)))
        go_on = b.add("reduce_max", b.cast(is_far, i32), axes=(0, 1), keepdims=False)
        made = b.add("where", is_far, _swept(b, q, p, product, energy, classes), p)
        return b.add("less", b.scalar(0, i32), go_on), [made], []

    (p,), _ = loop(c, c.scalar(MOST_ITERATIONS, i64), None, [first], step)
    return p


def _quadratic(c: Call, pairs: Operand, classes: int) -> Operand:
    """Returns the matrices Q [N, classes * classes]."""
    cells = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    first, second, apart = (np.zeros((len(cells), classes, classes), np.float32) for _ in range(3))
    for k, (i, j) in enumerate(cells):
        first[k, i, i], second[k, j, j], apart[k, i, j], apart[k, j, i] = 1, 1, -1, -1
    other = c.add("sub", c.scalar(1, f32), pairs)
    parts = [(other, other, first), (pairs, pairs, second), (pairs, other, apart)]
    products = [
        c.add("matmul", c.add("mul", a, b), CompileTimeConstant(m.reshape(len(cells), -1))) for a, b, m in parts
    ]
    return c.add("add", c.add("add", products[0], products[1]), products[2])


def _swept(b: Builder, q: Operand, p: Operand, product: Operand, energy: Operand, classes: int) -> Operand:
    """Returns *p* after one change of each element; *product* is Q p, and *energy* p' Q p."""
    one = b.scalar(1, f32)
    for i in range(classes):
        row = element(b, q, 1, i)
        diagonal, at = (_column(b, x, i) for x in (row, product))
        change = b.add("div", b.add("sub", energy, at), diagonal)
        whole = b.add("add", one, change)
        bent = b.add("add", b.add("mul", change, diagonal), b.add("mul", b.scalar(2, f32), at))
        energy = b.add("div", b.add("div", b.add("add", energy, b.add("mul", change, bent)), whole), whole)
        product = b.add("div", b.add("add", product, b.add("mul", change, row)), whole)
        here = CompileTimeConstant(np.eye(classes, dtype=np.float32)[i : i + 1])
        p = b.add("div", b.add("add", p, b.add("mul", change, here)), whole)
    return p


def _product(b: Builder, q: Operand, p: Operand) -> Operand:
    wide = b.reshape(p, (p.shape[0], 1, p.shape[1]))
    return b.add("reduce_sum", b.add("mul", q, wide), axes=(2,), keepdims=False)


def _sum(b: Builder, x: Operand) -> Operand:
    return b.add("reduce_sum", x, axes=(1,), keepdims=True)


def _column(b: Builder, x: Operand, i: int) -> Operand:
    return b.add("slice", x, starts=(i,), ends=(i + 1,), axes=(1,), steps=(1,))
