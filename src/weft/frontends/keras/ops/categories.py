"""Categories: numbers of bins, of tokens in a vocabulary, and vectors that say which of them there are."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.registry import translates
from weft.frontends.keras.vocabularies import chosen, encoded, frequencies, placed, vocabulary
from weft.graph.builder import CompileTimeConstant, Operand
from weft.support.dtypes import i32, i64

_MOST_COMPARED: Final = 1 << 12
"""Boundaries of bins up to which each element is compared with all of them."""


@translates("CategoryEncoding")
def category_encoding(c: Call) -> Operand:
    """Vectors of the categories that samples have: which, or how often, times weights."""
    c.refuse("sparse", False)
    return encoded(
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
    return bins if mode == "int" else encoded(c, bins, mode, len(found) + 1)


@translates("IntegerLookup")
def integer_lookup(c: Call) -> Operand:
    """The numbers of integers in a vocabulary; or (`invert`) the integers of numbers."""
    for name in ("sparse", "pad_to_max_tokens"):
        c.refuse(name, False)
    c.refuse("oov_method", "floormod")
    mode, others, oov = c.text("output_mode", "int"), c.integer("num_oov_indices", 1), c.integer("oov_token", -1)
    reserved = int(c.has("mask_token") and mode == "int")
    x = c.cast(c.tensor(), i64)
    tokens = np.asarray(vocabulary(c, c.weights, int, oov, reserved + others), np.int64)
    if c.flag("invert"):
        return chosen(c, x, tokens, reserved + others, oov)
    unknown: Operand = c.scalar(reserved if others else -1, i64)
    if others > 1:
        unknown = c.add("add", c.add("floor_mod", x, c.scalar(others, i64)), unknown)
    y = placed(c, x, tokens, reserved + others, unknown)
    if c.has("mask_token"):
        is_mask = c.add("equal", x, c.scalar(c.integer("mask_token"), i64))
        y = c.add("where", is_mask, c.scalar(0, i64), y)
    if mode == "int":
        return y
    depth = others + len(tokens)
    if mode != "tf_idf":
        return c.cast(encoded(c, y, mode, depth), i64)
    return c.add("mul", encoded(c, y, "count", depth), CompileTimeConstant(frequencies(c, c.weights, depth, others)))
