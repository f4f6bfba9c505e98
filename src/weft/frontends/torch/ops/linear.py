"""Matrix products and embeddings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph import Value, untransposed
from weft.graph.builder import CompileTimeConstant, Operand, Results
from weft.graph.composites.einsum import einsum as sum_of_products
from weft.support.dtypes import i64


@translates("linear")
def linear(c: Call) -> Results:
    """x W^T + b, for rows or for batches of them."""
    x, weight, bias = c.tensor("input"), c.tensor("weight"), c.optional("bias")
    if x.rank == 2:
        return c.add("gemm", x, weight, bias, alpha=1.0, beta=1.0, trans_a=False, trans_b=True)
    y = c.add("matmul", x, c.transpose(weight, (1, 0)))
    return y if bias is None else c.add("add", y, bias)


@translates("addmm")
def addmm(c: Call) -> Results:
    """beta * self + alpha * A B."""
    alpha, beta = float(c.value("alpha", 1)), float(c.value("beta", 1))
    matrix, trans = _as_it_lies(c.tensor("mat2"))
    return c.add("gemm", c.tensor("mat1"), matrix, c.tensor(), alpha=alpha, beta=beta, trans_a=False, trans_b=trans)


@translates("baddbmm")
def baddbmm(c: Call) -> Results:
    """beta * self + alpha * A B, of several matrices."""
    alpha, beta = c.value("alpha", 1), c.value("beta", 1)
    made = c.add("matmul", c.tensor("batch1"), c.tensor("batch2"))
    made = made if alpha == 1 else c.add("mul", made, c.scalar(alpha, c.dtype))
    if beta == 0:  # which hides a NaN
        return made
    own = c.tensor() if beta == 1 else c.add("mul", c.tensor(), c.scalar(beta, c.dtype))
    return c.add("add", own, made)


def _as_it_lies(matrix: Operand) -> tuple[Operand, bool]:
    """Returns a matrix as it lies, and whether it is given transposed, as the weights of linear layers are."""
    return untransposed(matrix) if isinstance(matrix, Value) and matrix.rank == 2 else (matrix, False)


@translates("matmul")
def matmul(c: Call) -> Results:
    """The product of matrices, batches of them, or vectors."""
    return c.add("matmul", c.tensor(), c.tensor("other"))


@translates("mm", "bmm")
def mm(c: Call) -> Results:
    """The product of two matrices, or of two batches of them."""
    x, (matrix, trans) = c.tensor(), _as_it_lies(c.tensor("mat2"))
    if trans:
        return c.add("gemm", x, matrix, None, alpha=1.0, beta=1.0, trans_a=False, trans_b=True)
    return c.add("matmul", x, matrix)


@translates("addbmm")
def addbmm(c: Call) -> Results:
    """beta * self + alpha * the sum of products of two batches of matrices."""
    made = c.add("matmul", c.tensor("batch1"), c.tensor("batch2"))
    total = c.add("reduce_sum", made, axes=(0,), keepdims=False)
    scaled = c.add("mul", total, c.scalar(c.value("alpha", 1), c.dtype))
    return c.add("add", c.add("mul", c.tensor(), c.scalar(c.value("beta", 1), c.dtype)), scaled)


@translates("_cdist_forward")
def cdist(c: Call) -> Results:
    """The p-norm of the difference of each row of one matrix and each of another."""
    a, b, p = c.tensor("x1"), c.tensor("x2"), float(c.value("p"))
    rows = c.reshape(a, [*a.shape[:-1], 1, a.shape[-1]])
    others = c.reshape(b, [*b.shape[:-2], 1, *b.shape[-2:]])
    return _norm(c, c.add("sub", rows, others), p)


@translates("_pdist_forward")
def pdist(c: Call) -> Results:
    """The p-norm of the difference of each row of a matrix and each behind it."""
    x = c.tensor()
    pairs = (CompileTimeConstant(k.astype(np.int64)) for k in np.triu_indices(c.sizes_of(x)[0], 1))
    rows, others = (c.add("gather", x, k, axis=0) for k in pairs)
    return _norm(c, c.add("sub", rows, others), float(c.value("p", 2)))


def _norm(c: Call, x: Operand, p: float) -> Operand:
    """Returns the p-norms of rows."""
    apart = c.add("abs", x)
    over: dict[str, Any] = {"axes": (apart.rank - 1,), "keepdims": False}
    if p == math.inf:
        return c.add("reduce_max", apart, **over)
    if p == 0:
        differ = c.add("logical_not", c.add("equal", apart, c.scalar(0, c.dtype)))
        return c.add("reduce_sum", c.cast(differ, c.dtype), **over)
    if p in (1, 2):
        return c.add("reduce_l1" if p == 1 else "reduce_l2", apart, **over)
    powers = c.add("reduce_sum", c.add("power", apart, c.scalar(p, c.dtype)), **over)
    return c.add("power", powers, c.scalar(1 / p, c.dtype))


@translates("einsum")
def einsum(c: Call) -> Results:
    """A sum of products by named dimensions."""
    return sum_of_products(c, c.tensors("tensors"), str(c.value("equation")))


@translates("embedding")
def embedding(c: Call) -> Results:
    """Rows of a table, at indices."""
    return c.add("gather", c.tensor("weight"), c.tensor("indices"), axis=0)


@translates("_trilinear")
def trilinear(c: Call) -> Results:
    """The sum of products of three tensors, each of which is repeated along some dimensions."""
    letters, terms, given = "abcdefghijklmnop", list[str](), list[Operand]()
    rank = c.tensor("i1").rank + len(c.arguments["expand1"])
    for k in (1, 2, 3):
        given.append(c.tensor(f"i{k}"))
        terms.append("".join(letters[d] for d in range(rank) if d not in c.arguments[f"expand{k}"]))
    result = "".join(letters[d] for d in range(rank) if d not in c.arguments["sumdim"])
    return sum_of_products(c, given, f"{','.join(terms)}->{result}")


@translates("transformers.grouped_mm_fallback.default")
def grouped_mm(c: Call) -> Results:
    """Groups of rows, each multiplied by a matrix of its own; `offs` tells where each group ends."""
    return _grouped(c, c.tensor("input"), c.tensor("weight"))


@translates("_grouped_mm")
def grouped_mm_of_aten(c: Call) -> Results:
    """The same, by the name that it has where strides are multiples of 16 bytes."""
    x, weight = c.tensor(), c.tensor("mat2")
    if x.rank != 2 or weight.rank != 3 or c.optional("offs") is None or c.optional("bias") is not None:
        c.fail(f"groups of {x!r} and {weight!r} are not supported", "give a matrix, and a batch of them with `offs`")
    return _grouped(c, x, weight)


def _grouped(c: Call, x: Operand, weight: Operand) -> Operand:
    ends = c.cast(c.tensor("offs"), i64)
    row = c.reshape(c.cast(c.add("range", start=0, size=x.shape[0], step=1), i64), [x.shape[0], 1])
    behind = c.cast(c.add("less_equal", ends, row), i64)
    return c.add("matmul_chosen", x, weight, c.add("reduce_sum", behind, axes=(1,), keepdims=False))
