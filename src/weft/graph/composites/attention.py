"""Attention of queries to keys (Vaswani et al., 2017), its masks, and rotary position embeddings (Su et al., 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
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
    scores = b.add("matmul", b.add("mul", q, b.scalar(scale, q.dtype)), b.transpose(k, [0, 1, 3, 2]))
    biased = reduce(lambda s, bias: b.add("add", s, bias), biases, scores)
    return b.add("matmul", b.add("softmax", biased, axis=-1), v)


def bias_of_mask(b: Builder, keeps: Operand, filtered: float, like: Operand) -> Operand:
    """Returns 0 where *keeps* is true, else *filtered*, in the type of *like*."""
    return b.add("where", keeps, b.scalar(0, like.dtype), b.scalar(filtered, like.dtype))


def causal_mask(b: Builder, queries: ExprLike, keys: ExprLike) -> Operand:
    """Tells which of *keys* each of the *queries*, which are the last of the keys' positions, may see: [queries, keys]."""
    offset = b.reshape(b.vector([keys - queries]), [])
    rows = b.add("add", b.reshape(b.add("range", start=0, size=queries), [queries, 1]), offset)
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
        first, second = (b.reshape(_piece(b, pairs, i, i + 1), [*x.shape[:-1], half]) for i in (0, 1))
    else:
        first, second = _piece(b, turned, 0, half), _piece(b, turned, half, half * 2)
    made = (
        b.add("sub", b.add("mul", first, cos), b.add("mul", second, sin)),
        b.add("add", b.add("mul", first, sin), b.add("mul", second, cos)),
    )
    if interleaved:
        stacked = b.add("concat", *[b.reshape(v, [*v.shape, 1]) for v in made], axis=x.rank)
        whole = [b.reshape(stacked, [*x.shape[:-1], half * 2])]
    else:
        whole = list(made)
    rest = [] if size is turned.shape[-1] else [_piece(b, x, half * 2, size)]
    parts = [*whole, *rest]
    return parts[0] if len(parts) == 1 else b.add("concat", *parts, axis=x.rank - 1)


def _piece(b: Builder, x: Operand, start: ExprLike, end: ExprLike) -> Operand:
    """Returns the elements from *start* to before *end* along the last dimension."""
    return b.add("slice", x, starts=(start,), ends=(end,), axes=(x.rank - 1,), steps=(1,))
