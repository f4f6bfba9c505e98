"""Ensembles of decision trees."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.model_node import DAMAGED
from weft.frontends.onnx.ops.classical import DOMAIN
from weft.frontends.onnx.ops.classical.features import as_floats
from weft.frontends.onnx.ops.classical.forest import Forest, Test, by_node_ids, numbers, rows_of
from weft.frontends.onnx.ops.classical.scores import POST_TRANSFORMS, chosen, labels_of, of_two, transformed
from weft.frontends.onnx.registry import translates
from weft.graph.builder import CompileTimeConstant
from weft.support.dtypes import i64

_MODES: Final = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
_AGGREGATES: Final = ("AVERAGE", "SUM", "MIN", "MAX")
"""Words by the numbers that stand for them since operator set 5, as those of `POST_TRANSFORMS`."""

_REDUCED: Final = {"SUM": "sum", "AVERAGE": "sum", "MIN": "min", "MAX": "max"}


def _aggregated(c: Call, forest: Forest, count: int, how: str) -> Operand:
    """Returns the weights of the leaves that each row reaches, aggregated by target [N, count]."""
    if how not in _REDUCED:
        c.fail(f"its attribute 'aggregate_function' is {how!r}", f"use one of {', '.join(_REDUCED)}")
    x = as_floats(c, c.ranked(0, 2, "the features"))
    y = forest.evaluated(c, x, count, _REDUCED[how])
    return c.add("mul", y, c.scalar(1 / len(forest.roots), y.dtype)) if how == "AVERAGE" else y


def _based(c: Call, y: Operand) -> Operand:
    """Adds the base values, if there are any."""
    base = numbers(c.attributes, "base_values", 0.0, 0)
    return c.add("add", y, CompileTimeConstant(np.asarray(base).astype(y.dtype.numpy))) if base else y


@translates("TreeEnsembleRegressor", domain=DOMAIN)
def tree_ensemble_regressor(c: Call) -> Results:
    """The aggregated weights of the leaves that each row reaches."""
    y = _aggregated(c, by_node_ids(c, "target"), c.integer("n_targets", 1), c.text("aggregate_function", "SUM"))
    return transformed(c, _based(c, y), c.text("post_transform", "NONE"))


@translates("TreeEnsembleClassifier", domain=DOMAIN)
def tree_ensemble_classifier(c: Call) -> Results:
    """The class of the highest sum of weights, and the sums: two of one, where all weights are of one class of two."""
    labels, how = labels_of(c, "classlabels_int64s"), c.text("post_transform", "NONE")
    forest = by_node_ids(c, "class")
    ids = {target for leaf in forest.leaves for target, _ in leaf}
    if len(labels) > 2 or len(ids) > 1:
        scores = _based(c, _aggregated(c, forest, len(labels), "SUM"))
        return chosen(c, scores, labels), transformed(c, scores, how)
    forest.leaves = [[(0, w) for _, w in leaf] for leaf in forest.leaves]
    y = _based_on_last(c, _aggregated(c, forest, 1, "SUM"))
    weights = [w for leaf in forest.leaves for _, w in leaf]
    is_share = min(weights, default=0.0) >= 0  # of trees that vote for the class, not a logarithm of odds
    positive = c.add("less", c.scalar(0.5 if is_share else 0.0, y.dtype), y)
    names = labels if len(labels) == 2 else [0, *labels] if labels else [0, 1]
    label = c.add("where", c.reshape(positive, (y.shape[0],)), c.scalar(names[1], i64), c.scalar(names[0], i64))
    if is_share and how == "NONE":
        return label, of_two(c, c.add("sub", c.scalar(1, y.dtype), y), y)
    return label, transformed(c, of_two(c, c.add("neg", y), y), how)


def _based_on_last(c: Call, y: Operand) -> Operand:
    """Adds the last of the base values: that of the class that the weights are of."""
    base = numbers(c.attributes, "base_values", 0.0, 0)
    return c.add("add", y, c.scalar(base[-1], y.dtype)) if base else y


@translates("TreeEnsemble", domain=DOMAIN)
def tree_ensemble(c: Call) -> Results:
    """The aggregated weights of the leaves that each row reaches."""
    aggregate, how = c.integer("aggregate_function", 1), c.integer("post_transform", 0)
    if not 0 <= aggregate < len(_AGGREGATES) or not 0 <= how < len(POST_TRANSFORMS):
        c.fail(
            f"its aggregate_function is {aggregate} and its post_transform {how}: there are none of these numbers",
            DAMAGED,
        )
    y = _aggregated(c, _by_numbers(c), c.integer("n_targets", 1), _AGGREGATES[aggregate])
    return transformed(c, y, POST_TRANSFORMS[how])


def _by_numbers(c: Call) -> Forest:
    """Returns the trees as operator set 5 has them: inner nodes and leaves are numbered each for themselves, over all trees."""
    a = c.attributes
    modes = [_mode(c, int(m)) for m in numbers(a, "nodes_modes", 0, 0)]
    count = len(modes)
    tracks = numbers(a, "nodes_missing_value_tracks_true", 0, count)
    members = iter(numbers(a, "membership_values", 0.0, 0))
    leaves = [[entry] for entry in rows_of(c, a.get("leaf_targetids", ()), numbers(a, "leaf_weights", 0.0, 0))]
    forest, extra = Forest(leaves=leaves), list[Test]()
    names = ("featureids", "truenodeids", "trueleafs", "falsenodeids", "falseleafs")
    columns = modes, numbers(a, "nodes_splits", 0.0, 0), tracks, *[a.get(f"nodes_{k}", ()) for k in names]
    for mode, split, nan, feature, yes, yes_leaf, no, no_leaf in rows_of(c, *columns):
        passed, failed = -1 - yes if yes_leaf else yes, -1 - no if no_leaf else no
        if mode != "MEMBER":
            forest.tests.append(Test(feature, mode, split, bool(nan) or mode == "NEQ", passed, failed))
            continue
        chain = list(_until_nan(members)) or [math.nan]  # without members, the test always fails
        for k, value in enumerate(chain):  # one test of equality after the other
            after = failed if k + 1 == len(chain) else count + len(extra) + min(k, 1)
            (extra if k else forest.tests).append(Test(feature, "EQ", value, bool(nan), passed, after))
    forest.tests += extra
    forest.roots = [_root(c, forest, r) for r in a.get("tree_roots", ())]
    return forest


def _mode(c: Call, number: int) -> str:
    """Returns the test that a node makes, by its number."""
    if not 0 <= number < len(_MODES):
        c.fail(f"a node has the mode {number}", DAMAGED)
    return _MODES[number]


def _until_nan(values: Iterator[float]) -> Iterator[float]:
    """Yields the members of one set: NaN ends it."""
    for v in values:
        if v != v:
            return
        yield v


def _root(c: Call, forest: Forest, r: int) -> int:
    """Returns the root of a tree: a node, or a leaf where both ways of the node lead to that leaf."""
    if not 0 <= r < len(forest.tests):
        c.fail(f"a tree begins at node {r}, and there are {len(forest.tests)}", DAMAGED)
    test = forest.tests[r]
    return test.passed if test.passed == test.failed < 0 else r
