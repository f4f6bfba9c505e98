"""Arithmetic on i64 values that stay symbolic: sums and products of `Affine` scalars and of `Lanes` vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.codegen.llvm.core.affine_operands import ZERO, Affine, Lanes, Operand
from weft.codegen.llvm.core.ir_builder import Builder
from weft.ir import INDEX, Add, Binary, Expr, Mul, Neg, Node, Sub, Var, poly_of


def symbolic(build: Builder, e: Binary, a: Operand, b: Operand) -> Operand | None:
    """Returns the value of the operator *e* of i64 operands in symbolic form, or None if it has none."""
    rule, lanes = _RULES.get(type(e)), e.dtype.lanes
    if rule is None:
        return None
    if type(a) is type(b) is Affine:
        return rule(build, a, b)
    return (
        rule(build, as_affine(a), as_affine(b)) if lanes == 1 else rule(build, as_lanes(a, lanes), as_lanes(b, lanes))
    )


def as_affine(value: Operand) -> Affine:
    """Returns a scalar i64 operand in symbolic form."""
    if isinstance(value, Affine):
        return value
    if isinstance(value, str):
        return Affine(int(value)) if value[0] != "%" else Affine(0, {value: 1})
    raise TypeError("a vector is not a scalar index")


def as_lanes(value: Operand, count: int) -> Lanes:
    """Returns a vector i64 operand in symbolic form."""
    if isinstance(value, Lanes):
        return value
    if isinstance(value, Affine):
        raise TypeError("a scalar is not a vector of indices")
    return Lanes(ZERO, ZERO, count, value)


def _add(build: Builder, a: Affine | Lanes, b: Affine | Lanes) -> Operand | None:
    return _sum(build, a, b, 1)


def _sub(build: Builder, a: Affine | Lanes, b: Affine | Lanes) -> Operand | None:
    return _sum(build, a, b, -1)


def _sum(build: Builder, a: Affine | Lanes, b: Affine | Lanes, sign: int) -> Operand | None:
    if isinstance(a, Affine) and isinstance(b, Affine):
        return a.plus(b, sign)
    if not (isinstance(a, Lanes) and isinstance(b, Lanes)) or (b.rest is not None and (a.rest is not None or sign < 0)):
        return None
    return Lanes(a.base.plus(b.base, sign), a.step.plus(b.step, sign), a.count, b.rest if a.rest is None else a.rest)


def _mul(build: Builder, a: Affine | Lanes, b: Affine | Lanes) -> Operand | None:
    if isinstance(a, Affine) and isinstance(b, Affine):
        return product(build, a, b)
    if not (isinstance(a, Lanes) and isinstance(b, Lanes)):
        return None
    if a.is_uniform:
        a, b = b, a
    if not b.is_uniform or a.rest is not None:
        return None
    return Lanes(product(build, a.base, b.base), product(build, a.step, b.base), a.count)


def product(build: Builder, a: Affine, b: Affine) -> Affine:
    """Returns `a * b`, with an instruction where neither is constant."""
    if a.is_constant:
        a, b = b, a
    if b.is_constant:
        return a.times(b.constant)
    x, y = sorted((build.scalar(a), build.scalar(b)))
    made = build.pure(f"mul i64 {x}, {y}", x, y)
    if build.is_nonnegative(a) and build.is_nonnegative(b):
        build.nonnegative.add(made)
    return Affine(0, {made: 1})


def sum_of_variables(e: Expr) -> tuple[Callable[..., Affine], tuple[Var, ...]] | None:
    """Returns a function that computes the scalar i64 *e* from its variables' values, and the variables, if it is a sum of these.

    An unrolled body asks for the same sums again and again.
    """
    if type(e) not in _SUMS or e.dtype is not INDEX:
        return None
    p = poly_of(e)
    constant = p.pop((), 0)
    variables = tuple([m[0] for m in p if len(m) == 1 and type(m[0]) is Var])
    if len(variables) < len(p):
        return None
    factors = tuple(p.values())

    def total(f: object, e: Expr, *values: Operand) -> Affine:
        offset = constant
        terms: dict[str, int] = {}
        for value, factor in zip(values, factors, strict=True):
            v = as_affine(value)
            offset += factor * v.constant
            for name, c in v.terms.items():
                terms[name] = terms.get(name, 0) + factor * c
        return Affine(offset, {name: c for name, c in terms.items() if c} if 0 in terms.values() else terms)

    return total, variables


_SUMS: Final = frozenset({Add, Sub, Mul, Neg})

_Rule = Callable[[Builder, "Affine | Lanes", "Affine | Lanes"], "Operand | None"]
_RULES: Final[dict[type[Node], _Rule]] = {Add: _add, Sub: _sub, Mul: _mul}
