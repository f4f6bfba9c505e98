"""Matrix products: MatMul, Gemm and Einsum."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, Results
from weft.frontends.onnx.registry import translates
from weft.graph.composites import einsum as composites


@translates("MatMul")
def matmul(c: Call) -> Results:
    """The product of matrices, batches of them, or vectors."""
    return c.add("matmul", c.input(0), c.input(1))


@translates("Gemm")
def gemm(c: Call) -> Results:
    """alpha * A B + beta * C, with A and B as given or transposed."""
    return c.add(
        "gemm",
        c.input(0),
        c.input(1),
        c.optional(2),
        alpha=c.number("alpha", 1.0),
        beta=c.number("beta", 1.0),
        trans_a=c.flag("transA", False),
        trans_b=c.flag("transB", False),
    )


@translates("Einsum")
def einsum(c: Call) -> Results:
    """A sum of products by named dimensions."""
    return composites.einsum(c, [c.input(i) for i in range(len(c.inputs))], c.text("equation", ""))


@translates("Det")
def det(c: Call) -> Results:
    """The determinants of square matrices."""
    return c.add("det", c.input(0))
