"""Attention of queries to keys (Vaswani et al., 2017), its masks, and rotary position embeddings (Su et al., 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
from weft.graph.composites.sequences import concat, element, stack
from weft.ir import ExprLike
from weft.support.dtypes import i64


def split_heads(b: Builder, x: Operand, heads: int) -> Operand:
    """Returns vectors [batch, positions, heads * size] as [batch, heads, positions, size]."""
    return b.transpose(b.reshape(x, [*x.shape[:2], heads, total(x.shape[2:]) // heads]), [0, 2, 1, 3])


def join_heads(b: Builder, x: Operand) -> Operand:
    """Returns vectors [batch, heads, positions, size] as [batch, positions, heads * size]."""
    batch, heads, positions, size = x.shape
    return b.reshape(b.transpose(x, [0, 2, 1, 3]), [batch, positions, total([heads, size])])


def attend(b: Builder, q: Operand, k: Operand, v: Operand, scale: float, biases: Sequence[Operand]) -> Operand:
    """Returns `softmax(scale * q k' + biases) v`.

    Queries are [batch, heads, positions, size], keys and values the same with other positions; biases broadcast to
    [batch, heads, positions of queries, positions of keys].
    """
    scores = scaled_scores(b, q, k, scale)
    return weighted_values(b, reduce(lambda s, bias: b.add("add", s, bias), biases, scores), v)


def scaled_scores(b: Builder, q: Operand, k: Operand, scale: float) -> Operand:
    """Returns `scale * q k'` [..., positions of queries, positions of keys]."""
    order = [*range(k.rank - 2), k.rank - 1, k.rank - 2]
    return b.add("matmul", b.add("mul", q, b.scalar(scale, q.dtype)), b.transpose(k, order))


def weighted_values(b: Builder, scores: Operand, v: Operand) -> Operand:
    """Returns `softmax(scores) v`."""
    return b.add("matmul", b.add("softmax", scores, axis=scores.rank - 1), v)


def bias_of_mask(b: Builder, keeps: Operand, filtered: float, like: Operand) -> Operand:
    """Returns 0 where *keeps* is true, else *filtered*, in the type of *like*."""
    return b.add("where", keeps, b.scalar(0, like.dtype), b.scalar(filtered, like.dtype))


def causal_mask(b: Builder, queries: ExprLike, keys: ExprLike) -> Operand:
    """Tells which of *keys* each of the *queries*, which are the last of the keys' positions, may see: [queries, keys]."""
    rows = b.add("add", b.reshape(b.add("range", start=0, size=queries), [queries, 1]), b.size(keys - queries))
    return b.add("less_equal", b.add("range", start=0, size=keys), rows)


def positions_below(b: Builder, ends: Operand, count: ExprLike) -> Operand:
    """Tells which of *count* positions are before each of *ends* [batch]: [batch, 1, 1, count]."""
    last = b.reshape(b.cast(ends, i64), [*ends.shape, 1, 1, 1])
    return b.add("less", b.add("range", start=0, size=count), last)


def rotate(b: Builder, x: Operand, cos: Operand, sin: Operand, *, interleaved: bool) -> Operand:
    """Turns pairs of the last dimension's first elements by angles whose *cos* and *sin* broadcast to half of those.

    A pair is two neighbours (*interleaved*), or one of the first half and one of the second. The rest stays.
    """
    size = x.shape[-1]
    half = cos.shape[-1]
    turned = _piece(b, x, 0, half * 2)
    if interleaved:
        pairs = b.reshape(turned, [*x.shape[:-1], half, 2])
        first, second = (element(b, pairs, x.rank, i) for i in (0, 1))
    else:
        first, second = _piece(b, turned, 0, half), _piece(b, turned, half, half * 2)
    made = [
        b.add("sub", b.add("mul", first, cos), b.add("mul", second, sin)),
        b.add("add", b.add("mul", first, sin), b.add("mul", second, cos)),
    ]
    parts = [b.reshape(stack(b, made, x.rank), turned.shape)] if interleaved else made
    rest = [] if size is turned.shape[-1] else [_piece(b, x, half * 2, size)]
    return concat(b, [*parts, *rest], x.rank - 1)


def _piece(b: Builder, x: Operand, start: ExprLike, end: ExprLike) -> Operand:
    """Returns the elements from *start* to before *end* along the last dimension."""
    return b.add("slice", x, starts=(start,), ends=(end,), axes=(x.rank - 1,), steps=(1,))
