"""Arithmetic on i64 values that stay symbolic: sums and products of `Affine` scalars and of `Lanes` vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from weft.codegen.llvm.core.affine_operands import ONE, ZERO, Affine, Lanes, Operand
from weft.codegen.llvm.core.ir_builder import Builder
from weft.ir import INDEX, Add, Binary, Const, Expr, Mul, Neg, Node, Ramp, Sub, poly_of


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
    return Lanes(a.base.plus(b.base, sign), a.step.plus(b.step, sign), a.lanes, b.rest if a.rest is None else a.rest)


def _mul(build: Builder, a: Affine | Lanes, b: Affine | Lanes) -> Operand | None:
    if isinstance(a, Affine) and isinstance(b, Affine):
        return product(build, a, b)
    if not (isinstance(a, Lanes) and isinstance(b, Lanes)):
        return None
    if a.is_uniform:
        a, b = b, a
    if not b.is_uniform or a.rest is not None:
        return None
    return Lanes(product(build, a.base, b.base), product(build, a.step, b.base), a.lanes)


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


@dataclass(frozen=True, slots=True)
class Sum:
    """A scalar i64 as `constant + sum(factor * term)`, of terms that are no sums; an index of *lanes* elements begins there."""

    constant: int
    terms: tuple[Expr, ...]
    factors: tuple[int, ...]
    lanes: int = 0
    step: Affine = ONE

    def __call__(self, f: object, e: Expr, *values: Operand) -> Affine:
        """Returns the value of the scalar *e* from those of its terms: a handler for the emitter."""
        offset = self.constant
        terms: dict[str, int] = {}  # an alias called, `dict[str, int]()`, takes longer than all else here
        for value, factor in zip(values, self.factors, strict=True):
            constant, named = value if type(value) is Affine else as_affine(value)
            offset += factor * constant
            if named:  # the variables of unrolled loops are numbers
                for name, c in named.items():
                    terms[name] = terms.get(name, 0) + factor * c
        if 0 in terms.values():
            terms = {name: c for name, c in terms.items() if c}
        return Affine(offset, terms)


@lru_cache(maxsize=4096)
def sum_of(e: Expr) -> Sum | None:
    """Returns the scalar i64 *e*, or an index of lanes that are a constant step apart, as a sum; None for any other expression.

    An unrolled body asks for the same sums again and again.
    """
    base, lanes, step = e, 0, ONE
    if isinstance(e, Ramp) and isinstance(e.stride, Const):
        base, lanes, step = e.base, e.lanes, Affine(int(e.stride.value))
    if base.dtype is not INDEX or (base is e and type(e) not in _SUMS):
        return None
    p = poly_of(base)
    constant = p.pop((), 0)
    if any(len(m) > 1 for m in p) or (base is e and (e,) in p):
        return None  # not linear, or a product too long to be multiplied out: a term of its own
    return Sum(constant, tuple([m[0] for m in p]), tuple(p.values()), lanes, step)


_SUMS: Final = frozenset({Add, Sub, Mul, Neg})

_Rule = Callable[[Builder, "Affine | Lanes", "Affine | Lanes"], "Operand | None"]
_RULES: Final[dict[type[Node], _Rule]] = {Add: _add, Sub: _sub, Mul: _mul}
