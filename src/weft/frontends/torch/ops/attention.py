"""Attention of queries to keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch

from weft.frontends.torch.call import Call
from weft.frontends.torch.ops.distributions import dropped
from weft.frontends.torch.region_calls import Graph, controls
from weft.frontends.torch.registry import translates
from weft.graph.builder import Builder, CompileTimeConstant, Operand, Results
from weft.graph.composites.attention import scaled_scores
from weft.ir import ONE, Const
from weft.support.dtypes import bool_, f32, f64, i32, u8


@translates("scaled_dot_product_attention")
def attention(c: Call) -> Results:
    """softmax(Q K^T * scale + mask) V (Vaswani et al., 2017)."""
    return _attention(c, shared=bool(c.value("enable_gqa", False)))


@translates("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(c: Call) -> Results:
    """The same, as programs that are derived for gradients have it; the sums of exponentials are not supported."""
    return _attention(c, shared=True), None


def _attention(c: Call, *, shared: bool) -> Operand:
    """Returns the attention; heads of keys and values may be *shared* by several of queries (Ainslie et al., "GQA", 2023)."""
    q, k, v = c.tensor("query"), c.tensor("key"), c.tensor("value")
    if shared:
        k, v = (_for_heads_of(c, x, q) for x in (k, v))
    scores = _scores(c, q, k)
    mask = _causal(c, q, k) if c.value("is_causal", False) else c.optional("attn_mask")
    if mask is not None:
        scores = _masked(c, scores, mask)
    weights = c.add("softmax", scores, axis=scores.rank - 1)
    made = c.add("matmul", dropped(c, weights, float(c.value("dropout_p", 0.0))), v)
    given = c.optional("attn_mask")
    return made if given is None else _zero_where_none_is_seen(c, made, given)


def _scores(c: Call, q: Operand, k: Operand) -> Operand:
    """Returns the products of queries and keys, scaled by the root of the size of a head unless the scale is given."""
    given, width = c.value("scale"), q.shape[-1]
    if given:
        return scaled_scores(c, q, k, float(given))
    if isinstance(width, Const):
        return scaled_scores(c, q, k, 1 / math.sqrt(int(width.value)))
    scale = c.add("rsqrt", c.kept(c.cast(c.kept(c.size(width)), q.dtype)))
    return scaled_scores(c, c.add("mul", q, scale), k, 1.0)


def _for_heads_of(b: Builder, x: Operand, q: Operand) -> Operand:
    """Returns keys or values with as many heads [..., heads, positions, size] as the queries *q* have."""
    heads, own = q.shape[-3], x.shape[-3]
    if heads is own or own is ONE:
        return x
    if not isinstance(heads, Const) or not isinstance(own, Const):
        b.fail("heads of symbolic number that others share are not supported", "give their numbers in the module")
    times = int(heads.value) // int(own.value)
    return b.add("repeat", x, axis=x.rank - 3, times=times)


def _causal(c: Call, q: Operand, k: Operand) -> Operand:
    """Returns which keys each query may see: those up to its own place."""
    rows, columns = (c.add("range", start=0, size=x.shape[-2], step=1) for x in (q, k))
    return c.add("less_equal", columns, c.reshape(rows, [q.shape[-2], 1]))


def _zero_where_none_is_seen(c: Call, made: Operand, mask: Operand) -> Operand:
    """Returns attention with zeros for queries that a mask lets see no key, whose weights would be 0 / 0.

    They are those of padding, and in the next layer a weight of 0 would not keep NaN out.
    """
    shown = c.cast(mask, u8) if mask.dtype is bool_ else mask
    most = c.add("reduce_max", shown, axes=(mask.rank - 1,), keepdims=True)
    sees_none = c.add("equal", most, c.scalar(0 if mask.dtype is bool_ else -math.inf, shown.dtype))
    if isinstance(sees_none, CompileTimeConstant) and not sees_none.array.any():
        return made
    return c.add("where", sees_none, c.scalar(0, made.dtype), made)


def _masked(c: Call, scores: Operand, mask: Operand) -> Operand:
    """Adds a mask, or excludes the scores where a mask of truth values does not hold."""
    if mask.dtype is bool_:
        return c.add("where", mask, scores, c.scalar(-math.inf, scores.dtype))
    return c.add("add", scores, c.cast(mask, scores.dtype))


_OF_ELEMENTS: Final = (
    "aten.index.Tensor",
    "aten.full.default",
    "aten.new_full.default",
    "aten.new_ones.default",
    "aten.new_zeros.default",
    "aten.scalar_tensor.default",
    "aten.lift_fresh_copy.default",
    "aten._to_copy.default",
    "aten.clone.default",
    "aten.detach.default",
)
"""Operators that make a single element of others or of a tensor, beside those that PyTorch calls pointwise."""


@controls("higher_order.flex_attention")
def flex_attention(
    b: Builder,
    query: Operand,
    key: Operand,
    value: Operand,
    score: Graph,
    blocks: Sequence[Any],
    scale: float,
    options: object,
    of_score: Sequence[Any] = (),
    of_mask: Sequence[Any] = (),
) -> list[Any]:
    """Attention whose scores a function of the user's changes, and another one masks.

        flex_attention(q, k, v, score, (..., mask), scale)
            becomes   softmax(where(mask(b, h, i, j), score(scale * q k', b, h, i, j), -inf)) v

    The functions are graphs of single elements: they are imported once, with tensors [batch, heads, queries, keys] in the
    elements' places. So all that they may do is to compute element by element, and to read elements of other tensors. The other
    results, sums of exponentials and largest scores, are not supported.
    """
    mask: Graph = blocks[-1]
    for graph in (score, mask):
        _check_elements(b, graph)
    places = _places(b, query, key)
    k, v = (_for_heads_of(b, x, query) for x in (key, value))
    scores = scaled_scores(b, query, k, scale)
    scores = scores if scores.dtype is f64 else b.cast(scores, f32)
    [changed] = score(b, [scores, *places, *of_score])
    [keeps] = mask(b, [*places, *of_mask])
    if not (isinstance(keeps, CompileTimeConstant) and keeps.array.all()):
        changed = b.add("where", keeps, changed, b.scalar(-math.inf, changed.dtype))
    changed = b.add("expand", changed, shape=scores.shape)
    most = b.add("reduce_max", changed, axes=(3,), keepdims=True)
    sees_none = b.add("equal", most, b.scalar(-math.inf, changed.dtype))
    made = b.add("matmul", b.cast(b.add("softmax", changed, axis=3), v.dtype), v)
    return [b.add("where", sees_none, b.scalar(0, v.dtype), made), None, None]


def _places(b: Builder, query: Operand, key: Operand) -> list[Operand]:
    """Returns the numbers of batch, head, query and key, each along its dimension of the scores."""
    sizes = [*query.shape[:3], key.shape[2]]
    return [
        b.reshape(b.cast(b.add("range", start=0, size=size, step=1), i32), [size if k == d else ONE for k in range(4)])
        for d, size in enumerate(sizes)
    ]


def _check_elements(b: Builder, graph: Graph) -> None:
    """Raises `ModelError` for a function that does not compute element by element."""
    for n in graph.module.graph.nodes:
        if n.op != "call_function":
            continue
        is_pointwise = isinstance(n.target, torch._ops.OpOverload) and torch.Tag.pointwise in n.target.tags
        if not (is_pointwise or str(n.target) in _OF_ELEMENTS) or n.meta["val"].dim():
            b.fail(
                f"{n.target} in a function of scores is not supported",
                "compute with single elements there, which may be read of tensors",
            )
