"""GroupQueryAttention, which exporters of decoders emit: with the cache, the rotation of heads and the masks in one operator."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.contrib import contrib
from weft.graph import UNFIT
from weft.graph.builder import static_sizes
from weft.graph.composites import attention as heads
from weft.graph.composites import grouped_attention as grouped
from weft.ir import Expr, as_expr, eq
from weft.support.dtypes import i64

_PAST, _LENGTHS, _TOTAL, _COS, _SIN, _PLACES, _BIAS, _SINK, _NORM = 3, 5, 6, 7, 8, 9, 10, 11, 14

_LIMITS: Final = (
    "shared buffers of past and present, quantised caches, query_seqlens, sliding_window_cache, the output output_qk"
)


class _Sizes(NamedTuple):
    """The heads of queries, those of keys and values, and the size of one."""

    queries: int
    keys: int
    size: int


@contrib(
    "GroupQueryAttention",
    inputs=(7, 17),
    attributes={
        **dict.fromkeys(("num_heads", "kv_num_heads", "do_rotary", "rotary_interleaved", "local_window_size"), int),
        **dict.fromkeys(("causal", "smooth_softmax"), int),
        **dict.fromkeys(("scale", "softcap", "qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon"), float),
    },
    needed=["num_heads", "kv_num_heads"],
    only={
        "kv_cache_bit_width": 0,
        "sliding_window_cache": 0,
        "qk_output": 0,
        "k_quant_type": "NONE",
        "v_quant_type": "NONE",
    },
    without={12: "k_scale", 13: "v_scale", 16: "query_seqlens"},
    limits=_LIMITS,
)
def group_query_attention(c: Call) -> Results:
    """Attention of several heads of queries to each head of keys and values; those of the past come first."""
    q, k, v, sizes = _heads(c)
    before = _before(c, q)
    if c.has(_NORM):
        q, k = _normed(c, q, _NORM, "q"), _normed(c, k, _NORM + 1, "k")
    if c.flag("do_rotary", False):
        q, k = (_rotated(c, x, before) for x in (q, k))
    if c.has(_PAST):
        k, v = (_with_past(c, _PAST + i, x, before) for i, x in enumerate((k, v)))
    scale = c.number("scale", 0.0) or 1 / math.sqrt(sizes.size)
    times = sizes.queries // sizes.keys
    scores = heads.scaled_scores(c, q, grouped.repeat_heads(c, k, times), scale)
    weights = grouped.softmax_with_sink(c, _masked(c, scores, before), _sink(c, scores, sizes))
    y = heads.join_heads(c, c.add("matmul", weights, grouped.repeat_heads(c, v, times)))
    return y, k, v


def _heads(c: Call) -> tuple[Operand, Operand, Operand, _Sizes]:
    """Returns queries, keys and values as heads; in one tensor, or in three."""
    x, count, shared = c.ranked(0, 3, "the queries"), c.integer("num_heads", 0), c.integer("kv_num_heads", 0)
    widths = static_sizes(x.shape[2:])
    parts = count if c.has(1) else count + 2 * shared
    if widths is None or min(count, shared) < 1 or count % shared or widths[0] % parts:
        c.fail(f"its {count} heads of queries and {shared} of keys do not divide vectors of {x.shape[2]}", UNFIT)
    sizes = _Sizes(count, shared, widths[0] // parts)
    if c.has(1):
        vectors = [x, c.ranked(1, 3, "the keys"), c.ranked(2, 3, "the values")]
    else:
        cut = (count * sizes.size, shared * sizes.size, shared * sizes.size)
        vectors = list(c.add_many("split", x, axis=2, sizes=cut))
    q, k, v = (heads.split_heads(c, t, n) for t, n in zip(vectors, (count, shared, shared), strict=True))
    return q, k, v, sizes


def _before(c: Call, q: Operand) -> Operand:
    """Returns how many positions of the past each sequence has, [batch, 1], or [1, 1] where they are the same for all.

    The total number of positions must be that of the past and of the queries: a call in which it is another one fails.
    """
    queries, past = q.shape[2], c.ranked(_PAST, 4, "the keys of the past").shape[2] if c.has(_PAST) else as_expr(0)
    total = as_expr(c.late_number(c.input(_TOTAL), "total", "the number of positions"))
    c.require(
        eq(total, past + queries),
        "total_sequence_length is {0}, and the past and the queries have {1} positions: shared buffers are not supported",
        total,
        past + queries,
    )
    if not c.has(_PAST) or static_sizes(q.shape[:1]) == [1]:
        return c.reshape(c.size(past), [1, 1])
    lengths = c.cast(c.input(_LENGTHS), i64)
    own = c.add("sub", lengths, c.size(queries - 1))
    return c.reshape(c.add("maximum", own, c.scalar(0, i64)), [q.shape[0], 1])


def _with_past(c: Call, i: int, now: Operand, before: Operand) -> Operand:
    """Returns heads with those of the past, input *i*, before them."""
    past = c.ranked(i, 4, "the past")
    if static_sizes(now.shape[:1]) == [1]:
        return c.add("concat", past, now, axis=2)
    return grouped.placed_behind(c, past, now, before)


def _normed(c: Call, x: Operand, i: int, name: str) -> Operand:
    """Returns heads over the root of their mean square, times the weights of input *i*."""
    epsilon = c.number(f"{name}_norm_epsilon", c.number("qk_norm_epsilon", 1e-6))
    return c.add("mul", c.add("rms_norm", x, axis=3, epsilon=epsilon), c.input(i))


def _rotated(c: Call, x: Operand, before: Operand) -> Operand:
    """Returns heads, turned by the angles of their positions: those given, or the ones behind the past."""
    places = c.input(_PLACES) if c.has(_PLACES) else c.add("add", before, grouped.counted(c, x.shape[2]))
    cos, sin = (_angles(c, i, places) for i in (_COS, _SIN))
    return heads.rotate(c, x, cos, sin, interleaved=c.flag("rotary_interleaved", False))


def _angles(c: Call, i: int, places: Operand) -> Operand:
    """Returns rows of the table that input *i* is, [batch or 1, 1, positions, half]."""
    found = c.add("gather", c.ranked(i, 2, "the table of angles"), places, axis=0)
    shape: list[Expr | int] = [found.shape[0], 1, *found.shape[1:]]
    return c.reshape(found, shape)


def _masked(c: Call, scores: Operand, before: Operand) -> Operand:
    """Returns the scores, bent, biased, and minus infinity where a query may not see a key."""
    causal, window = c.flag("causal", True), c.integer("local_window_size", -1)
    bent = grouped.soft_capped(c, scores, c.number("softcap", 0.0))
    biased = c.add("add", bent, c.ranked(_BIAS, 4, "the attention bias")) if c.has(_BIAS) else bent
    keeps = grouped.visible_keys(c, before, scores.shape[2], scores.shape[3], causal=causal, window=window)
    return grouped.hidden_scores(c, biased, keeps)


def _sink(c: Call, scores: Operand, sizes: _Sizes) -> Operand | None:
    """Returns the further score of each head, zero where the softmax is to be smooth; None where there is none."""
    if c.has(_SINK):
        return c.cast(c.input(_SINK), scores.dtype)
    if not c.flag("smooth_softmax", False):
        return None
    return c.add("full", shape=(sizes.queries,), value=0, dtype=scores.dtype)
