"""The tokens that layers look up, integers or strings, and the numbers that they have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.layer import Layer
from weft.frontends.keras.weights import Weights
from weft.graph import Array
from weft.graph.builder import CompileTimeConstant, Operand
from weft.ir import ONE
from weft.support.dtypes import f32, i64

SAVE_AGAIN: Final = "save the model again"

MOST_NUMBERS: Final = 1 << 24
"""The most numbers that tokens may have, each of which has a weight: a vocabulary has far fewer."""

TEXT_LAYERS: Final = ("StringLookup", "TextVectorization", "Hashing", "HashedCrossing")
"""The layers whose settings have strings that are elements of tensors."""


def strings_of(layers: Sequence[Layer], weights: Weights) -> Iterator[str]:
    """Yields the strings that may be elements of a model's tensors: those of settings, and the lines of vocabularies."""
    own = [layer for layer in layers if layer.kind in TEXT_LAYERS]
    yield from (" ", "[UNK]") if own else ()
    for layer in own:
        yield from _texts(layer.config)
    for text in weights.files() if own else ():
        yield from text.split("\n")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for v in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(v)


def vocabulary(c: Call, weights: Weights, kind: type[int] | type[str], oov: int | str, special: int) -> list[Any]:
    """Returns the tokens that have numbers of their own, in their order: those of the settings, or those learned from data.

    A learned vocabulary begins with *special* tokens, of which one is *oov*, that are none.
    """
    given: Any = c.layer.config.get("vocabulary")
    held = weights.text("vocabulary.txt") if given is None else None
    lines = None if held is None else held.split("\n") if kind is str else held.split()
    try:
        tokens = [kind(v) for v in (lines if lines is not None else given)]
    except (TypeError, ValueError):
        c.fail(f"its vocabulary is not among its settings, or is not of type {kind.__name__}", SAVE_AGAIN)
    if tokens[:special] and oov in tokens[:special]:
        tokens = tokens[special:]
    if not tokens or len(set(tokens)) != len(tokens):
        c.fail("its vocabulary is empty, or has a token twice", SAVE_AGAIN)
    return tokens


def placed(c: Call, x: Operand, tokens: Array, first: int, unknown: Operand) -> Operand:
    """Returns the numbers of *x* among *tokens* (int64), counted from *first*, and *unknown* ones of what is not among them."""
    order = np.argsort(tokens)
    place = c.cast(c.add("find_sorted", x, CompileTimeConstant(tokens[order])), i64)
    known = c.add("less", place, c.scalar(len(tokens), i64))
    numbers = np.append(order.astype(np.int64) + first, -1)
    number = c.add("gather", CompileTimeConstant(numbers), place, axis=0)
    return c.add("where", known, number, unknown)


def chosen(c: Call, x: Operand, tokens: Array, first: int, none: int) -> Operand:
    """Returns the *tokens* (int64) with the numbers *x*, of which *first* is the least, and *none* for other numbers."""
    place = c.add("sub", x, c.scalar(first, i64))
    last = c.scalar(len(tokens) - 1, i64)
    inside = c.add("logical_and", c.add("less_equal", c.scalar(0, i64), place), c.add("less_equal", place, last))
    within = c.add("maximum", c.add("minimum", place, last), c.scalar(0, i64))
    return c.add("where", inside, c.add("gather", CompileTimeConstant(tokens), within, axis=0), c.scalar(none, i64))


def frequencies(c: Call, weights: Weights, depth: int, others: int) -> Array:
    """Returns the weight of each number: those of the settings, before which the others have their mean, or those learned."""
    if depth > MOST_NUMBERS:
        c.fail(f"it counts {depth} numbers of tokens; {MOST_NUMBERS} are the most", SAVE_AGAIN)
    held: Any = weights.named("idf_weights") if c.layer.config.get("idf_weights") is None else None
    given = np.asarray(c.layer.config.get("idf_weights") or ([] if held is None else held), np.float32)
    if len(given) not in (depth, depth - others):
        c.fail(f"it has {len(given)} idf_weights for {depth} numbers", SAVE_AGAIN)
    before = np.full(depth - len(given), given.mean() if len(given) else 0)
    return np.concatenate([before, given]).astype(np.float32)


def encoded(c: Call, x: Operand, mode: str, depth: int, weights: Operand | None = None) -> Operand:
    """Returns vectors of *depth* for numbers: each as a vector (`one_hot`), or all of a sample's as one, times *weights*."""
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
