"""Index arithmetic kept symbolic: sums of SSA names with integer coefficients, scalar or along the lanes of a vector.

An i64 value is held as `constant + sum(coefficient * name)` until an instruction needs it. Unrolled loop variables are plain
constants in it, so the addresses of an unrolled body differ by constants only, and terms that do not depend on an inner loop
are computed outside it (`ir_builder` groups the terms by the loop that defines them).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

_MODULUS: Final = 1 << 64
_HALF: Final = 1 << 63

_NO_TERMS: Final[Mapping[str, int]] = MappingProxyType({})


class Affine(NamedTuple):
    """The scalar i64 `constant + sum(coefficient * name)`; no coefficient is zero."""

    constant: int
    terms: Mapping[str, int] = _NO_TERMS

    def __str__(self) -> str:
        return " + ".join([str(self.constant), *[f"{c} * {name}" for name, c in sorted(self.terms.items())]])

    @property
    def is_constant(self) -> bool:
        """Whether the value is known."""
        return not self.terms

    def plus(self, other: Affine, scale: int = 1) -> Affine:
        """Returns `self + scale * other`."""
        if not other.terms:
            return _wrapped(self.constant + scale * other.constant, self.terms) if other.constant else self
        if not self.terms and scale == 1:
            return _wrapped(self.constant + other.constant, other.terms)
        terms = dict(self.terms)
        for name, c in other.terms.items():
            total = terms.get(name, 0) + scale * c
            if total:
                terms[name] = total
            else:
                terms.pop(name, None)
        return _wrapped(self.constant + scale * other.constant, terms)

    def times(self, factor: int) -> Affine:
        """Returns `factor * self`."""
        if factor == 1 or factor == 0:
            return self if factor else ZERO
        return _wrapped(self.constant * factor, {name: c * factor for name, c in self.terms.items()})

    def divided(self, divisor: int) -> tuple[Affine, int] | None:
        """Returns `self // divisor` and `self % divisor` where every term is a multiple of *divisor* > 0, else None."""
        if any(c % divisor for c in self.terms.values()):
            return None
        quotient, remainder = divmod(self.constant, divisor)
        return Affine(quotient, {name: c // divisor for name, c in self.terms.items()}), remainder


def _wrapped(constant: int, terms: Mapping[str, int]) -> Affine:
    """Returns the value modulo 2**64, as the machine computes it: products of data, unlike indices, may leave their type."""
    for c in (constant, *terms.values()):
        if not -_HALF <= c < _HALF:
            break
    else:
        return Affine(constant, terms)
    kept = {name: k for name, c in terms.items() if (k := _residue(c))}
    return Affine(_residue(constant), kept)


def _residue(n: int) -> int:
    return (n + _HALF) % _MODULUS - _HALF


class Lanes(NamedTuple):
    """The i64 vector whose lane i is `base + i * step`, plus the opaque vector *rest* if there is one."""

    base: Affine
    step: Affine
    lanes: int
    rest: str | None = None

    @property
    def is_uniform(self) -> bool:
        """Whether every lane has the same value."""
        return self.rest is None and self.step.is_constant and self.step.constant == 0


ZERO: Final = Affine(0)
ONE: Final = Affine(1)
Operand: TypeAlias = str | Affine | Lanes
"""A value: the text of an SSA name or a constant, or an i64 still symbolic."""
