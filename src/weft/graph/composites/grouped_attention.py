"""Grouped-query attention (Ainslie et al., "GQA", EMNLP 2023): heads of keys and values that several heads of queries share."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.attention import bias_of_mask
from weft.graph.composites.sequences import concat
from weft.ir import ExprLike
from weft.support.dtypes import i64


def repeat_heads(b: Builder, x: Operand, times: int) -> Operand:
    """Returns each head of *x* [batch, heads, positions, size] so many times, one after another."""
    if times == 1:
        return x
    batch, heads, positions, size = x.shape
    wide = b.add(
        "expand", b.reshape(x, [batch, heads, 1, positions, size]), shape=(batch, heads, times, positions, size)
    )
    return b.reshape(wide, [batch, heads * times, positions, size])


def counted(b: Builder, size: ExprLike) -> Operand:
    """Returns the indices of *size* positions, as a row [1, size]."""
    return b.reshape(b.add("range", start=0, size=size), [1, size])


def placed_behind(b: Builder, past: Operand, now: Operand, before: Operand) -> Operand:
    """Returns heads *now* behind the first *before* [batch, 1] positions of those of the *past*: as many positions as both have.

    Positions behind those of *now* have its last one.
    """
    count, size = past.shape[2] + now.shape[2], now.shape[3]
    place = b.reshape(b.add("sub", counted(b, count), before), [now.shape[0], 1, count, 1])
    last = b.size(now.shape[2] - 1)
    at = b.add("minimum", b.add("maximum", place, b.scalar(0, i64)), last)
    wide = b.add("expand", at, shape=(now.shape[0], now.shape[1], count, size))
    shifted = b.add("gather_elements", now, wide, axis=2)
    return b.add("where", b.add("less", place, b.scalar(0, i64)), concat(b, [past, now], 2), shifted)


def visible_keys(
    b: Builder, before: Operand, queries: ExprLike, keys: ExprLike, *, causal: bool, window: int
) -> Operand:
    """Tells which keys each query may see: [batch or 1, 1, queries, keys].

    Query *s* is at position `before + s` and sees keys up to itself if *causal*, else up to the last query, and of these the
    last *window*, if that is not negative.
    """
    rows = b.add("add", before, counted(b, queries)) if causal else b.add("add", before, b.size(queries - 1))
    at = b.reshape(rows, [rows.shape[0], 1, rows.shape[1], 1])
    places = b.add("range", start=0, size=keys)
    seen = b.add("less_equal", places, at)
    if window < 0:
        return seen
    return b.add("logical_and", seen, b.add("less", b.add("sub", at, b.scalar(window, i64)), places))


def softmax_with_sink(b: Builder, scores: Operand, sink: Operand | None) -> Operand:
    """Returns the softmax of *scores* [batch, heads, queries, keys], with a further score of each head, the *sink* [heads]."""
    if sink is None:
        return b.add("softmax", scores, axis=3)
    batch, heads, queries, keys = scores.shape
    column = b.add("expand", b.reshape(sink, [1, heads, 1, 1]), shape=(batch, heads, queries, 1))
    made = b.add("softmax", concat(b, [scores, column], 3), axis=3)
    return b.add("slice", made, starts=(0,), ends=(keys,), axes=(3,), steps=(1,))


def soft_capped(b: Builder, scores: Operand, cap: float) -> Operand:
    """Returns `cap * tanh(scores / cap)` (Gemma 2, 2024); *scores* where *cap* is zero."""
    if not cap:
        return scores
    bent = b.add("tanh", b.add("mul", scores, b.scalar(1 / cap, scores.dtype)))
    return b.add("mul", bent, b.scalar(cap, scores.dtype))


def hidden_scores(b: Builder, scores: Operand, keeps: Operand) -> Operand:
    """Returns *scores*, minus infinity where *keeps* is false."""
    return b.add("add", scores, bias_of_mask(b, keeps, float("-inf"), scores))
