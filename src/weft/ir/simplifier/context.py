"""The interface through which the parts of the simplifier call one another, so that none of them imports the whole."""

from __future__ import annotations

from typing import Protocol

from weft.ir.bounds.bounds import Bounds
from weft.ir.bounds.interval import Interval
from weft.ir.bounds.polynomial import Poly
from weft.ir.expr.base import Expr
from weft.support.dtypes import DType


class Context(Protocol):
    """A simplifier under given bounds."""

    bounds: Bounds

    def simplify(self, e: Expr) -> Expr:
        """Returns the canonical form of *e*."""
        ...

    def poly(self, e: Expr) -> Poly:
        """Returns the polynomial of the canonical form of *e*."""
        ...

    def range(self, p: Poly) -> Interval:
        """Returns an interval of *p*, by symbolic elimination where plain intervals leave an end open."""
        ...

    def is_at_least(self, p: Poly, least: int) -> bool:
        """Answers whether `p >= least` is certain."""
        ...

    def quotient(self, p: Poly, d: Poly, dtype: DType) -> Poly:
        """Returns the canonical form of `p // d`."""
        ...

    def remainder(self, p: Poly, d: Poly, dtype: DType) -> Poly:
        """Returns the canonical form of `p % d`."""
        ...
