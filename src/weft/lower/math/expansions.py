"""The table of expansions: how each mathematical function is built, and its largest error.

    @expansion("rsqrt", f32=Error(1.5, 1.5), f64=Error(1.5, 1.5))
    def rsqrt(kit: Kit, x: Expr) -> Expr: ...

is all that a new function takes, once `ir.expr.pure_functions` declares it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.ir import Expr, cast
from weft.lower.math.kit import Kit
from weft.support.dtypes import SCALARS, DType, bf16, f16, f32

Builder: TypeAlias = Callable[..., Expr]
"""A function of a `Kit` and the operands that returns the expanded expression."""


@dataclass(frozen=True)
class Error:
    """The largest error in units in the last place, with fused multiply-add and without."""

    fused: float
    plain: float

    def of(self, fused: bool) -> float:
        """Returns the bound for targets with or without fused multiply-add."""
        return self.fused if fused else self.plain


EXACT: Final = Error(0.0, 0.0)
"""The result is always the right one."""


@dataclass(frozen=True)
class Expansion:
    """How one intrinsic is computed by plain arithmetic, and its error by float type."""

    name: str
    build: Builder
    max_ulp: Mapping[DType, Error]

    def __call__(self, *args: Expr, fused: bool = True, scales: bool = False) -> Expr:
        """Returns the expanded `name(*args)`; half-precision operands are computed in float32 and rounded once."""
        dtype = args[0].dtype
        if dtype.element in (f16, bf16):
            wide = [cast(a, f32.with_lanes(dtype.lanes)) for a in args]
            result = self.build(Kit(wide[0].dtype, fused=fused, scales=scales), *wide)
            return result if result.dtype.is_bool else cast(result, dtype)
        return self.build(Kit(dtype, fused=fused, scales=scales), *args)


EXPANSIONS: Final[dict[str, Expansion]] = {}
"""Every function that can be expanded, by the name of its intrinsic."""


def expansion(name: str, **max_ulp: Error) -> Callable[[Builder], Builder]:
    """Registers the decorated builder for the intrinsic *name*, with its error in `f32=` and `f64=`."""

    def register(build: Builder) -> Builder:
        EXPANSIONS[name] = Expansion(name, build, {SCALARS[t]: e for t, e in max_ulp.items()})
        return build

    return register
