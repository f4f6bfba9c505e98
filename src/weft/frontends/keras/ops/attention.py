"""Attention (Vaswani et al., 2017)."""

from __future__ import annotations

import math

from weft.frontends.keras.call import Call
from weft.frontends.keras.ops.core import product
from weft.frontends.keras.registry import translates
from weft.graph import Array
from weft.graph.builder import Operand
from weft.graph.composites.attention import (
    attend,
    bias_of_mask,
    causal_mask,
    join_heads,
    scaled_scores,
    split_heads,
    weighted_values,
)
from weft.support.dtypes import f32


@translates("MultiHeadAttention")
def multi_head_attention(c: Call) -> Operand:
    """Attention of several heads between learned projections."""
    for name in ("use_gate", "flash_attention"):
        c.refuse(name, False)
    c.refuse("sliding_window")
    c.refuse("attention_axes", [1])
    for name in ("attention_mask", "query_mask", "value_mask", "key_mask", "return_attention_scores"):
        if c.named.get(name):
            c.fail(f"the argument {name} is not supported", "call it without, or with use_causal_mask=True")
    given = [*c.positional, *[c.named[n] for n in ("query", "value", "key") if c.named.get(n) is not None]]
    if not 2 <= len(given) <= 3:
        c.fail(f"it is called with {len(given)} tensors", "call it with queries, values and perhaps keys")
    c.positional = given
    query, value = c.floats(0, 3), c.floats(1, 3)
    key = c.floats(2, 3) if len(given) == 3 and given[2] is not None else value
    heads, size = c.integer("num_heads"), c.integer("key_dim")
    q, k, v = (
        split_heads(c, _projected(c, x, part), heads)
        for x, part in ((query, "query_dense"), (key, "key_dense"), (value, "value_dense"))
    )
    biases: list[Operand] = []
    if c.named.get("use_causal_mask"):
        biases = [bias_of_mask(c, causal_mask(c, q.shape[2], k.shape[2]), -1e9, q)]
    attended = join_heads(c, attend(c, q, k, v, 1 / math.sqrt(size), biases))
    weights = c.weights.part("output_dense")
    matrix = c.array(weights, 0, 3, lambda a: a.reshape(-1, a.shape[2]), "output")
    return product(c, attended, matrix, c.array(weights, 1, 1, None, "bias") if c.flag("use_bias", True) else None)


def _projected(c: Call, x: Operand, part: str) -> Operand:
    """Returns rows times a matrix whose columns are those of all heads."""
    weights = c.weights.part(part)
    matrix = c.array(weights, 0, 3, lambda a: a.reshape(a.shape[0], -1), (part, 0))
    return product(c, x, matrix, c.array(weights, 1, 2, _flat, (part, 1)) if c.flag("use_bias", True) else None)


def _flat(a: Array) -> Array:
    return a.reshape(-1)


@translates("Attention")
def attention(c: Call) -> Operand:
    """softmax(Q K^T) V, with a learned scale if it has one."""
    c.refuse("score_mode", "dot")
    given = c.tensors()
    if not 2 <= len(given) <= 3 or any(x.rank != 3 for x in given):
        c.fail("it should be called with queries, values and perhaps keys of 3 dimensions", "save the model again")
    query, value, key = (c.cast(x, f32) for x in (given[0], given[1], given[-1]))
    scores = scaled_scores(c, query, key, 1.0)
    if c.flag("use_scale"):
        scores = c.add("mul", scores, c.variable(0, 0))
    if c.named.get("use_causal_mask"):
        scores = c.add("add", scores, bias_of_mask(c, causal_mask(c, query.shape[1], key.shape[1]), -1e9, scores))
    return weighted_values(c, scores, value)
