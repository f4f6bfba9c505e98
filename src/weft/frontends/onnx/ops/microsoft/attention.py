"""Attention and rotary position embeddings in ONNX Runtime's own operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.contrib import contrib
from weft.graph import UNFIT
from weft.graph.builder import static_sizes
from weft.graph.composites import attention as composites
from weft.graph.composites.quantized.quantization import integer_matmul
from weft.ir import Expr
from weft.ops import same_size
from weft.support.dtypes import i64

_ATTRIBUTES: Final[dict[str, type]] = {
    **dict.fromkeys(("num_heads", "unidirectional"), int),
    **dict.fromkeys(("mask_filter_value", "scale"), float),
}
_MASKS: Final = "packed masks of 3 * batch + 2 numbers, masks of four dimensions"


class _Heads(NamedTuple):
    """Queries, keys and values, [batch, heads, positions, size] each; keys and values begin with those of the past."""

    q: Operand
    k: Operand
    v: Operand


@contrib(
    "Attention",
    inputs=(2, 7),
    attributes={**_ATTRIBUTES, "qkv_hidden_sizes": list},
    needed=["num_heads"],
    only={"do_rotary": 0, "past_present_share_buffer": 0},
    without={6: "past_sequence_length"},
    limits=f"do_rotary, shared buffers of past and present, {_MASKS}",
)
def attention(c: Call) -> Results:
    """Attention of a sequence to itself, with the projections to queries, keys and values."""
    x, weights = c.ranked(0, 3, "its input"), c.ranked(1, 2, "the weights")
    merged = c.add("matmul", x, weights)
    return _to_itself(c, c.add("add", merged, c.input(2)) if c.has(2) else merged, weights, mask=3, past=4, bias=5)


@contrib(
    "QAttention",
    inputs=(5, 9),
    attributes=_ATTRIBUTES,
    needed=["num_heads"],
    only={"do_rotary": 0, "past_present_share_buffer": 0},
    limits=f"do_rotary, shared buffers of past and present, {_MASKS}",
)
def quantized_attention(c: Call) -> Results:
    """Attention of a sequence to itself, whose projections are products of quantised matrices."""
    x, weights = c.ranked(0, 3, "its input"), c.ranked(1, 2, "the weights")
    sums = integer_matmul(c, x, weights, c.optional(6), c.optional(7))
    scale = c.add("mul", c.input(3), c.input(4))
    merged = c.add("add", c.add("mul", c.cast(sums, scale.dtype), scale), c.input(2))
    return _to_itself(c, merged, weights, mask=5, past=8)


def _to_itself(c: Call, merged: Operand, weights: Operand, *, mask: int, past: int, bias: int | None = None) -> Results:
    """Returns the attention of *merged* queries, keys and values, and keys and values where they are asked for.

    The others are inputs of the node.
    """
    sizes = c.ints("qkv_hidden_sizes") or _thirds(c, weights)
    parts = c.add_many("split", merged, axis=2, sizes=tuple(sizes))
    q, k, v = (composites.split_heads(c, part, _count(c, part)) for part in parts)
    if c.has(past):
        held = c.ranked(past, 5, "the past")
        before = c.add_many("split", held, axis=0, sizes=(1, 1))
        k, v = (_after(c, c.reshape(p, held.shape[1:]), now) for p, now in zip(before, (k, v), strict=True))
    y = _attended(c, _Heads(q, k, v), mask=mask, bias=bias)
    if not c.wants(1):
        return y
    return y, c.add("concat", *[c.reshape(s, [1, *s.shape]) for s in (k, v)], axis=0)


def _thirds(c: Call, weights: Operand) -> list[int]:
    """Returns the sizes of queries, keys and values where the node does not say: equal ones."""
    sizes = static_sizes(weights.shape[1:])
    if sizes is None or sizes[0] % 3:
        c.fail(f"its weights are not those of three projections of one size: {weights!r}", UNFIT)
    return [sizes[0] // 3] * 3


def _count(c: Call, x: Operand) -> int:
    """Returns the number of heads, which must divide the vectors of *x*."""
    heads, sizes = c.integer("num_heads", 1), static_sizes(x.shape[2:])
    if sizes is None or heads < 1 or sizes[0] % heads:
        c.fail(f"its {heads} heads do not divide vectors of {x.shape[2]}", UNFIT)
    return heads


@contrib(
    "MultiHeadAttention",
    inputs=(1, 10),
    attributes=_ATTRIBUTES,
    needed=["num_heads"],
    without={8: "past_sequence_length", 9: "cache_indirection"},
    limits=f"shared buffers of past and present, the output qk, {_MASKS}",
)
def multi_head_attention(c: Call) -> Results:
    """Attention of queries to keys that are projected already: vectors to be split into heads, or (keys and values) heads."""
    given = _given(c)
    vectors = _with_biases(c, given)
    q, k, v = (x if x.rank == 4 else composites.split_heads(c, x, _count(c, x)) for x in vectors)
    if c.has(6) or c.has(7):
        k, v = _after(c, c.input(6), k), _after(c, c.input(7), v)
    return _attended(c, _Heads(q, k, v), mask=4, bias=5), k, v


def _given(c: Call) -> list[Operand]:
    """Returns queries, keys and values, which may be in one tensor [batch, positions, heads, 3, size], or the last two in one."""
    x = c.input(0)
    if x.rank == 5 and not (c.has(1) or c.has(2)):
        return _unpacked(c, x, 3)
    queries = c.ranked(0, 3, "the queries")
    if c.has(1) and c.input(1).rank == 5 and not c.has(2):
        return [queries, *_unpacked(c, c.input(1), 2)]
    return [queries, _vectors_or_heads(c, 1, "keys"), _vectors_or_heads(c, 2, "values")]


def _unpacked(c: Call, x: Operand, count: int) -> list[Operand]:
    """Returns the vectors [batch, positions, heads * size] of which *x* [batch, positions, heads, count, size] has so many."""
    batch, positions, heads, _, size = x.shape
    if static_sizes(x.shape[3:4]) != [count]:
        c.fail(f"its packed tensor should have {count} of each head: {x!r}", UNFIT)
    parts = c.add_many("split", x, axis=3, sizes=(1,) * count)
    return [c.reshape(p, [batch, positions, heads * size]) for p in parts]


def _vectors_or_heads(c: Call, i: int, what: str) -> Operand:
    """Returns input *i*: vectors [batch, positions, heads * size] or heads [batch, heads, positions, size]."""
    x = c.input(i)
    if x.rank not in (3, 4):
        c.fail(f"its {what} should have 3 or 4 dimensions: {x!r}", UNFIT)
    return x


def _with_biases(c: Call, given: Sequence[Operand]) -> list[Operand]:
    """Returns queries, keys and values, each plus its part of input 3; keys and values that are heads already have had it."""
    if not c.has(3):
        return list(given)
    widths = [x.shape[2] if x.rank == 3 else x.shape[1] * x.shape[3] for x in given]
    parts = c.add_many("split", c.input(3), axis=0, sizes=tuple(widths))
    return [c.add("add", x, p) if x.rank == 3 else x for x, p in zip(given, parts, strict=True)]


def _after(c: Call, past: Operand, now: Operand) -> Operand:
    """Returns heads of the past with those of now behind them."""
    return c.add("concat", past, now, axis=2)


def _attended(c: Call, x: _Heads, mask: int, bias: int | None) -> Operand:
    """Returns the attention as vectors, with the masks that the attributes and the inputs *mask* and *bias* give."""
    queries, keys = x.q.shape[2], x.k.shape[2]
    filtered = c.number("mask_filter_value", -10000.0)
    biases = []
    if c.has(mask):
        biases.append(composites.bias_of_mask(c, _kept(c, mask, x), filtered, x.q))
    if c.flag("unidirectional", False):
        hidden = composites.causal_mask(c, queries, keys)
        biases.append(composites.bias_of_mask(c, hidden, -math.inf, x.q))
    if bias is not None and c.has(bias):
        biases.append(c.ranked(bias, 4, "the attention bias"))
    size = static_sizes(x.q.shape[3:])
    if size is None:
        c.fail("the size of its heads is symbolic")
    scale = c.number("scale", 0.0) or 1 / math.sqrt(size[0])
    return composites.join_heads(c, composites.attend(c, x.q, x.k, x.v, scale, biases))


def _kept(c: Call, i: int, x: _Heads) -> Operand:
    """Tells which keys each query may see, by the mask that input *i* is: flags, lengths, or ends and then starts."""
    mask, batch, keys = c.input(i), x.q.shape[0], x.k.shape[2]
    if mask.rank in (2, 3):
        flags = c.add("logical_not", c.add("equal", mask, c.scalar(0, mask.dtype)))
        return c.reshape(flags, [mask.shape[0], 1, *([1] if mask.rank == 2 else []), *mask.shape[1:]])
    if mask.rank == 1 and same_size(mask.shape[0], batch):
        return composites.positions_below(c, mask, keys)
    if mask.rank == 1 and same_size(mask.shape[0], batch * 2):
        ends, starts = c.add_many("split", mask, axis=0, sizes=(batch, batch))
        too_early = composites.positions_below(c, starts, keys)
        return c.add("logical_and", composites.positions_below(c, ends, keys), c.add("logical_not", too_early))
    return c.fail(
        f"its mask {mask!r} is not supported",
        "Weft reads masks [batch, keys] and [batch, queries, keys], lengths [batch], and ends and starts [2 * batch]",
    )


@contrib(
    "RotaryEmbedding",
    inputs=(4, 4),
    attributes=dict.fromkeys(("interleaved", "num_heads", "rotary_embedding_dim"), int),
    only={"is_packed_batching": 0, "scale": 1.0},
    limits="packed batches, scale",
)
def rotary_embedding(c: Call) -> Results:
    """Turns pairs of each head's elements by angles that depend on the position."""
    x, half = c.input(0), c.input(2).shape[1]
    places = _places(c, x.shape[x.rank - 2])
    cos, sin = (c.add("gather", c.input(i), places, axis=0) for i in (2, 3))  # [batch or 1, positions, half]
    interleaved = c.flag("interleaved", False)
    if x.rank == 4:
        cos, sin = (c.reshape(v, [v.shape[0], 1, *v.shape[1:]]) for v in (cos, sin))
        return composites.rotate(c, x, cos, sin, interleaved=interleaved)
    if x.rank != 3:
        c.fail(f"its input should have 3 or 4 dimensions: {x!r}", UNFIT)
    size = x.shape[2] // c.integer("num_heads", 0) if c.integer("num_heads", 0) else half * 2
    heads = c.reshape(x, [*x.shape[:2], x.shape[2] // size, size])
    cos, sin = (c.reshape(v, [*v.shape[:2], 1, v.shape[2]]) for v in (cos, sin))
    return c.reshape(composites.rotate(c, heads, cos, sin, interleaved=interleaved), x.shape)


def _places(c: Call, count: Expr) -> Operand:
    """Returns the positions, [batch or 1, positions]: those given, or so many from the one given on."""
    given = c.input(1)
    if given.rank == 2:
        return given
    steps = c.add("range", start=0, size=count)
    return c.reshape(c.add("add", steps, c.cast(given, i64)), [1, count])
