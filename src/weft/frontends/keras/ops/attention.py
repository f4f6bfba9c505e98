"""Attention (Vaswani et al., 2017)."""

from __future__ import annotations

import math
from functools import reduce

from weft.frontends.keras.call import Call
from weft.frontends.keras.ops.core import product
from weft.frontends.keras.registry import translates
from weft.graph import Array
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.attention import (
    attend,
    bias_of_mask,
    join_heads,
    scaled_scores,
    split_heads,
    weighted_values,
)
from weft.graph.composites.grouped_attention import repeat_heads
from weft.ir import ExprLike
from weft.support.dtypes import bool_, f32


@translates("MultiHeadAttention")
def multi_head_attention(c: Call) -> Operand:
    """Attention of several heads between learned projections."""
    heads = c.integer("num_heads")
    return _of_heads(c, heads, heads, c.integer("key_dim"))


@translates("GroupQueryAttention", "GroupedQueryAttention")
def grouped_query_attention(c: Call) -> Operand:
    """Attention of which several heads of queries share one of keys and values (Ainslie et al., 2023)."""
    heads, shared = c.integer("num_query_heads"), c.integer("num_key_value_heads")
    if shared < 1 or heads % shared:
        c.fail(f"its {heads} heads of queries can't share {shared} of keys", "save the model again")
    return _of_heads(c, heads, shared, c.integer("head_dim"))


def _of_heads(c: Call, heads: int, shared: int, size: int) -> Operand:
    """Returns the attention of so many *heads* of queries of a *size*, and heads of keys and values *shared* by them."""
    for name in ("use_gate", "flash_attention"):
        c.refuse(name, False)
    c.refuse("sliding_window")
    c.refuse("attention_axes", [1])
    if c.named.get("return_attention_scores"):
        c.fail("the argument return_attention_scores is not supported", "call it without")
    given = [*c.positional, *[c.named[n] for n in ("query", "value", "key") if c.named.get(n) is not None]]
    if not 2 <= len(given) <= 3:
        c.fail(f"it is called with {len(given)} tensors", "call it with queries, values and perhaps keys")
    c.positional = given
    query, value = c.floats(0, 3), c.floats(1, 3)
    key = c.floats(2, 3) if len(given) == 3 and given[2] is not None else value
    q = split_heads(c, _projected(c, query, "query_dense"), heads)
    k, v = (
        repeat_heads(c, split_heads(c, _projected(c, x, part), shared), heads // shared)
        for x, part in ((key, "key_dense"), (value, "value_dense"))
    )
    masks = _masks_of_heads(c)
    if c.named.get("use_causal_mask"):
        masks.append(_causal(c, q.shape[2], k.shape[2]))
    biases = [bias_of_mask(c, _all_of(c, masks), -1e9, q)] if masks else []
    attended = join_heads(c, attend(c, q, k, v, 1 / math.sqrt(size), biases))
    weights = c.weights.part("output_dense")
    matrix = c.array(weights, 0, 3, lambda a: a.reshape(-1, a.shape[2]), "output")
    return product(c, attended, matrix, c.array(weights, 1, 1, None, "bias") if c.flag("use_bias", True) else None)


def _masks_of_heads(c: Call) -> list[Operand]:
    """Returns the masks of queries [batch, 1, queries, 1], of keys [batch, 1, 1, keys], and of pairs of them."""
    made: list[Operand] = []
    for i, name in enumerate(("query", "value", "key")):
        given = c.named.get(f"{name}_mask")
        found = given if given is not None or i >= len(c.positional) else c.mask_of(c.tensor(i))
        if found is not None:
            batch, steps = found.shape
            made.append(c.cast(c.reshape(found, [batch, 1, steps, 1] if i == 0 else [batch, 1, 1, steps]), bool_))
    pairs = c.named.get("attention_mask")
    if pairs is not None:
        heads = [pairs.shape[0], 1, *pairs.shape[1:]] if pairs.rank == 3 else pairs.shape
        made.append(c.cast(c.reshape(pairs, heads), bool_))
    return made


def _causal(c: Call, queries: ExprLike, keys: ExprLike) -> Operand:
    """Tells which of *keys* each query may see: those up to its own position, counted from the first of both."""
    rows = c.reshape(c.add("range", start=0, size=queries), [queries, 1])
    return c.add("less_equal", c.add("range", start=0, size=keys), rows)


def _all_of(c: Call, masks: list[Operand]) -> Operand:
    return reduce(lambda a, b: c.add("logical_and", a, b), masks)


def _projected(c: Call, x: Operand, part: str) -> Operand:
    """Returns rows times a matrix whose columns are those of all heads."""
    weights = c.weights.part(part)
    matrix = c.array(weights, 0, 3, lambda a: a.reshape(a.shape[0], -1), (part, 0))
    return product(c, x, matrix, c.array(weights, 1, 2, _flat, (part, 1)) if c.flag("use_bias", True) else None)


def _flat(a: Array) -> Array:
    return a.reshape(-1)


@translates("Attention", "AdditiveAttention")
def attention(c: Call) -> Operand:
    """softmax(Q K^T) V, with a learned scale if it has one; of AdditiveAttention, sum(scale * tanh(Q + K)) for Q K^T."""
    c.refuse("score_mode", "dot")
    given = c.tensors()
    if not 2 <= len(given) <= 3 or any(x.rank != 3 for x in given):
        c.fail("it should be called with queries, values and perhaps keys of 3 dimensions", "save the model again")
    query, value, key = (c.cast(x, f32) for x in (given[0], given[1], given[-1]))
    scores = (_sums if c.layer.kind == "AdditiveAttention" else _products)(c, query, key)
    of_queries, of_values = c.masks_of(given)[:2]
    masks = [] if of_values is None else [c.reshape(of_values, [of_values.shape[0], 1, of_values.shape[1]])]
    if c.named.get("use_causal_mask"):
        masks.append(_causal(c, query.shape[1], key.shape[1]))
    if masks:
        scores = c.add("add", scores, bias_of_mask(c, _all_of(c, masks), -1e9, scores))
    y = weighted_values(c, scores, value)
    if of_queries is None:
        return y
    return c.add("where", c.reshape(of_queries, [*of_queries.shape, 1]), y, c.scalar(0, y.dtype))


def _products(c: Call, query: Operand, key: Operand) -> Operand:
    scores = scaled_scores(c, query, key, 1.0)
    return c.add("mul", scores, c.variable(0, 0)) if c.flag("use_scale") else scores


def _sums(c: Call, query: Operand, key: Operand) -> Operand:
    """Returns the scores of Bahdanau et al. (2015)."""
    pairs = [
        c.reshape(query, [*query.shape[:2], 1, query.shape[2]]),
        c.reshape(key, [key.shape[0], 1, *key.shape[1:]]),
    ]
    bent = c.add("tanh", c.add("add", *pairs))
    return c.add(
        "reduce_sum",
        c.add("mul", bent, c.variable(0, 1)) if c.flag("use_scale", True) else bent,
        axes=(3,),
        keepdims=False,
    )


@translates("ops.DotProductAttention")
def dot_product_attention(c: Call) -> Operand:
    """Attention of heads that are given side by side: [batch, positions, heads, size]."""
    c.refuse("attn_logits_soft_cap")
    c.refuse("flash_attention", False)
    given = [c.cast(x, f32) for x in c.tensors()[:3]]
    if len(given) != 3 or any(x.rank != 4 for x in given) or len(c.positional) > 3:
        c.fail("it should be called with queries, keys and values of 4 dimensions, and others by name", "save it again")
    q, k, v = (c.transpose(x, [0, 2, 1, 3]) for x in given)
    masks = [m for m in (c.named.get("mask"),) if m is not None]
    if c.flag("is_causal"):
        masks.append(_causal(c, q.shape[2], k.shape[2]))
    scale, size = c.named.get("scale"), static_sizes(q.shape[3:])
    if size is None or not isinstance(scale, int | float | None):
        c.fail(f"its scale is {scale!r}, and its queries are {q!r}", "give it a number")
    biases = [b for b in (c.named.get("bias"),) if b is not None]
    if masks:
        biases.append(bias_of_mask(c, _all_of(c, [c.cast(m, bool_) for m in masks]), -1e9, q))
    made = attend(c, q, k, v, 1 / math.sqrt(size[0]) if scale is None else float(scale), biases)
    return c.transpose(made, [0, 2, 1, 3])
