"""Einstein summation: sums of products over labelled dimensions, as batched matrix products where possible."""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
from weft.ir import Expr


def einsum(b: Builder, operands: Sequence[Operand], equation: str) -> Operand:
    """Returns the sum of products that *equation* names, NumPy's `ik,kj->ij`; "..." and a missing right side are as in NumPy.

    Two operands become a batched matrix product, after sums over the dimensions that only one operand and not the result names.
    Raises `ModelError` for an equation that does not fit the operands.
    """
    terms, result = _labels(b, equation.replace(" ", ""), [x.rank for x in operands])
    if len(operands) == 2 and all(len(set(t)) == len(t) for t in terms):
        return _two(b, operands, terms, result)
    return b.add("einsum", *operands, equation=f"{','.join(terms)}->{result}")


def _labels(b: Builder, equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Returns one letter for each dimension of each input and of the result; "..." becomes letters of its own."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        b.fail(f"the equation {equation!r} has {len(terms)} terms for {len(ranks)} inputs")
    free = [chr(k) for k in range(ord("A"), ord("Z") + 1) if chr(k) not in equation]
    widest = max([r - len(t) + 3 for t, r in zip(terms, ranks, strict=True) if "..." in t], default=0)
    dots = "".join(free[:widest])
    full = [t.replace("...", dots[widest - (r - len(t) + 3) :]) for t, r in zip(terms, ranks, strict=True)]
    for term, rank in zip(full, ranks, strict=True):
        if len(term) != rank:
            b.fail(f"the equation {equation!r} names {len(term)} dimensions of an input of {rank}")
    joined = "".join(full)
    if arrow:
        result = right.replace("...", dots)
        odd = [k for k in result if k not in joined or result.count(k) > 1]
        if odd:
            b.fail(f"the equation {equation!r} gives a result with {odd[0]!r}, which is twice in it or in no term")
        return full, result
    return full, dots + "".join(sorted(k for k in set(joined) - set(dots) if joined.count(k) == 1))


def _two(b: Builder, given: Sequence[Operand], terms: list[str], result: str) -> Operand:
    """Multiplies two tensors: dimensions in both and in the result are batch dimensions, those in both alone are summed over."""
    first, second = (
        _sum_lone(b, x, t, terms[1 - k] + result) for k, (x, t) in enumerate(zip(given, terms, strict=True))
    )
    (x, left), (y, right) = first, second
    batch = [k for k in left if k in right and k in result]
    summed = [k for k in left if k in right and k not in result]
    rows = [k for k in left if k not in right]
    columns = [k for k in right if k not in left]
    sizes: dict[str, Expr] = {}
    for k, s in [*zip(right, y.shape, strict=True), *zip(left, x.shape, strict=True)]:
        sizes[k] = s if k not in sizes or getattr(sizes[k], "value", None) == 1 else sizes[k]
    x = _grouped(b, x, left, batch, rows, summed, sizes)
    y = _grouped(b, y, right, batch, summed, columns, sizes)
    made = b.reshape(b.add("matmul", x, y), [sizes[k] for k in (*batch, *rows, *columns)])
    order = "".join((*batch, *rows, *columns))
    return b.transpose(made, [order.index(k) for k in result])


def _sum_lone(b: Builder, x: Operand, term: str, used: str) -> tuple[Operand, str]:
    """Sums over the dimensions that neither the other operands nor the result name."""
    lone = tuple(d for d, k in enumerate(term) if k not in used)
    if not lone:
        return x, term
    return b.add("reduce_sum", x, axes=lone, keepdims=False), "".join(k for k in term if k in used)


def _grouped(
    b: Builder, x: Operand, term: str, batch: list[str], first: list[str], second: list[str], sizes: dict[str, Expr]
) -> Operand:
    """Returns *x* as matrices [*batch, first, second]; rows and columns are each several dimensions flattened."""
    x = b.transpose(x, [term.index(k) for k in (*batch, *first, *second)])
    shape = [x.shape[n] for n in range(len(batch))]
    return b.reshape(x, [*shape, total([sizes[k] for k in first]), total([sizes[k] for k in second])])
