"""Categories: numbers of bins, of tokens in a vocabulary, and vectors that say which of them there are."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.registry import translates
from weft.graph import Array
from weft.graph.builder import CompileTimeConstant, Operand
from weft.ir import ONE
from weft.support.dtypes import f32, i32, i64

_MOST_COMPARED: Final = 1 << 12
"""Boundaries of bins up to which each element is compared with all of them."""

SAVE_AGAIN: Final = "save the model again"


@translates("CategoryEncoding")
def category_encoding(c: Call) -> Operand:
    """Vectors of the categories that samples have: which, or how often, times weights."""
    c.refuse("sparse", False)
    return _encoded(
        c, c.tensor(), c.text("output_mode", "multi_hot"), c.integer("num_tokens"), c.named.get("count_weights")
    )


@translates("Discretization")
def discretization(c: Call) -> Operand:
    """The bins in which numbers lie: how many boundaries are not above each."""
    c.refuse("sparse", False)
    found = c.value("bin_boundaries", list)
    if len(found) > _MOST_COMPARED or not all(isinstance(v, int | float) for v in found):
        c.fail(f"its {len(found)} boundaries of bins are not supported", f"use {_MOST_COMPARED} numbers or fewer")
    x, bounds = c.floats(), CompileTimeConstant(np.asarray(found, np.float32))
    below = c.cast(c.add("less_equal", bounds, c.reshape(x, [*x.shape, 1])), i32)
    bins = c.add("reduce_sum", below, axes=(x.rank,), keepdims=False)
    mode = c.text("output_mode", "int")
    return bins if mode == "int" else _encoded(c, bins, mode, len(found) + 1)


@translates("IntegerLookup")
def integer_lookup(c: Call) -> Operand:
    """The numbers of integers in a vocabulary; or (`invert`) the integers of numbers."""
    for name in ("sparse", "pad_to_max_tokens"):
        c.refuse(name, False)
    c.refuse("oov_method", "floormod")
    x, tokens = c.cast(c.tensor(), i64), _vocabulary(c)
    mode, others = c.text("output_mode", "int"), c.integer("num_oov_indices", 1)
    reserved = int(c.has("mask_token") and mode == "int")
    if c.flag("invert"):
        return _inverted(c, x, tokens, reserved + others)
    y = _found(c, x, tokens, reserved, others)
    if mode == "int":
        return y
    depth = others + len(tokens)
    if mode != "tf_idf":
        return c.cast(_encoded(c, y, mode, depth), i64)
    return c.add("mul", _encoded(c, y, "count", depth), CompileTimeConstant(_frequencies(c, depth, others)))


def _vocabulary(c: Call) -> Array:
    """Returns the integers that have numbers of their own, in their order: those of the settings, or those learned from data."""
    given: Any = c.layer.config.get("vocabulary")
    held = c.weights.text("vocabulary.txt") if given is None else None
    special = int(c.integer("num_oov_indices", 1)) + int(c.has("mask_token") and c.text("output_mode", "int") == "int")
    try:
        tokens = [int(v) for v in (held.split() if held is not None else given)]
    except (TypeError, ValueError):
        c.fail("its vocabulary is not among its settings, or is not of integers", SAVE_AGAIN)
    oov = c.integer("oov_token", -1)
    if tokens[:special] and oov in tokens[:special]:  # a learned vocabulary begins with what is no token
        tokens = tokens[special:]
    if not tokens or len(set(tokens)) != len(tokens):
        c.fail("its vocabulary is empty, or has an integer twice", SAVE_AGAIN)
    return np.asarray(tokens, np.int64)


def _found(c: Call, x: Operand, tokens: Array, reserved: int, others: int) -> Operand:
    """Returns the numbers of *x*: those of *tokens* follow *reserved* ones, and *others* for what is not among them."""
    order = np.argsort(tokens)
    place = c.cast(c.add("find_sorted", x, CompileTimeConstant(tokens[order])), i64)
    known = c.add("less", place, c.scalar(len(tokens), i64))
    numbers = np.append(order.astype(np.int64) + reserved + others, -1)
    number = c.add("gather", CompileTimeConstant(numbers), place, axis=0)
    unknown: Operand = c.scalar(reserved, i64)
    if others > 1:
        unknown = c.add("add", c.add("floor_mod", x, c.scalar(others, i64)), unknown)
    y = c.add("where", known, number, unknown if others else c.scalar(-1, i64))
    if not c.has("mask_token"):
        return y
    return c.add("where", c.add("equal", x, c.scalar(c.integer("mask_token"), i64)), c.scalar(0, i64), y)


def _inverted(c: Call, x: Operand, tokens: Array, first: int) -> Operand:
    """Returns the tokens with the numbers *x*, of which *first* is the least."""
    none = c.scalar(c.integer("oov_token", -1), i64)
    place = c.add("sub", x, c.scalar(first, i64))
    last = c.scalar(len(tokens) - 1, i64)
    inside = c.add("logical_and", c.add("less_equal", c.scalar(0, i64), place), c.add("less_equal", place, last))
    within = c.add("maximum", c.add("minimum", place, last), c.scalar(0, i64))
    return c.add("where", inside, c.add("gather", CompileTimeConstant(tokens), within, axis=0), none)


def _frequencies(c: Call, depth: int, others: int) -> Array:
    """Returns the weight of each number: those of the settings, before which the others have their mean, or those learned."""
    held = c.weights.part("idf_weights").variables() if c.layer.config.get("idf_weights") is None else []
    given = np.asarray(c.layer.config.get("idf_weights") or (held[0] if held else []), np.float32)
    made = given if len(given) == depth else np.concatenate([np.full(others, given.mean() if len(given) else 0), given])
    if len(made) != depth:
        c.fail(f"it has {len(given)} idf_weights for {depth} numbers", SAVE_AGAIN)
    return made.astype(np.float32)


def _encoded(c: Call, x: Operand, mode: str, depth: int, weights: Operand | None = None) -> Operand:
    """Returns vectors of *depth* for numbers: each as a vector (`one_hot`), or all of a sample's as one."""
    if mode not in ("one_hot", "multi_hot", "count"):
        c.fail(f"its setting output_mode={mode!r} is not supported", "use one of int, one_hot, multi_hot, count")
    if mode == "one_hot" and x.rank > 1 and x.shape[-1] is ONE:
        x = c.reshape(x, x.shape[:-1])
    hot = c.cast(c.add("equal", c.add("range", start=0, size=depth), c.reshape(c.cast(x, i64), [*x.shape, 1])), f32)
    if mode == "one_hot":
        return hot
    if weights is not None:
        hot = c.add("mul", hot, c.reshape(c.cast(weights, f32), [*weights.shape, 1]))
    return c.add("reduce_max" if mode == "multi_hot" else "reduce_sum", hot, axes=(min(x.rank - 1, 1),), keepdims=False)
