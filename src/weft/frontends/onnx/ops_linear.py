"""Matrix products: MatMul, Gemm and Einsum."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, Operand, Results, total
from weft.frontends.onnx.registry import translates
from weft.ir.expr import Expr


@translates("MatMul")
def matmul(c: Call) -> Results:
    """The product of matrices, batches of them, or vectors."""
    return c.add("matmul", c.input(0), c.input(1))


@translates("Gemm")
def gemm(c: Call) -> Results:
    """alpha * A B + beta * C, with A and B as given or transposed."""
    return c.add(
        "gemm", c.input(0), c.input(1), c.optional(2), alpha=c.number("alpha", 1.0), beta=c.number("beta", 1.0),
        trans_a=c.flag("transA", False), trans_b=c.flag("transB", False),
    )  # fmt: skip


@translates("Einsum")
def einsum(c: Call) -> Results:
    """A sum of products by named dimensions; one of two tensors becomes a matrix product where it is one."""
    given = [c.input(i) for i in range(len(c.inputs))]
    terms, result = _labels(c, [x.rank for x in given])
    if len(given) == 2 and all(len(set(t)) == len(t) for t in terms):
        return _two(c, given, terms, result)
    return c.add("einsum", *given, equation=f"{','.join(terms)}->{result}")


def _labels(c: Call, ranks: list[int]) -> tuple[list[str], str]:
    """Returns one letter for each dimension of each input and of the result; "..." becomes letters of its own."""
    equation = c.text("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        c.fail(f"the equation {equation!r} has {len(terms)} terms for {len(ranks)} inputs")
    free = [chr(k) for k in range(ord("A"), ord("Z") + 1) if chr(k) not in equation]
    widest = max([r - len(t) + 3 for t, r in zip(terms, ranks, strict=True) if "..." in t], default=0)
    dots = "".join(free[:widest])
    full = [t.replace("...", dots[widest - (r - len(t) + 3) :]) for t, r in zip(terms, ranks, strict=True)]
    for term, rank in zip(full, ranks, strict=True):
        if len(term) != rank:
            c.fail(f"the equation {equation!r} names {len(term)} dimensions of an input of {rank}")
    joined = "".join(full)
    if arrow:
        result = right.replace("...", dots)
        odd = [k for k in result if k not in joined or result.count(k) > 1]
        if odd:
            c.fail(f"the equation {equation!r} gives a result with {odd[0]!r}, which is twice in it or in no term")
        return full, result
    return full, dots + "".join(sorted(k for k in set(joined) - set(dots) if joined.count(k) == 1))


def _two(c: Call, given: list[Operand], terms: list[str], result: str) -> Results:
    """Multiplies two tensors: dimensions of both and the result are a batch, of both only are summed over."""
    a, b = (_sum_lone(c, x, t, terms[1 - k] + result) for k, (x, t) in enumerate(zip(given, terms, strict=True)))
    (x, left), (y, right) = a, b
    batch = [k for k in left if k in right and k in result]
    summed = [k for k in left if k in right and k not in result]
    rows = [k for k in left if k not in right]
    columns = [k for k in right if k not in left]
    sizes: dict[str, Expr] = {}
    for k, s in [*zip(right, y.shape, strict=True), *zip(left, x.shape, strict=True)]:
        sizes[k] = s if k not in sizes or getattr(sizes[k], "value", None) == 1 else sizes[k]
    x = _grouped(c, x, left, batch, rows, summed, sizes)
    y = _grouped(c, y, right, batch, summed, columns, sizes)
    made = c.reshape(c.add("matmul", x, y), [sizes[k] for k in (*batch, *rows, *columns)])
    order = "".join((*batch, *rows, *columns))
    return c.transpose(made, [order.index(k) for k in result])


def _sum_lone(c: Call, x: Operand, term: str, used: str) -> tuple[Operand, str]:
    """Sums over the dimensions that nothing else names."""
    lone = tuple(d for d, k in enumerate(term) if k not in used)
    if not lone:
        return x, term
    return c.add("reduce_sum", x, axes=lone, keepdims=False), "".join(k for k in term if k in used)


def _grouped(
    c: Call, x: Operand, term: str, batch: list[str], first: list[str], second: list[str], sizes: dict[str, Expr]
) -> Operand:
    """Returns *x* as matrices [*batch, first, second], each of the two being a product of dimensions."""
    x = c.transpose(x, [term.index(k) for k in (*batch, *first, *second)])
    shape = [x.shape[n] for n in range(len(batch))]
    return c.reshape(x, [*shape, total([sizes[k] for k in first]), total([sizes[k] for k in second])])
