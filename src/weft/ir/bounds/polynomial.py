"""Polynomials with integer coefficients: the canonical form of sums and products of exact integers.

A polynomial maps a monomial (a sorted tuple of atoms, () for the constant) to a coefficient that is not zero. An atom is any
expression that is not itself a sum, difference or product. Two sums are equal by ring laws iff their polynomials are.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from weft.ir.expr.base import INDEX, Expr
from weft.ir.expr.binary import Add, Mul, Sub
from weft.ir.expr.constructors import index
from weft.ir.expr.node import Node
from weft.ir.expr.nodes import Const, Neg
from weft.ir.expr.order import order_key
from weft.support.dtypes import DType, i32, i64

Monomial: TypeAlias = tuple[Expr, ...]
Poly: TypeAlias = dict[Monomial, int]

_FUEL: Final = 512
"""Nodes of one sum that are visited, those of its products included; a part beyond this limit is kept as an atom."""

_FACTOR: Final = 4
"""Fuel that a factor of a product takes: it may be a sum of products in its turn."""

_PRODUCT: Final = 64  # terms that multiplying out may make


def is_exact(dtype: DType) -> bool:
    """Answers whether arithmetic of *dtype* may be taken as that of the integers: its overflow does not happen."""
    return dtype is i64 or dtype is i32


def poly_of(e: Expr) -> Poly:
    """Returns the polynomial of an exact integer scalar, which the caller may change; each sum and product remembers its own."""
    if type(e) is Const:
        return {(): int(e.value)} if e.value else {}
    if type(e) not in _RING:
        return {(e,): 1}
    known: Poly | None = getattr(e, "polynomial", None)
    if known is None:
        known = _poly(e, _Fuel())
        if (e,) in known:  # a node that remembers itself would not be freed
            return known
        _remember(e, known)
    return known.copy()


class _Fuel:
    """The number of nodes that may still be visited: as a tree, an expression may be exponentially larger than as a graph."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _FUEL


def _poly(e: Expr, fuel: _Fuel) -> Poly:
    result: Poly = {}
    stack = [(e, 1)]
    while stack:
        n, k = stack.pop()
        t = type(n)
        fuel.left -= 1
        if t is Const:
            _accumulate(result, (), k * n.value)  # type: ignore[attr-defined]
        elif fuel.left <= 0 or t not in _RING:
            _accumulate(result, (n,), k)
        elif t is Neg:
            stack.append((n.a, -k))  # type: ignore[attr-defined]
        elif t is Mul:
            _push_product(n, k, stack, result, fuel)  # type: ignore[arg-type]
        else:
            stack.append((n.b, k if t is Add else -k))  # type: ignore[attr-defined]
            stack.append((n.a, k))  # type: ignore[attr-defined]
    return result


_RING: Final = frozenset({Add, Sub, Mul, Neg})
_remember = Node.polynomial.__set__  # type: ignore[attr-defined]  # nodes are immutable but for cached answers


def _push_product(n: Mul, k: int, stack: list[tuple[Expr, int]], result: Poly, fuel: _Fuel) -> None:
    if type(n.b) is Const:
        stack.append((n.a, k * int(n.b.value)))
    elif type(n.a) is Const:
        stack.append((n.b, k * int(n.a.value)))
    else:
        product = _product(n, fuel)
        if product is None:
            _accumulate(result, (n,), k)
        else:
            add_to(result, product, k)


def _product(n: Mul, fuel: _Fuel) -> Poly | None:
    """Multiplies out a chain of products; None where that would make too many terms, or there are too many factors."""
    result: Poly = {(): 1}
    stack: list[Expr] = [n.a, n.b]
    while stack:
        x = stack.pop()
        fuel.left -= _FACTOR
        if fuel.left <= 0:
            return None
        if type(x) is Mul:
            stack += (x.a, x.b)
            continue
        factor = _poly(x, fuel)
        if len(result) * len(factor) > _PRODUCT:
            return None
        result = times(result, factor)
    return result


def _accumulate(p: Poly, m: Monomial, k: int) -> None:
    total = p.get(m, 0) + k
    if total:
        p[m] = total
    else:
        p.pop(m, None)


def add_to(p: Poly, q: Poly, k: int = 1) -> None:
    """Adds `k * q` to *p*, in place."""
    for m, c in q.items():
        _accumulate(p, m, c * k)


def plus(p: Poly, q: Poly, k: int = 1) -> Poly:
    """Returns `p + k * q`."""
    result = dict(p)
    add_to(result, q, k)
    return result


def scaled(p: Poly, k: int) -> Poly:
    """Returns `k * p`."""
    return {m: c * k for m, c in p.items()} if k else {}


def times(p: Poly, q: Poly) -> Poly:
    """Returns `p * q`."""
    result: Poly = {}
    for m, c in p.items():
        for n, d in q.items():
            _accumulate(result, join(m, n), c * d)
    return result


def join(m: Monomial, n: Monomial) -> Monomial:
    """Returns the product of two monomials."""
    if not m or not n:
        return m or n
    return tuple(sorted(m + n, key=order_key))


def without(m: Monomial, n: Monomial) -> Monomial | None:
    """Returns `m / n`, or None if *n* does not divide *m*."""
    if not n:
        return m
    rest = list(m)
    for atom in n:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def constant(p: Poly) -> int | None:
    """Returns the value of a constant polynomial, None for any other."""
    if not p:
        return 0
    return p[()] if len(p) == 1 and () in p else None


def poly_to_expr(p: Poly, dtype: DType) -> Expr:
    """Returns the canonical expression of *p*: terms in order, a positive one first if there is any, the constant last."""
    free = p.get((), 0)
    terms = list(p.items()) if () not in p else [(m, k) for m, k in p.items() if m]
    if len(terms) > 1:
        terms.sort(key=_term_key)
        if terms[0][1] < 0:
            lead = next((t for t in terms if t[1] > 0), terms[0])
            terms.remove(lead)
            terms.insert(0, lead)
    if not terms:
        return _constant(free, dtype)
    result: Expr | None = None
    if terms[0][1] < 0 and free > 0:
        result, free = Const(free, dtype), 0
    for m, k in terms:
        result = _plus_term(result, m, k, dtype)
    assert result is not None
    if free:
        made: type[Add | Sub] = Add if free > 0 else Sub
        result = made(result, _constant(abs(free), dtype))
    return result


def _term_key(term: tuple[Monomial, int]) -> tuple[object, ...]:
    return tuple([order_key(a) for a in term[0]])


def _constant(k: int, dtype: DType) -> Expr:
    return index(k) if dtype is INDEX else Const(k, dtype)


def _plus_term(sum_: Expr | None, m: Monomial, k: int, dtype: DType) -> Expr:
    value = m[0]
    for factor in m[1:]:
        value = Mul(value, factor)
    if sum_ is None:
        return value if k == 1 else Neg(value) if k == -1 else Mul(value, _constant(k, dtype))
    if abs(k) != 1:
        value = Mul(value, _constant(abs(k), dtype))
    return Add(sum_, value) if k > 0 else Sub(sum_, value)
