"""Einstein summation: sums of products over labelled dimensions, as batched matrix products where possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Final

from weft.cost import size_of
from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
from weft.ir import Expr

WORTH: Final = 2
"""Products two by two must take fewer operations by this factor: they write intermediate results."""


def einsum(b: Builder, operands: Sequence[Operand], equation: str) -> Operand:
    """Returns the sum of products that *equation* names, NumPy's `ik,kj->ij`; "..." and a missing right side are as in NumPy.

    Two operands become a batched matrix product, after sums over the dimensions that only one operand and not the result names.
    More of them are multiplied two by two, those first whose product takes the fewest operations (Smith and Gray, "opt_einsum",
    2018), if that takes fewer than all at once. Raises `ModelError` for an equation that does not fit the operands.
    """
    terms, result = _labels(b, equation.replace(" ", ""), [x.rank for x in operands])
    if len(operands) > 1 and all(len(set(t)) == len(t) for t in terms):
        extents = _extents(operands, terms)
        path, operations = _path(terms, result, extents)
        if len(operands) == 2 or operations * WORTH <= prod(extents.values()) * (len(terms) - 1):
            return _two_by_two(b, operands, terms, result, path)
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


def _extents(given: Sequence[Operand], terms: Sequence[str]) -> dict[str, int]:
    """Returns the extent of each label, of those that are broadcast the larger one."""
    found: dict[str, int] = {}
    for x, term in zip(given, terms, strict=True):
        for k, s in zip(term, x.shape, strict=True):
            found[k] = max(found.get(k, 1), size_of(s))
    return found


def _path(terms: Sequence[str], result: str, extents: Mapping[str, int]) -> tuple[list[tuple[int, int]], int]:
    """Returns which two of the operands that are left are multiplied at each step, and the operations of all steps.

    Their product becomes the last operand.
    """
    left, path, operations = list(terms), [], 0
    while len(left) > 1:
        costs = {p: prod([extents[k] for k in {*left[p[0]], *left[p[1]]}]) for p in combinations(range(len(left)), 2)}
        chosen = min(costs, key=costs.__getitem__)
        operations += costs[chosen]
        path.append(chosen)
        made = _kept(left, chosen, result)
        left = [*[t for n, t in enumerate(left) if n not in chosen], made]
    return path, operations


def _kept(terms: Sequence[str], chosen: tuple[int, int], result: str) -> str:
    """Returns the labels of the product of two operands: those that the result or another operand has."""
    used = {*result, *[k for n, t in enumerate(terms) if n not in chosen for k in t]}
    return "".join([k for k in dict.fromkeys(terms[chosen[0]] + terms[chosen[1]]) if k in used])


def _two_by_two(
    b: Builder, given: Sequence[Operand], terms: Sequence[str], result: str, path: Sequence[tuple[int, int]]
) -> Operand:
    """Multiplies the operands in the order of *path*; the last product is in the order of the result."""
    operands, left = list(given), list(terms)
    for first, second in path:
        made = result if len(left) == 2 else _kept(left, (first, second), result)
        product = _two(b, (operands[first], operands[second]), [left[first], left[second]], made)
        operands = [*[x for n, x in enumerate(operands) if n not in (first, second)], product]
        left = [*[t for n, t in enumerate(left) if n not in (first, second)], made]
    return operands[0]


def _two(b: Builder, given: Sequence[Operand], terms: Sequence[str], result: str) -> Operand:
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
