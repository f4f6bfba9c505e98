"""Features: scaled, encoded, filled in and chosen."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.ops.classical import DOMAIN
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import CompileTimeConstant, total
from weft.graph.composites.selection import first_true
from weft.graph.composites.sequences import concat
from weft.ir import as_expr, eq
from weft.support.dtypes import DType, f32, f64, i64

SMALLEST_NORM: Final = 1e-30
"""The lower bound of a norm, so that rows of zeros stay zeros."""

_NORMS: Final = {"MAX": "reduce_max", "L1": "reduce_l1", "L2": "reduce_l2"}


def as_floats(c: Call, x: Operand) -> Operand:
    """Returns *x* as the floats that these operators compute with: doubles as they are, all else as float32."""
    return x if x.dtype is f64 else c.cast(x, f32)


def vector(c: Call, name: str, dtype: DType) -> CompileTimeConstant:
    """Returns an attribute that is a list of numbers; raises `ModelError` where it is absent."""
    if not c.attributes.get(name):
        c.fail(f"its attribute {name!r} is missing", UNFIT)
    return CompileTimeConstant(np.asarray(c.attributes[name]).astype(dtype.numpy))


@translates("Binarizer", domain=DOMAIN)
def binarizer(c: Call) -> Results:
    """One where an element is above a threshold, else zero."""
    x = c.input(0)
    compared = x if x.dtype.is_float else c.cast(x, f64)  # thresholds of integers need not be any
    return c.cast(c.add("less", c.scalar(c.number("threshold", 0.0), compared.dtype), compared), x.dtype)


@translates("Scaler", domain=DOMAIN)
def scaler(c: Call) -> Results:
    """The features less an offset, times a scale."""
    x = c.cast(c.input(0), f32)
    if "offset" in c.attributes:
        x = c.add("sub", x, vector(c, "offset", f32))
    return c.add("mul", x, vector(c, "scale", f32)) if "scale" in c.attributes else x


@translates("Normalizer", domain=DOMAIN)
def normalizer(c: Call) -> Results:
    """The rows over their norm."""
    norm = c.text("norm", "MAX")
    if norm not in _NORMS:
        c.fail(f"its attribute 'norm' is {norm!r}", f"use one of {', '.join(_NORMS)}")
    x = c.cast(c.input(0), f32)
    axis = x.rank - 1
    size = c.add(_NORMS[norm], c.add("abs", x) if norm == "MAX" else x, axes=(axis,), keepdims=True)
    return c.add("div", x, c.add("maximum", size, c.scalar(SMALLEST_NORM, f32)))


@translates("Imputer", domain=DOMAIN)
def imputer(c: Call) -> Results:
    """The features with one value, or NaN, replaced by others: one for all features, or one each."""
    x = c.input(0)
    kind = "float" if x.dtype.is_float else "int64"
    values = vector(c, f"imputed_value_{kind}s", x.dtype)
    replaced = c.number("replaced_value_float", 0.0) if x.dtype.is_float else c.integer("replaced_value_int64", 0)
    is_nan = isinstance(replaced, float) and math.isnan(replaced)
    missing = c.add("is_nan", x) if is_nan else c.add("equal", x, c.scalar(replaced, x.dtype))
    return c.add("where", missing, values, x)


@translates("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(c: Call) -> Results:
    """The features at indices; those of a vector as a row."""
    x, at = c.input(0), c.input(1)
    if x.rank == 0:
        c.fail(f"it takes features of {x!r}", UNFIT)
    chosen = c.add("gather", x, c.reshape(at, (total(at.shape),)), axis=x.rank - 1)
    return chosen if x.rank > 1 else c.reshape(chosen, (1, *chosen.shape))


@translates("FeatureVectorizer", domain=DOMAIN)
def feature_vectorizer(c: Call) -> Results:
    """Features of several tensors, one after another, in rows of float32."""
    parts = [c.cast(c.input(i), f32) for i in range(len(c.inputs))]
    widths = c.ints("inputdimensions") or []
    rows = [p if p.rank == 2 else c.reshape(p, (1, *p.shape)) for p in parts]
    if len(widths) not in (0, len(rows)):
        c.fail(f"it has {len(rows)} inputs, and its attribute 'inputdimensions' says {widths}", UNFIT)
    cut = [c.add("slice", r, starts=(0,), ends=(w,), axes=(1,), steps=(1,)) for r, w in zip(rows, widths, strict=False)]
    return concat(c, cut or rows, 1)


@translates("OneHotEncoder", domain=DOMAIN)
def one_hot_encoder(c: Call) -> Results:
    """A new last dimension with one at the category of each element, and zeros elsewhere.

    Elements of no category have zeros, or are errors of the call.
    """
    x, categories = c.cast(c.input(0), i64), vector(c, "cats_int64s", i64)
    if c.flag("zeros", True):
        return c.cast(c.add("equal", c.reshape(x, (*x.shape, 1)), categories), f32)
    order = np.argsort(categories.array, kind="stable")
    found = c.add("find_sorted", x, CompileTimeConstant(categories.array[order]))
    last = c.scalar(len(order) - 1, i64)
    _refuse_unknown(c, c.add("less", last, found), len(order))
    place = c.add("gather", CompileTimeConstant(order.astype(np.int64)), c.add("minimum", found, last), axis=0)
    every = CompileTimeConstant(np.arange(len(order)))
    return c.cast(c.add("equal", c.reshape(place, (*x.shape, 1)), every), f32)


def _refuse_unknown(c: Call, unknown: Operand, count: int) -> None:
    """Makes calls fail in which an element is *unknown*, none of *count* categories."""
    place = as_expr(c.late_number(first_true(c, unknown), "unknown", "the place of an element of no category"))
    c.require(
        eq(place, 0),
        f"element {{0}} of {c.node.input[0]}, counted from 1, is none of its {count} categories: give another, or export the "
        "model with an encoder that ignores unknown ones (zeros=1; scikit-learn: handle_unknown='ignore')",
        place,
    )


@translates("LabelEncoder", "CategoryMapper", domain=DOMAIN)
def label_encoder(c: Call) -> Results:
    """Elements replaced by others that a table has for them, or by a default."""
    x = c.input(0)
    keys, values = _side(c, "keys"), _side(c, "values")
    if keys.shape != values.shape or keys.ndim != 1 or not keys.size:
        c.fail(f"it has keys of shape {keys.shape} and values of {values.shape}", UNFIT)
    first: dict[Any, int] = {}
    for k, key in enumerate(keys.tolist()):
        first[math.nan if key != key else key] = k  # of equal keys the last one counts
    order = sorted(first, key=lambda k: (k != k, k))
    table = np.append(values[[first[k] for k in order]], _default(c, values.dtype))
    wanted = CompileTimeConstant(np.asarray(order, keys.dtype).astype(x.dtype.numpy))
    return c.add("gather", CompileTimeConstant(table), c.add("find_sorted", x, wanted), axis=0)


def _side(c: Call, side: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Returns the keys or the values."""
    types = {"floats": np.float32, "int64s": np.int64, "tensor": None}
    found = [(np.asarray(c.attributes[f"{side}_{k}"], t)) for k, t in types.items() if f"{side}_{k}" in c.attributes]
    if len(found) != 1:
        c.fail(f"it has {len(found)} lists of {side}, and should have one", UNFIT)
    return found[0]


def _default(c: Call, dtype: np.dtype[Any]) -> np.ndarray[Any, np.dtype[Any]]:
    """Returns the value for elements that are no keys."""
    if "default_tensor" in c.attributes:
        return np.asarray(c.attributes["default_tensor"]).reshape(-1)[:1].astype(dtype)
    given = c.number("default_float", -0.0) if dtype.kind == "f" else c.integer("default_int64", -1)
    return np.asarray([given], dtype)
