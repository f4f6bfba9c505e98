"""Products of matrices, and attention."""

from __future__ import annotations

import math

import numpy as np

from weft.frontends.coreml.call import Call
from weft.frontends.coreml.registry import translates
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.attention import attend
from weft.graph.composites.einsum import einsum as einsum_of
from weft.support.dtypes import bool_


@translates("linear")
def linear(c: Call) -> Operand:
    """Rows times the transpose of a matrix, and a bias."""
    w = c.operand("weight")
    made = c.add("matmul", c.operand(), c.transpose(w, [1, 0]))
    bias = c.optional("bias")
    return made if bias is None else c.add("add", made, bias)


@translates("matmul")
def matmul(c: Call) -> Operand:
    """Matrices multiplied, either of which may be given transposed."""
    x, y = (_turned(c, c.operand(n), turn=c.flag(f"transpose_{n}")) for n in ("x", "y"))
    return c.add("matmul", x, y)


def _turned(c: Call, x: Operand, *, turn: bool) -> Operand:
    return c.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2]) if turn and x.rank > 1 else x


@translates("einsum")
def einsum(c: Call) -> Operand:
    """Sums of products that an equation names."""
    return einsum_of(c, c.operands("values"), c.text("equation"))


@translates("scaled_dot_product_attention")
def attention(c: Call) -> Operand:
    """Attention of queries to keys."""
    q, k, v = (c.operand(n) for n in ("query", "key", "value"))
    sizes = static_sizes(q.shape[-1:])
    if sizes is None:
        c.fail(f"the size of its queries is not known: {q!r}", "convert it with fixed shapes")
    mask, biases = c.optional("attn_mask"), list[Operand]()
    if mask is not None and mask.dtype is bool_:
        mask = c.add("where", mask, c.scalar(0, q.dtype), c.scalar(-np.inf, q.dtype))
    if mask is not None:
        biases.append(mask)
    return attend(c, q, k, v, 1 / math.sqrt(sizes[0]), biases)
