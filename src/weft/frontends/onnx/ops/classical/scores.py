"""Scores of classifiers: their final transforms, and the labels that they choose."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.onnx.call import Call, Operand
from weft.graph.builder import CompileTimeConstant
from weft.graph.composites.sequences import stack

SMALLEST_SCORE: Final = 1e-7
"""Scores nearer to zero than this are zero, and stay it, in the softmax that leaves zeros out."""

POST_TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def transformed(c: Call, scores: Operand, how: str) -> Operand:
    """Returns scores [N, classes] after the post-transform *how*."""
    if how == "NONE":
        return scores
    if how == "LOGISTIC":
        return c.add("sigmoid", scores)
    if how == "SOFTMAX":
        return c.add("softmax", scores, axis=1)
    if how == "SOFTMAX_ZERO":
        return _softmax_zero(c, scores)
    if how == "PROBIT":
        return _probit(c, scores)
    return c.fail(f"its post-transform is {how!r}", f"use one of {', '.join(POST_TRANSFORMS)}")


def _softmax_zero(c: Call, scores: Operand) -> Operand:
    """Returns the softmax of the scores that are not zero; zeros stay."""
    dtype = scores.dtype
    counts = c.add("less", c.scalar(SMALLEST_SCORE, dtype), c.add("abs", scores))
    largest = c.add("reduce_max", scores, axes=(1,), keepdims=True)
    powers = c.add("where", counts, c.add("exp", c.add("sub", scores, largest)), c.scalar(0, dtype))
    total = c.add("reduce_sum", powers, axes=(1,), keepdims=True)
    return c.add("where", counts, c.add("div", powers, total), c.scalar(0, dtype))


def _probit(c: Call, scores: Operand) -> Operand:
    """Returns sqrt(2) times the inverse error function of 2 p - 1, by Winitzki's approximation (2008), which ONNX Runtime has."""
    dtype = scores.dtype
    x = c.add("sub", c.add("mul", scores, c.scalar(2, dtype)), c.scalar(1, dtype))
    sign = c.add("where", c.add("less", x, c.scalar(0, dtype)), c.scalar(-1, dtype), c.scalar(1, dtype))
    log = c.add("log", c.add("mul", c.add("sub", c.scalar(1, dtype), x), c.add("add", c.scalar(1, dtype), x)))
    half = c.add("add", c.add("mul", log, c.scalar(0.5, dtype)), c.scalar(2 / (np.pi * 0.147), dtype))
    inner = c.add("sub", c.add("mul", half, half), c.add("mul", log, c.scalar(1 / 0.147, dtype)))
    root = c.add("sqrt", c.add("sub", c.add("sqrt", inner), half))
    return c.add("mul", c.add("mul", root, sign), c.scalar(np.sqrt(2), dtype))


def labels_of(c: Call, name: str) -> list[int]:
    """Returns the labels of the classes, the attribute *name*: integers, which may be the ids of strings."""
    return c.ints(name) or []


def chosen(c: Call, scores: Operand, labels: list[int]) -> Operand:
    """Returns the label of the highest score of each row [N]; the first of equal ones."""
    best = c.add("argmax", scores, axis=1, keepdims=False)
    return c.add("gather", CompileTimeConstant(np.asarray(labels, np.int64)), best, axis=0)


def of_two(c: Call, negative: Operand, positive: Operand) -> Operand:
    """Returns the scores [N, 2] of two classes from those [N, 1] of each."""
    n = positive.shape[0]
    return stack(c, [c.reshape(negative, (n,)), c.reshape(positive, (n,))], 1)
