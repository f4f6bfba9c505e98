"""Support vector machines: regression, and classification by pairs of classes or by weighted sums of features."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.model_node import DAMAGED
from weft.frontends.onnx.ops.classical import DOMAIN
from weft.frontends.onnx.ops.classical.features import as_floats, vector
from weft.frontends.onnx.ops.classical.pairwise_coupling import coupled
from weft.frontends.onnx.ops.classical.scores import SMALLEST_SCORE, chosen, labels_of, of_two, transformed
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import CompileTimeConstant
from weft.support.dtypes import f32

_KERNELS: Final = ("LINEAR", "POLY", "RBF", "SIGMOID")


def _matrix(c: Call, name: str, rows: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Returns an attribute as a matrix of so many rows."""
    values = vector(c, name, f32).array
    if rows < 1 or values.size % rows:
        c.fail(f"its attribute {name!r} has {values.size} numbers, which are not {rows} rows", DAMAGED)
    return values.reshape(rows, -1)


def _kernel(c: Call, x: Operand, vectors: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Operand:
    """Returns the kernel of each row of *x* [N, features] with each of the *vectors*: [N, vectors]."""
    kind = c.text("kernel_type", "LINEAR")
    gamma, constant, degree = ([float(v) for v in c.attributes.get("kernel_params") or (0.0, 0.0, 3.0)] + [0.0] * 3)[:3]
    if kind not in _KERNELS:
        c.fail(f"its attribute 'kernel_type' is {kind!r}", f"use one of {', '.join(_KERNELS)}")
    dot = c.add("matmul", x, CompileTimeConstant(np.ascontiguousarray(vectors.T)))
    if kind == "LINEAR":
        return dot
    if kind == "RBF":
        rows, columns = c.reshape(x, (x.shape[0], 1, x.shape[1])), CompileTimeConstant(vectors[None])
        apart = c.add("sub", rows, columns)
        distance = c.add("reduce_sum", c.add("mul", apart, apart), axes=(2,), keepdims=False)
        return c.add("exp", c.add("mul", distance, c.scalar(-gamma, f32)))
    moved = c.add("add", c.add("mul", dot, c.scalar(gamma, f32)), c.scalar(constant, f32))
    return c.add("tanh", moved) if kind == "SIGMOID" else c.add("power", moved, c.scalar(degree, f32))


@translates("SVMRegressor", domain=DOMAIN)
def svm_regressor(c: Call) -> Results:
    """The weighted sum of kernels with support vectors, or of features; of one class: its sign, 1 or -1."""
    x = c.cast(as_floats(c, c.ranked(0, 2, "the features")), f32)
    count = c.integer("n_supports", 0)
    given = _kernel(c, x, _matrix(c, "support_vectors", count)) if count else x
    y = c.add("matmul", given, CompileTimeConstant(_matrix(c, "coefficients", 1).T.copy()))
    y = c.add("add", y, CompileTimeConstant(vector(c, "rho", f32).array[:1]))
    if c.flag("one_class", False):
        return c.add("where", c.add("less", c.scalar(0, f32), y), c.scalar(1, f32), c.scalar(-1, f32))
    return transformed(c, y, c.text("post_transform", "NONE"))


@translates("SVMClassifier", domain=DOMAIN, limits="models without support vectors")
def svm_classifier(c: Call) -> Results:
    """The class that wins most of the comparisons of each two of them, and these: the weighted sums of kernels.

    Of two classes the scores are both signs of the one sum. With probabilities (Platt, 1999), those of two classes are exact, to
    which ONNX Runtime comes near by iterating until they are off by less than 0.0025; those of more are `coupled`.
    """
    x = c.cast(as_floats(c, c.ranked(0, 2, "the features")), f32)
    counts, labels = c.ints("vectors_per_class") or [], labels_of(c, "classlabels_ints")
    classes, how = len(counts), c.text("post_transform", "NONE")
    if classes < 2 or len(labels) != classes or min(counts) < 0 or not sum(counts):
        c.fail(f"it has {len(labels)} labels, and support vectors of {classes} classes", UNFIT)
    pairs = _pairs(classes)
    sums = _pair_sums(c, x, counts, pairs)
    won = chosen(c, _votes(c, sums, classes, pairs), labels)
    if c.attributes.get("prob_a"):
        first = _probability(c, sums)
        if classes > 2:
            return won, transformed(c, coupled(c, first, classes), how)
        both = of_two(c, first, c.add("sub", c.scalar(1, f32), first))
        return won, transformed(c, both, how)
    return won, transformed(c, of_two(c, c.add("neg", sums), sums) if classes == 2 else sums, how)


def _pairs(classes: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(classes) for j in range(i + 1, classes)]


def _pair_sums(c: Call, x: Operand, counts: list[int], pairs: list[tuple[int, int]]) -> Operand:
    """Returns the sum for each two classes [N, pairs]: positive where the first of them wins."""
    total = sum(counts)
    coefficients, rho = _matrix(c, "coefficients", len(counts) - 1), vector(c, "rho", f32).array
    if coefficients.shape[1] != total or rho.size != len(pairs):
        c.fail(f"it has {coefficients.size} coefficients and {rho.size} numbers rho for {total} support vectors", UNFIT)
    ends = np.cumsum([0, *counts])
    weights = np.zeros((total, len(pairs)), np.float32)
    for k, (i, j) in enumerate(pairs):
        weights[ends[i] : ends[i + 1], k] = coefficients[j - 1, ends[i] : ends[i + 1]]
        weights[ends[j] : ends[j + 1], k] = coefficients[i, ends[j] : ends[j + 1]]
    kernels = _kernel(c, x, _matrix(c, "support_vectors", total))
    return c.add("add", c.add("matmul", kernels, CompileTimeConstant(weights)), CompileTimeConstant(rho))


def _votes(c: Call, sums: Operand, classes: int, pairs: list[tuple[int, int]]) -> Operand:
    """Returns how many comparisons each class wins [N, classes]."""
    gains = np.zeros((len(pairs), classes), np.float32)
    for k, (i, j) in enumerate(pairs):
        gains[k, i], gains[k, j] = 1, -1
    first = c.cast(c.add("less", c.scalar(0, f32), sums), f32)
    begin = (gains < 0).sum(axis=0).astype(np.float32)
    return c.add("add", c.add("matmul", first, CompileTimeConstant(gains)), CompileTimeConstant(begin))


def _probability(c: Call, sums: Operand) -> Operand:
    """Returns the probabilities of the first of each two classes [N, pairs], kept from 0 and 1 by `SMALLEST_SCORE`."""
    slopes, offsets = (vector(c, name, f32) for name in ("prob_a", "prob_b"))
    exponent = c.add("neg", c.add("add", c.add("mul", sums, slopes), offsets))
    low, high = c.scalar(SMALLEST_SCORE, f32), c.scalar(1 - SMALLEST_SCORE, f32)
    return c.add("minimum", c.add("maximum", c.add("sigmoid", exponent), low), high)
