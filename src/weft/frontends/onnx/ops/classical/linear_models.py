"""Linear models: regression and classification."""

from __future__ import annotations

import numpy as np

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.ops.classical import DOMAIN
from weft.frontends.onnx.ops.classical.features import as_floats, vector
from weft.frontends.onnx.ops.classical.scores import chosen, labels_of, of_two, transformed
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import CompileTimeConstant
from weft.support.dtypes import i64


def _scores(c: Call, count: int) -> Operand:
    """Returns the rows of the input times the coefficients of *count* results, and their intercepts."""
    x = as_floats(c, c.ranked(0, 2, "the features"))
    weights = vector(c, "coefficients", x.dtype).array
    if count < 1 or weights.size % count:
        c.fail(f"it has {weights.size} coefficients for {count} results", UNFIT)
    y = c.add("matmul", x, CompileTimeConstant(np.ascontiguousarray(weights.reshape(count, -1).T)))
    return c.add("add", y, vector(c, "intercepts", x.dtype)) if c.attributes.get("intercepts") else y


@translates("LinearRegressor", domain=DOMAIN)
def linear_regressor(c: Call) -> Results:
    """Weighted sums of features, and a constant."""
    y = _scores(c, c.integer("targets", 1))
    return transformed(c, y, c.text("post_transform", "NONE"))


@translates("LinearClassifier", domain=DOMAIN)
def linear_classifier(c: Call) -> Results:
    """The class of the highest weighted sum of features, and the sums."""
    labels, how = labels_of(c, "classlabels_ints"), c.text("post_transform", "NONE")
    count = max(len(c.attributes.get("intercepts", ())), 1)
    y = _scores(c, count)
    if count == 1 and len(labels) == 2:
        y = of_two(c, c.add("neg", y), y)
    scores = transformed(c, y, how)
    if count > 1 or len(labels) == 2:
        return chosen(c, scores, labels or list(range(count))), scores
    least = c.scalar(0.0 if how == "NONE" else 0.5, scores.dtype)
    positive = c.reshape(c.add("less_equal", least, scores), (y.shape[0],))
    return c.add("where", positive, c.scalar(labels[0] if labels else 1, i64), c.scalar(0, i64)), scores
